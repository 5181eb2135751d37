"""Which operations of a model have a rule and which lack one, before any work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.registry import Missing
from ..locality.prepared import PreparedCall
from ..model_call.split_points import Of, find_source
from .decompose import survey


@dataclass(frozen=True)
class Row:
    """An operation that portions pass through."""

    op: str
    """Its name, as ``@rule`` takes it: ``aten.relu.default``."""
    module: str
    """The path of the module that called it; empty for the model itself."""
    rule: str
    """The name of its rule, empty where there is none."""
    count: int
    """How often it was called."""


@dataclass(frozen=True)
class Report:
    """All operations of one forward pass that portions pass through, in the order in which they were met."""

    rows: tuple[Row, ...]
    """One for each operation and module."""
    missing: tuple[Missing, ...]
    """The operations without a rule."""

    @property
    def ok(self) -> bool:
        """Whether `decompose` would find a rule for everything."""
        return not self.missing

    def __str__(self) -> str:
        table = [("operation", "module", "rule", "calls")]
        table += [(row.op, row.module or "-", row.rule or "MISSING", str(row.count)) for row in self.rows]
        widths = [max(len(line[column]) for line in table) for column in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        ending = "every operation has a rule" if self.ok else "no rule applies to:"
        return "\n".join([*lines, ending, *[f"  {missing}" for missing in self.missing]])

    __repr__ = __str__


def check(
    model: Callable[..., Any],
    *args: Any,
    of: Of = "node",
    start: Any = None,
    output: Any = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Report:
    """Survey a model: one forward pass with no groups at all tells which rules it needs.

    Of a model with several outputs, ``output`` names the one that is meant: what does not reach it needs no rules.
    """
    prepared = PreparedCall.of(model, args, {**kwargs, **(model_kwargs or {})}, start=start)
    call = prepared.of_part(output).sample if output is not None else prepared.sample
    source = find_source(call, of)
    run = survey(prepared.model, call, source)
    if not run.missing:
        source.finish()
    rows = tuple(Row(op, module, name, count) for (op, module, name), count in run.seen.items())
    return Report(rows, tuple(dict.fromkeys(run.missing)))
