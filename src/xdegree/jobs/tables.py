"""The tables of a job as Parquet: `instances`, `scores`, and `edges` where they were asked for."""

from collections.abc import Sequence
from typing import Any

import torch

from ..explanation import Explanation
from .settings import JobError
from .work import Outcome

KEY = "xdegree."
"""What our notes in a Parquet file's metadata start with."""


def tables(edges: str | None) -> tuple[str, ...]:
    """The names of the tables; `instances` is last: when it is there, its part is finished."""
    return ("scores", "instances") if edges is None else ("scores", "edges", "instances")


def pyarrow() -> Any:
    """The package, or a clear error."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('jobs write Parquet files, which needs pyarrow: pip install "xdegree[jobs]"') from error
    return pyarrow


def schemas() -> dict[str, Any]:
    """The columns of each table; docs/jobs.md says what they mean."""
    pa = pyarrow()
    explained = [("index", pa.int64()), ("target", pa.int64()), ("prediction", pa.float64())]
    return {
        "scores": pa.schema([*explained, ("node", pa.int64()), ("score", pa.float64())]),
        "edges": pa.schema(
            [*explained, ("edge", pa.int64()), ("source", pa.int64()), ("to", pa.int64()), ("score", pa.float64())]
        ),
        "instances": pa.schema(
            [
                *explained,
                ("output", pa.list_(pa.float64())),
                ("num_nodes", pa.int64()),
                ("rows", pa.int64()),
                ("error", pa.string()),
            ]
        ),
    }


def encoded(outcomes: Sequence[Outcome], edges: str | None, notes: dict[str, Any]) -> dict[str, bytes]:
    """The files of one part. The same outcomes give the same bytes."""
    pa = pyarrow()
    notes = {**notes, **counts(outcomes)}
    columns = {"instances": _instances(outcomes), "scores": _scores(outcomes)}
    if edges is not None:
        columns["edges"] = _edges(outcomes)
    files = {}
    for name in tables(edges):
        schema = schemas()[name].with_metadata({f"{KEY}{key}": str(value) for key, value in notes.items()})
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(pa.table(columns[name], schema=schema), sink, compression="zstd")
        files[name] = sink.getvalue().to_pybytes()
    return files


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many instances, rows of scores and errors there are."""
    found = [e for _, e in outcomes if isinstance(e, Explanation)]
    rows = sum(len(e.nodes) for e in found)
    return {"instances": len(outcomes), "rows": rows, "errors": len(outcomes) - len(found)}


def notes_of(path: Any) -> dict[str, str]:
    """The notes that a file was written with."""
    try:
        found = pyarrow().parquet.read_metadata(path).metadata or {}
    except (OSError, ValueError) as error:
        raise JobError(f"{path} is no whole Parquet file ({error}); delete it and resume the job") from error
    return {
        key.decode().removeprefix(KEY): value.decode() for key, value in found.items() if key.startswith(KEY.encode())
    }


def errors_in(path: Any, most: int) -> list[dict[str, Any]]:
    """The first errors of a part, each with its instance."""
    table = pyarrow().parquet.read_table(path, columns=["index", "error"], filters=[("error", "!=", "")])
    return list(table.slice(0, most).to_pylist())


def _instances(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    rows = [_instance(i, e) for i, e in outcomes]
    names = [field.name for field in schemas()["instances"]]
    return {name: [row.get(name) for row in rows] for name in names}


def _instance(index: int, e: Explanation | str) -> dict[str, Any]:
    if isinstance(e, str):
        return {"index": index, "rows": 0, "error": e}
    return {
        "index": index,
        "target": e.target,
        "prediction": float(e.prediction[e.target]),
        "output": e.prediction.tolist(),
        "num_nodes": e.num_nodes,
        "rows": len(e.nodes),
    }


def _scores(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """One row for each instance and node that can contribute to it."""
    found = [(i, e) for i, e in outcomes if isinstance(e, Explanation)]
    scores = [e.scores[e.nodes] for _, e in found]
    return {
        **_repeated(found, [len(e.nodes) for _, e in found]),
        "node": _joined([e.nodes for _, e in found], torch.long),
        "score": _joined(scores, torch.double),
    }


def _edges(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """One row for each instance and edge between nodes that can contribute to it."""
    found = [(i, e) for i, e in outcomes if isinstance(e, Explanation)]
    inside = [_inside(e) for _, e in found]
    ends = [e.edge_index[:, own] for (_, e), own in zip(found, inside, strict=True) if e.edge_index is not None]
    scores = [e.edge_scores[own] for (_, e), own in zip(found, inside, strict=True) if e.edge_scores is not None]
    return {
        **_repeated(found, [len(own) for own in inside]),
        "edge": _joined(inside, torch.long),
        "source": _joined([pair[0] for pair in ends], torch.long),
        "to": _joined([pair[1] for pair in ends], torch.long),
        "score": _joined(scores, torch.double),
    }


def _inside(e: Explanation) -> torch.Tensor:
    assert e.edge_index is not None
    if len(e.nodes) == e.num_nodes:
        return torch.arange(e.edge_index.shape[1])
    return torch.isin(e.edge_index, e.nodes).all(0).nonzero().flatten()


def _repeated(found: Sequence[tuple[int, Explanation]], times: Sequence[int]) -> dict[str, Any]:
    repeats = torch.tensor(times, dtype=torch.long)

    def column(values: list[Any], dtype: torch.dtype) -> Any:
        return torch.tensor(values, dtype=dtype).repeat_interleave(repeats).numpy()

    return {
        "index": column([i for i, _ in found], torch.long),
        "target": column([e.target for _, e in found], torch.long),
        "prediction": column([float(e.prediction[e.target]) for _, e in found], torch.double),
    }


def _joined(parts: Sequence[torch.Tensor], dtype: torch.dtype) -> Any:
    return torch.cat([torch.empty(0, dtype=dtype), *[p.detach().cpu().to(dtype) for p in parts]]).numpy()
