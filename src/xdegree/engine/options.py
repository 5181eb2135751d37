"""The choices that a user can make: among rules (`Options.paper` is the paper's own), and of contexts of groups."""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Ties = Literal["share", "first"]
Bias = Literal["share", "background"]
Activation = Literal["target-first", "both-orders", "target-last", "gate"]
Product = Literal["target", "share", "target-last"]
Attention = Literal["split", "whole"]
Bound = Literal["none", "output"]


@dataclass(frozen=True)
class Options:
    """One field per choice among rules.

    By default a group and all the rest add up to the prediction: neither is taken first, mixed terms are halved,
    attention is a weight. Portions are bounded by what a unit put out. `Options.paper` is the paper to the letter.

    Args:
        ties: who wins a maximum that several rows reach. ``"share"`` splits it equally among all rows that
            reach it up to rounding, so that the answer does not depend on the numbering of the nodes;
            ``"first"`` takes the row with the smallest index, as the authors' code does.
        bias: where constants go. ``"share"`` splits them by magnitude, |target| : |background|, as the paper
            does (eq. gcn_b); ``"background"`` leaves them with the background.
        activation: how a non-linear function f is split. Three orders of the telescoping sum: ``"target-first"`` gives
            the target f(γ), as the paper does; ``"target-last"`` gives it f(γ + β) − f(β); ``"both-orders"`` the mean.
            ``"gate"`` gives it γ·f(T)/T with T = γ + β, which is linear in γ: the contributions of disjoint groups add
            up, and a unit that puts out nothing passes nothing on. Functions of several numbers (a norm, log_softmax)
            have no such quotient and take both orders.
        product: whose the mixed terms of a product of two portions are. ``"target"`` gives the target γ·γ' only and the
            background all the rest, as the paper does for attention × value: a node that reaches only one of two
            factors then contributes nothing, as with the dot product of a link decoder. ``"share"`` halves the mixed
            terms. Not for a softmax that is split: its rule gives even the empty group a share, which here would count.
            ``"target-last"`` gives the target all of them, T·T' − β·β'; with ``activation="target-last"`` every
            operation gives what it loses without the target, quotients and norms too, as steps ask for.
            Left open, it is ``"share"`` where attention is taken whole, else ``"target"``.
        attention: whether a softmax is split. ``"split"`` shares it by exp|γ| : exp|β|, as the paper does, so that a
            message has target attention × target value and most of an attended node's value is background.
            ``"whole"`` takes it as given, a weight like those of a GCN: a group contributes what its values carry, and
            all nodes together contribute everything. Not for a softmax that is itself the output.
        bound: how large a portion of an activation's output may be. ``"none"`` leaves it as the order gives it, as the
            paper does: a unit whose output is 0 can then have portions of +5 and −5, which a normalisation behind it
            may scale by 1,000. ``"output"`` clips each portion to lie between 0 and what the unit itself put out,
            f(T) − f(0), so that such a unit passes nothing on. A group and all the rest still add up where they did.
            Left open, it is ``"output"`` with both orders and ``"none"`` with the others, which have a meaning of their
            own: target last with biases in the background is what the output loses without the group.
            For ReLU all choices of ``activation`` then agree: γ clipped to 0 … T where T is positive, 0 elsewhere.
    """

    ties: Ties = "share"
    bias: Bias = "share"
    activation: Activation = "both-orders"
    product: Product | None = None
    attention: Attention = "whole"
    bound: Bound | None = None

    def __post_init__(self) -> None:
        if self.product is None:
            object.__setattr__(self, "product", "share" if self.attention == "whole" else "target")
        if self.bound is None:
            object.__setattr__(self, "bound", "output" if self.activation == "both-orders" else "none")
        for field in fields(self):
            allowed, given = _allowed(field.type), getattr(self, field.name)
            if given not in allowed:
                raise ValueError(f"Options.{field.name} must be one of {allowed} (got {given!r})")

    @property
    def loses(self) -> bool:
        """Whether every operation gives the target what it loses without it, f(T) − f(β)."""
        return self.activation == self.product == "target-last"

    @classmethod
    def paper(cls, **changes: Any) -> "Options":
        """The paper to the letter, whatever the defaults are; ``paper(ties="first")`` is the authors' code.

        Files that were written before a field existed are read by it too: what they do not say is the paper's choice.

        Args:
            **changes: fields that differ from the paper's choice.
        """
        letter = {"ties": "share", "bias": "share", "activation": "target-first", "product": "target"}
        return cls(**{**letter, "attention": "split", "bound": "none", **changes})

    @classmethod
    def of(cls, options: "Options | None") -> "Options":
        """The given options, the defaults if there are none."""
        if options is None:
            return DEFAULT
        if not isinstance(options, cls):
            raise TypeError(f"options must be xdegree.Options(…) (got {type(options).__name__})")
        return options

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for files and tables."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _allowed(kind: Any) -> tuple[str, ...]:
    """The values of a field that may be left open."""
    return tuple(value for part in get_args(kind) for value in (get_args(part) or (part,)) if isinstance(value, str))


DEFAULT = Options()


Kind = Literal["walks", "neighbors", "none"]


@dataclass(frozen=True)
class Contexts:
    """Which contexts a group is seen in.

    Args:
        kind: ``"walks"``, random walks around the group, as the paper says; ``"neighbors"``, as the authors' code
            does: the mean of f^D over the group alone and the group with each node that touches it, without − f^D(C);
            ``"none"``: φ is f^D.
        walks: how many are drawn where there are too many contexts for all of them.
        length: steps of a walk; L by default.
        hops: L, how far from the group contexts reach; by default the model's depth, at least 1.
        exact: up to this many contexts all are taken, each with its probability, and nothing is drawn.
    """

    kind: Kind = "walks"
    walks: int = 20
    length: int | None = None
    hops: int | None = None
    exact: int = 128

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"Contexts.kind must be one of {get_args(Kind)} (got {self.kind!r})")
        for name, least in (("walks", 1), ("length", 0), ("hops", 0), ("exact", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not whole and not (value is None and name in ("length", "hops")):
                raise ValueError(f"Contexts.{name} must be an integer of at least {least} (got {value!r})")

    @classmethod
    def of(cls, contexts: "Contexts | None") -> "Contexts":
        """The given contexts, the paper's if there are none."""
        if contexts is None:
            return cls()
        if not isinstance(contexts, cls):
            raise TypeError(f"contexts must be xdegree.Contexts(…) (got {contexts!r})")
        return contexts

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for files and tables."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
