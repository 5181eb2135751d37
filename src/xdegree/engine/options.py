"""The choices among rules that a user can make; the paper's choice is always the default."""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Ties = Literal["share", "first"]
Bias = Literal["share", "background"]
Activation = Literal["target-first", "both-orders", "target-last"]
Product = Literal["target", "share"]
Attention = Literal["split", "whole"]


@dataclass(frozen=True)
class Options:
    """One field per choice among rules.

    Args:
        ties: who wins a maximum that several rows reach. ``"share"`` splits it equally among all rows that
            reach it up to rounding, so that the answer does not depend on the numbering of the nodes;
            ``"first"`` takes the row with the smallest index, as the authors' code does.
        bias: where constants go. ``"share"`` splits them by magnitude, |target| : |background|, as the paper
            does (eq. gcn_b); ``"background"`` leaves them with the background.
        activation: order of the telescoping sum over a non-linear function f. ``"target-first"`` gives the
            target f(γ), as the paper does; ``"target-last"`` gives it f(γ + β) − f(β); ``"both-orders"`` the mean.
        product: whose the mixed terms of a product of two portions are. ``"target"`` gives the target γ·γ' only and the
            background all the rest, as the paper does for attention × value: a node that reaches only one of two
            factors then contributes nothing, as with the dot product of a link decoder. ``"share"`` halves the mixed
            terms. Not for softmax attention: its rule gives even the empty group a share, which here would count.
        attention: whether a softmax is split. ``"split"`` shares it by exp|γ| : exp|β|, as the paper does, so that a
            message has target attention × target value and most of an attended node's value is background.
            ``"whole"`` takes it as given, a weight like those of a GCN: a group contributes what its values carry, and
            all nodes together contribute everything. Not for a softmax that is itself the output.
    """

    ties: Ties = "share"
    bias: Bias = "share"
    activation: Activation = "target-first"
    product: Product = "target"
    attention: Attention = "split"

    def __post_init__(self) -> None:
        for field in fields(self):
            allowed, given = get_args(field.type), getattr(self, field.name)
            if given not in allowed:
                raise ValueError(f"Options.{field.name} must be one of {allowed} (got {given!r})")

    @classmethod
    def of(cls, options: "Options | None") -> "Options":
        """The given options, the paper's if there are none."""
        if options is None:
            return DEFAULT
        if not isinstance(options, cls):
            raise TypeError(f"options must be xdegree.Options(…) (got {type(options).__name__})")
        return options

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for files and tables."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


DEFAULT = Options()
