"""Where portions start: in the features of nodes or edges, behind an embedding, or in the messages along edges."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import MessagePassing

from ..engine.masked_rows import THIN, MaskedRows, Masks
from ..engine.portions import LostPortionsError, Portions, total_of
from ..engine.run import Run
from ..engine.sparse_rows import Entries, Singles, sparse_share
from .call import ModelCall, find_edge_index, find_edges, is_edges, is_matrix, mapped_tensors, short
from .edges import match_edges
from .groups import split
from .shadow_model import check_caches
from .start_candidates import types_of
from .starts import searched

Of = Literal["node", "edge", "feature", "edge_feature"]


@dataclass(frozen=True)
class Path:
    """The way from a baseline b to x, in steps: in each the increment (x − b) / steps is split, all else is background.

    In one step from zero, features themselves are split. With many, contributions become integrated gradients.
    """

    baseline: Any = None
    """What is subtracted from the features, of their shape or broadcast to it; a dict by type; None for zero."""
    steps: int = 1
    step: int = 1
    """Which step this is; 0 for the baseline itself."""

    @property
    def is_trivial(self) -> bool:
        """Whether it is one step from zero."""
        return self.baseline is None and self.steps == 1 and self.step == 1

    def at(self, x: Tensor, kind: Any = None) -> tuple[Tensor, Tensor]:
        """The features at this step, and the increment that is split; of one type of several."""
        if self.is_trivial:
            return x, x
        baseline = self.baseline if kind is None or self.baseline is None else self.baseline[kind]
        baseline = torch.zeros_like(x) if baseline is None else baseline.to(x).expand_as(x)
        increment = (x - baseline) / self.steps
        return (x if self.step == self.steps else baseline + increment * self.step), increment

    def of_nodes(self, nodes: Tensor | None) -> "Path":
        """The same for some of the nodes."""
        whole = isinstance(self.baseline, Tensor) and self.baseline.dim() > 1 and len(self.baseline) > 1
        return replace(self, baseline=self.baseline[nodes]) if whole and nodes is not None else self

    @classmethod
    def of(cls, baseline: Any, steps: Any, rows: Any) -> "Path":
        """What the user said, understood for features; or a clear error."""
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise ValueError(f"steps must be an integer, at least 1 (got {steps!r})")
        if isinstance(baseline, str) and baseline == "zero":
            return cls(None, steps, steps)
        if isinstance(baseline, str) and baseline == "mean":
            return cls(mapped_tensors(mean_features, rows), steps, steps)
        fits = isinstance(baseline, Tensor) if isinstance(rows, Tensor) else isinstance(baseline, Mapping)
        if not fits:
            raise ValueError(f'baseline must be "zero", "mean" or a tensor of the features\' shape (got {baseline!r})')
        for kind, x in rows.items() if isinstance(rows, Mapping) else [(None, rows)]:
            given = baseline if kind is None else baseline.get(kind)
            try:
                assert given is not None
                given.expand_as(x)
            except (AssertionError, RuntimeError, AttributeError):
                got = list(given.shape) if isinstance(given, Tensor) else given
                raise ValueError(f"the baseline must broadcast to the features {list(x.shape)} (got {got})") from None
            if given.is_meta or not bool(given.isfinite().all()):
                raise ValueError("the baseline must hold finite numbers (got NaN, infinity or a meta tensor)")
        return cls(baseline, steps, steps)


TRIVIAL = Path()


def mean_features(x: Tensor, batch: Tensor | None = None) -> Tensor:
    """The mean of all rows; columns that do not vary keep 0, or nothing of them would be left to contribute.

    With the graph that each row belongs to, the mean of its own graph for each.
    """
    if batch is not None:
        return torch.stack([mean_features(x[batch == graph]) for graph in range(int(batch.max()) + 1)])[batch]
    return torch.where((x == x[:1]).all(0), x.new_zeros(()), x.mean(0))


class Source(Protocol):
    """Splits something into portions, given the share that each group has of it."""

    @property
    def rows(self) -> Any:
        """A float tensor with a row for each node or edge that groups are made of, or a dict of them by type."""

    @property
    def what(self) -> str:
        """One row of it, in a word."""

    @property
    def beside_plain_nodes(self) -> bool:
        """Whether nodes carry no portions at all.

        The paper's softmax gives nothing a share too, which only goes because the values that attention is
        multiplied with are empty then. With plain values it would stay, and is taken off: nothing contributes 0.
        """

    @property
    def path(self) -> Path:
        """The way from the baseline to the features."""

    def on(self, path: Path) -> "Source":
        """The same on another way."""

    def start(self, run: Run, shadow: Any, share: Any) -> list[tuple[Any, Any]]:
        """Arrange for the portions of a run; returns the arguments (old, new) that it replaces."""

    def finish(self) -> None:
        """Raise if the portions never started."""


def find_source(call: ModelCall, of: Of = "node", path: Path | None = None) -> Source:
    """The source that the user means, or an error that says what is missing."""
    if of not in get_args(Of):
        raise ValueError(f"of must be one of {get_args(Of)} (got {of!r})")
    if of == "edge":
        return MessageSource(call, _edges_of(call)).on(path or TRIVIAL)
    if of == "edge_feature":
        value = call.get("edge_attr", "edge_weight", "edge_attr_dict", "edge_weight_dict")
        if value is None:
            raise ValueError(
                "of='edge_feature' needs edge_attr or edge_weight among the model's arguments, by that name"
            )
        return ArgumentSource(_checked(value, "edge"), "edge", path or TRIVIAL)
    return ArgumentSource(_checked(call.x, "node"), "node", path or TRIVIAL)


@dataclass
class ArgumentSource:
    """Features that are an argument of the model."""

    rows: Any
    what: str
    path: Path = TRIVIAL

    @property
    def beside_plain_nodes(self) -> bool:
        """True for the features of edges."""
        return self.what == "edge"

    def start(self, run: Run, shadow: Any, share: Any) -> list[tuple[Any, Any]]:  # noqa: ARG002
        """The features as portions in their place."""
        if isinstance(share, Singles | Masks | Entries) and run.active_rows is not None:
            total, part = self.path.at(self.rows.detach())
            return [(self.rows, Portions(total.clone(), share.split(part, run.active_rows)))]
        if isinstance(self.rows, Mapping):
            given = {kind: _portions(*self.path.at(x, kind), share[kind]) for kind, x in self.rows.items()}
            return [(self.rows, given)]
        return [(self.rows, _portions(*self.path.at(self.rows), share, run.sparse))]

    def on(self, path: Path) -> "ArgumentSource":
        """The same on another way."""
        return replace(self, path=path)

    def finish(self) -> None:
        """Portions always start here."""


def _portions(total: Tensor, part: Tensor, share: Tensor | Entries, sparse: bool = False) -> Portions:
    """A total, of which each group has a share of some part."""
    x = part.detach()
    if isinstance(share, Entries):
        target = share.split(x) if sparse else split(x, share.mask(x).to(x.dtype))
        return Portions(total.detach().clone(), target)
    share = share.to(x.dtype)
    if sparse and x.dim() > 1 and share.dim() == 2:
        mask = share.t() != 0
        if bool((share.t() == mask).all()):  # each row is all target or all background
            return Portions(total.detach().clone(), MaskedRows(mask, x))
        if int(mask.count_nonzero()) <= THIN * mask.numel():
            return Portions(total.detach().clone(), sparse_share(x, share))
    return Portions(total.detach().clone(), split(x, share))


@dataclass
class MessageSource:
    """The messages that travel along edges, in every layer."""

    call: ModelCall
    edges: Any
    """``[2, E]``, or a dict of them by type."""
    what: str = "edge"
    beside_plain_nodes: bool = False
    started: bool = False
    path: Path = TRIVIAL

    @property
    def rows(self) -> Any:
        """A row for each edge."""
        return mapped_tensors(lambda e: torch.zeros(e.shape[1], device=e.device), self.edges)

    def start(self, run: Run, shadow: Any, share: Any) -> list[tuple[Any, Any]]:
        """Give each group the messages of its edges whenever messages are passed; nodes bring nothing of their own."""
        if not isinstance(shadow, nn.Module):
            raise TypeError("of='edge' follows the message passing of modules, and this function refers to none")
        layers = [m for m in shadow.modules() if isinstance(m, MessagePassing)]
        for module in layers:
            _Messages(self, module, run, share).attach()
        x = self.call.x
        nothing = run.groups
        if isinstance(x, Mapping):
            return [(x, {kind: _portions(v, v, v.new_zeros(nothing, len(v))) for kind, v in x.items()})]
        return [(x, _portions(x, x, x.new_zeros(nothing, len(x))))]

    def on(self, path: Path) -> "MessageSource":
        """Messages are measured from nothing."""
        if not path.is_trivial:
            raise ValueError("baseline and steps are for features of nodes and edges, not for messages (of='edge')")
        return self

    def finish(self) -> None:
        """Messages must have been passed."""
        if not self.started:
            raise LostPortionsError(
                "of='edge' found no messages: the model does not pass them with PyG's propagate() over an edge_index;"
                " ask about nodes: of='node'"
            )


class _Messages:
    """Watches the messages of one layer."""

    def __init__(self, source: MessageSource, module: Any, run: Run, share: Any) -> None:
        self.source, self.module, self.run, self.share = source, module, run, share
        self.edges: Tensor | None = None

    def attach(self) -> None:
        """PyG's own hooks, on the shadow."""
        self.module.register_propagate_forward_pre_hook(self.before)
        self.module.register_message_forward_hook(self.after)
        self.module.register_message_and_aggregate_forward_pre_hook(self.refuse)

    def before(self, _module: Any, args: Any) -> None:
        """Note the edges of this round of messages."""
        self.edges = args[0]

    def refuse(self, _module: Any, _args: Any) -> None:
        """Fused layers have no messages to follow."""
        raise NotImplementedError(
            f"of='edge' cannot follow messages in {self.run.module!r}: with a sparse adjacency the layer never writes"
            " them out. Give the edges as edge_index [2, E]"
        )

    def after(self, module: Any, _args: Any, output: Any) -> Any:
        """The messages of a group's edges are all its own; the others stay what they are."""
        with self.run.aside():
            return self._split(module, output)

    def _split(self, module: Any, output: Any) -> Any:
        total = total_of(output)
        share = self._share_of_layer()
        dim = module.node_dim % total.dim()
        shape = [self.run.groups, *[1] * dim, share.shape[1], *[1] * (total.dim() - dim - 1)]
        share = share.reshape(shape).to(total.dtype)
        target = output.target if isinstance(output, Portions) else total.new_zeros(())
        self.source.started = True
        return Portions(total, target + share * (total - target))

    def _share_of_layer(self) -> Tensor:
        """The groups' shares of the edges that this layer works on, ``[K, edges]``; added edges are unattributed."""
        own, layer = self.source.edges, total_of(self.edges)
        if not isinstance(own, Mapping):
            return _matched(own, layer, self.share)
        kinds = _types_one_after_another(own, layer)
        if kinds:
            return torch.cat([self.share[kind] for kind in kinds], 1)
        same = [kind for kind, e in own.items() if e.shape == layer.shape and torch.equal(e, layer)]
        if len(same) != 1:  # several types with the same edges, or a layer that adds or drops some: its name tells
            named = [kind for kind in own if _is_named(self.run.module, kind)]
            same = [kind for kind in named if kind in same] or (named if not same else [])
        if len(same) != 1:
            raise NotImplementedError(
                f"of='edge' cannot tell which type of edges {self.run.module!r} works on ({len(same)} types fit)"
            )
        return _matched(own[same[0]], layer, self.share[same[0]])


def _matched(own: Tensor, layer: Any, share: Tensor) -> Tensor:
    ids = match_edges(own, layer)
    unattributed = share.new_zeros(len(share), 1)  # added edges are in no group: the last column, −1
    return torch.cat([share, unattributed], 1)[:, ids]


def _types_one_after_another(own: Mapping[Any, Tensor], layer: Any) -> list[Any]:
    """All types in order if a layer works on all of them at once, as HGTConv does, with nodes numbered anew."""
    counts = [e.shape[1] for e in own.values()]
    if not isinstance(layer, Tensor) or layer.layout != torch.strided or layer.shape[1] != sum(counts) or len(own) == 1:
        return []
    offsets = [part - e for part, e in zip(layer.split(counts, 1), own.values(), strict=True)]
    return list(own) if all(bool((offset == offset[:, :1]).all()) for offset in offsets) else []


def _is_named(path: str, kind: Any) -> bool:
    """Whether a module is called by a type of edges, as `HeteroConv` and `to_hetero` do."""
    names = {"__".join(kind), "___".join(kind), "<" + "___".join(kind) + ">"}
    return bool(names & set(path.split(".")))


def _edges_of(call: ModelCall) -> Any:
    value = find_edges(call)
    if value is None:
        raise ValueError("of='edge' needs an edge_index [2, E] (or edge_index_dict) among the model's arguments")
    return value


def _checked(x: Any, what: str) -> Any:
    """Features that can be split, or a clear error."""
    if isinstance(x, Mapping):
        if not x:
            raise ValueError(f"the dict of {what} features is empty")
        for kind, value in x.items():
            _check_features(value, f"{what} features of type {kind!r}")
        return x
    return _check_features(x, f"{what} features")


def _check_features(x: Any, what: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{what} must be a float tensor, the model's first argument (got {type(x).__name__});"
            " with several types of nodes give a dict of tensors"
        )
    if not x.is_floating_point():
        raise TypeError(
            f"{what} must be floating point to be split into portions (got {x.dtype}); convert them: .float()"
        )
    if x.dim() == 0:
        raise ValueError(f"{what} must have a row per {what.split(maxsplit=1)[0]} (got a single number)")
    if not bool(x.sum().isfinite()) and not bool(x.isfinite().all()):  # the first question takes a tenth of the time
        bad = (~x.isfinite()).reshape(len(x), -1).any(1).nonzero().flatten().tolist()
        raise ValueError(f"{what} must be finite (got NaN or infinity at {short(bad)}); clean them first")
    return x


def located(model: Any, call: ModelCall, start: Any = None) -> ModelCall:
    """The call with the spots of its nodes: those that ``start`` names, else the usual place or the only candidate."""
    check_caches(model, call)
    return call if start is None and _is_usual(call) else searched(model, call, start)


def _is_usual(call: ModelCall) -> bool:
    """Whether `x` is a float matrix, or a dict of them for all types that edges connect."""
    x = call.x
    if isinstance(x, Mapping) and any(is_edges(value) for value in x.values()):
        return False  # all arguments in one
    if isinstance(x, Mapping):
        whole = bool(x) and all(is_matrix(value) for value in x.values()) and not isinstance(call.data, HeteroData)
        return whole and (call.spots is not None or not (types_of(call) - set(x)))
    return is_matrix(x) and not _is_stack(call) and not any(isinstance(a, HeteroData) for a in call.args)


def _is_stack(call: ModelCall) -> bool:
    """Whether `x` is a stack of graphs ``[graphs, nodes, …]``: adjacency matrices or edges beside it tell."""
    x = call.x
    if not isinstance(x, Tensor) or x.dim() < 3:
        return False
    square = any(t.dim() > 1 and t.shape[-2:] == (x.shape[1], x.shape[1]) for t in call.tensors() if t is not x)
    edges = find_edge_index(call)
    among = edges is not None and edges.numel() and len(x) <= int(edges.max()) < x.shape[1]
    return bool(square and x.shape[1] != 2) or bool(among)
