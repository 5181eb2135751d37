"""The tables of a job as Parquet: `instances`, `scores`, and `edges` where they were asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..results.explanation import Explanation
from .settings import Settings
from .work import Outcome

KEY = "xdegree."
"""What our notes in a Parquet file's metadata start with."""
PLACES = {
    "node": ("node",),
    "edge": ("edge", "source", "to"),
    "feature": ("node", "feature"),
    "edge_feature": ("edge", "source", "to", "feature"),
}
"""The columns that say what a score is of, by what was scored."""


def tables(edge_scores: str | None) -> tuple[str, ...]:
    """The names of the tables; `instances` is last: when it is there, its part is finished."""
    return ("scores", "instances") if edge_scores is None else ("scores", "edges", "instances")


def pyarrow() -> Any:
    """The package, or a clear error."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('jobs write Parquet files, which needs pyarrow: pip install "xdegree[jobs]"') from error
    return pyarrow


def schemas(of: str) -> dict[str, Any]:
    """The columns of each table; docs/jobs.md says what they mean."""
    pa = pyarrow()
    explained = [("index", pa.int64()), ("target", pa.int64()), ("prediction", pa.float64())]

    def scored(of: str) -> Any:
        return pa.schema([*explained, *[(name, pa.int64()) for name in PLACES[of]], ("score", pa.float64())])

    return {
        "scores": scored(of),
        "edges": scored("edge"),
        "instances": pa.schema(
            [
                *explained,
                ("output", pa.list_(pa.field("element", pa.float64()))),  # as Parquet itself calls it
                ("num_nodes", pa.int64()),
                ("rows", pa.int64()),
                ("error", pa.string()),
            ]
        ),
    }


def encoded(outcomes: Sequence[Outcome], settings: Settings, notes: dict[str, Any]) -> dict[str, bytes]:
    """The files of one part. The same outcomes give the same bytes."""
    pa = pyarrow()
    notes = {**notes, **counts(outcomes)}
    known = schemas(settings.of)
    columns = {
        "instances": _instances(outcomes, known["instances"].names),
        "scores": _rows(outcomes, _scored, PLACES[settings.of]),
    }
    if settings.edge_scores is not None:
        columns["edges"] = _rows(outcomes, _scored_edges, PLACES["edge"])
    files = {}
    for name in tables(settings.edge_scores):
        schema = known[name].with_metadata({f"{KEY}{key}": str(value) for key, value in notes.items()})
        files[name] = _file(pa.table(columns[name], schema=schema))
    return files


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many instances, rows of scores and errors there are."""
    found = [e for _, e in outcomes if isinstance(e, Explanation)]
    rows = sum(_count(e) for e in found)
    return {"instances": len(outcomes), "rows": rows, "errors": len(outcomes) - len(found)}


def notes_of(path: Any) -> dict[str, str]:
    """The notes that a file was written with; a ValueError if it is no whole Parquet file."""
    try:
        found = pyarrow().parquet.read_metadata(path).metadata or {}
    except (OSError, ValueError) as error:
        raise ValueError(f"it is no whole Parquet file ({error})") from error
    return {
        key.decode().removeprefix(KEY): value.decode() for key, value in found.items() if key.startswith(KEY.encode())
    }


def read_whole(path: Any) -> None:
    """Read every page and compare it with its checksum; a ValueError if anything in the file is not as it was written.

    The footer has no checksum, but the same table gives the same bytes, if the same pyarrow writes it.
    """
    try:
        with pyarrow().parquet.ParquetFile(path, page_checksum_verification=True) as file:
            again, ours = _file(file.read()), _file(file.schema_arrow.empty_table())
            comparable = file.metadata.created_by == _created_by(ours)
    except (OSError, ValueError) as error:
        raise ValueError(f"its content is damaged ({error})") from error
    if comparable and again != path.read_bytes():
        raise ValueError("its footer is damaged")


def _created_by(content: bytes) -> str:
    pa = pyarrow()
    return str(pa.parquet.read_metadata(pa.BufferReader(content)).created_by)


def _file(table: Any) -> bytes:
    pa = pyarrow()
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return bytes(sink.getvalue().to_pybytes())


def errors_in(path: Any, most: int) -> list[dict[str, Any]]:
    """The first errors of a part, each with its instance."""
    table = pyarrow().parquet.read_table(path, columns=["index", "error"], filters=[("error", "!=", "")])
    return list(table.slice(0, most).to_pylist())


def _instances(outcomes: Sequence[Outcome], names: Sequence[str]) -> dict[str, Any]:
    rows = [_instance(i, e) for i, e in outcomes]
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
        "rows": _count(e),
    }


def _rows(
    outcomes: Sequence[Outcome], read: Callable[[Explanation], dict[str, Tensor]], places: Sequence[str]
) -> dict[str, Any]:
    """The columns of a table of scores: those of all instances, one behind the other."""
    found = [(i, e) for i, e in outcomes if isinstance(e, Explanation)]
    parts = [read(e) for _, e in found]
    return {
        **_repeated(found, [len(part["score"]) for part in parts]),
        **{name: _joined([part[name] for part in parts], torch.long) for name in places},
        "score": _joined([part["score"] for part in parts], torch.double),
    }


def _scored(e: Explanation) -> dict[str, Tensor]:
    """A row for each node or edge that can contribute; of features, which are many, for those that do."""
    if e.of == "node":
        return {"node": e.nodes, "score": e.scores[e.nodes]}
    if e.of == "edge":
        return _scored_edges(e)
    scores = e.scores.unsqueeze(1) if e.scores.dim() == 1 else e.scores.flatten(1)
    row, feature = scores.nonzero(as_tuple=True)
    whose = {"node": row} if e.of == "feature" else _ends(e, row)
    return {**whose, "feature": feature, "score": scores[row, feature]}


def _count(e: Explanation) -> int:
    return len(e.nodes) if e.of == "node" else len(_scored(e)["score"])


def _scored_edges(e: Explanation) -> dict[str, Tensor]:
    """A row for each edge between nodes that can contribute."""
    assert e.edge_scores is not None
    inside = _inside(e)
    return {**_ends(e, inside), "score": e.edge_scores[inside]}


def _ends(e: Explanation, edges: Tensor) -> dict[str, Tensor]:
    assert e.edge_index is not None
    return {"edge": edges, "source": e.edge_index[0, edges], "to": e.edge_index[1, edges]}


def _inside(e: Explanation) -> Tensor:
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


def _joined(parts: Sequence[Tensor], dtype: torch.dtype) -> Any:
    return torch.cat([torch.empty(0, dtype=dtype), *[p.detach().cpu().to(dtype) for p in parts]]).numpy()
