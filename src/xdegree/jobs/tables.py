"""The tables of a job as Parquet: `instances`, `scores`, and `edges` where they were asked for."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .answers import Answer, Outcome, Rows
from .settings import Settings

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
        "scores": _rows(outcomes, lambda answer: answer.scores, PLACES[settings.of]),
    }
    if settings.edge_scores is not None:
        columns["edges"] = _rows(outcomes, lambda answer: answer.edges or {}, PLACES["edge"])
    return {
        name: _file(_noted(pa.table(columns[name], schema=known[name]), notes)) for name in tables(settings.edge_scores)
    }


def _noted(table: Any, notes: Mapping[str, Any]) -> Any:
    """A table with its notes, and the checksum of what it holds."""
    notes = {**notes, "content": _content(table)}
    return table.replace_schema_metadata({f"{KEY}{key}": str(value) for key, value in notes.items()})


def _content(table: Any) -> str:
    """The checksum of what a table holds, apart from its notes: who writes it anew keeps them, but not the content."""
    return hashlib.sha256(_file(table.replace_schema_metadata(None))).hexdigest()


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many instances, rows of scores and errors there are."""
    found = [answer for _, answer in outcomes if isinstance(answer, Answer)]
    rows = sum(len(answer.scores["score"]) for answer in found)
    return {"instances": len(outcomes), "rows": rows, "errors": len(outcomes) - len(found)}


def notes_of(path: Any) -> dict[str, str]:
    """The notes that a file was written with; a ValueError if it is no whole Parquet file."""
    if not path.is_file():  # to open a pipe would wait for somebody to write into it
        raise ValueError("it is no file")
    try:
        found = pyarrow().parquet.read_metadata(path).metadata or {}
    except (OSError, ValueError) as error:
        raise ValueError(f"it is no whole Parquet file ({error})") from error
    return {
        key.decode().removeprefix(KEY): value.decode() for key, value in found.items() if key.startswith(KEY.encode())
    }


def read_whole(path: Any) -> None:
    """Read every page and compare it with its checksum; a ValueError if anything in the file is not as it was written.

    The footer has no checksum, but the same table gives the same bytes, if the same pyarrow writes it; and so a file
    that somebody wrote anew, with notes and page checksums that fit, but other scores, is noticed.
    """
    try:
        with pyarrow().parquet.ParquetFile(path, page_checksum_verification=True) as file:
            table, ours = file.read(), _file(file.schema_arrow.empty_table())
            comparable = file.metadata.created_by == _created_by(ours)
    except (OSError, ValueError) as error:
        raise ValueError(f"its content is damaged ({error})") from error
    if comparable and _content(table) != notes_of(path).get("content"):
        raise ValueError("its content is not what the job wrote")
    if comparable and _file(table) != path.read_bytes():
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
    rows = [_instance(i, answer) for i, answer in outcomes]
    return {name: [row.get(name) for row in rows] for name in names}


def _instance(index: int, answer: Answer | str) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"index": index, "rows": 0, "error": answer}
    names = ("target", "prediction", "output", "num_nodes")
    return {"index": index, "rows": len(answer.scores["score"]), **{name: getattr(answer, name) for name in names}}


def _rows(outcomes: Sequence[Outcome], read: Callable[[Answer], Rows], places: Sequence[str]) -> dict[str, Any]:
    """The columns of a table of scores: those of all instances, one behind the other."""
    found = [(i, answer) for i, answer in outcomes if isinstance(answer, Answer)]
    parts = [read(answer) for _, answer in found]
    return {
        **_repeated(found, [len(part["score"]) for part in parts]),
        **{name: _joined([part[name] for part in parts], torch.long) for name in places},
        "score": _joined([part["score"] for part in parts], torch.double),
    }


def _repeated(found: Sequence[tuple[int, Answer]], times: Sequence[int]) -> dict[str, Any]:
    repeats = torch.tensor(times, dtype=torch.long)

    def column(values: list[Any], dtype: torch.dtype) -> Any:
        return torch.tensor(values, dtype=dtype).repeat_interleave(repeats).numpy()

    return {
        "index": column([i for i, _ in found], torch.long),
        "target": column([answer.target for _, answer in found], torch.long),
        "prediction": column([answer.prediction for _, answer in found], torch.double),
    }


def _joined(parts: Sequence[Tensor], dtype: torch.dtype) -> Any:
    return torch.cat([torch.empty(0, dtype=dtype), *[p.detach().cpu().to(dtype) for p in parts]]).numpy()
