"""What an audit compares: xdegree's readings under several options, gradients, occlusion, other methods, chance."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from ..attribution.decompose import decompose
from ..attribution.explain import explain
from ..attribution.scores import Reading
from ..baselines import METHODS, Instance, Method, Scores, instance
from ..engine.options import Options
from ..model_call.call import as_table, find_edge_index
from ..model_call.shadow_model import shadow_of
from ..removal import Removal

RANDOM = "random"


@dataclass(frozen=True)
class Scorer:
    """Scores ``[N]`` of all nodes, of all types one after another."""

    nodes: Callable[[Removal], Tensor]
    signed: bool = True
    """Whether a score says which way a node pushes; others are compared with the size of a change."""
    groups: Callable[[Removal, Tensor], Tensor] | None = None
    """Scores ``[K]`` of groups ``[K, N]``; the sum over their nodes where a method has none."""

    def of_groups(self, one: Removal, masks: Tensor, scores: Tensor) -> Tensor:
        """What the method says of each group."""
        if self.groups is None:
            return masks.to(scores.dtype) @ scores
        return self.groups(one, masks)


def scorers(methods: Sequence[str] | Mapping[str, Method] | None, one: Removal) -> dict[str, Scorer]:
    """The methods of an audit by name; those that always are in it by default."""
    if isinstance(methods, Mapping):
        return {name: _by_instance(method, signed=None) for name, method in methods.items()}
    own = _own()
    others = {} if isinstance(one.call.x, Mapping) else {name: _made(name, METHODS[name]) for name in _BASELINES}
    known = {**others, **own}
    if methods is None:
        return {**own, **{name: others[name] for name in _DEFAULT_BASELINES if name in others}}
    if unknown := [name for name in methods if name not in known]:
        raise ValueError(f"there is no method {unknown[0]!r}; an audit knows {list(known)}")
    return {name: known[name] for name in methods}


_BASELINES = tuple(name for name in METHODS if name not in (RANDOM, "PGExplainer"))
_DEFAULT_BASELINES = ("integrated gradients", "|integrated gradients|")
_UNSIGNED_BASELINES = (
    *("GRAD", "attention", "|integrated gradients|", "integrated gradients, norm over classes"),
    *("hop distance", "GNNExplainer", "PGExplainer"),
)


def _own() -> dict[str, Scorer]:
    """What works for graphs with types of nodes too."""
    found = {
        "contribution": _contribution(Options()),
        "contribution, the paper's rules": _contribution(Options.paper()),
        "contribution, gated": _contribution(Options(activation="gate")),
        "contribution, as on removal": _contribution(Options(activation="target-last", bias="background")),
    }
    for reading in get_args(Reading):
        if reading not in ("contribution", "probability"):
            found[reading] = Scorer(_reading(reading), signed=False)
    found |= {
        "|gradient|": Scorer(lambda one: _gradient(one, times_input=False), signed=False),
        "gradient x input": Scorer(lambda one: _gradient(one, times_input=True)),
        "occlusion": Scorer(_occlusion),
    }
    return found


def explained(one: Removal, **asked: Any) -> Any:
    """What `explain` says of the prediction."""
    rest = {"index": one.row, "target": one.target, "level": one.level, "output": one.call.part}
    return explain(one.model, *one.call.args, **rest, **asked, model_kwargs=one.call.kwargs)


def _reading(reading: Reading, options: Options | None = None) -> Callable[[Removal], Tensor]:
    return lambda one: one.flat(explained(one, reading=reading, options=options).node_scores)


def _contribution(options: Options) -> Scorer:
    """The signed contribution; groups are decomposed as such."""

    def groups(one: Removal, masks: Tensor) -> Tensor:
        sizes = one.sizes
        parts = dict(zip(sizes, masks.split(list(sizes.values()), 1), strict=True))
        asked = parts if isinstance(one.call.x, Mapping) else masks
        given = {"output": one.call.part, "options": options, "model_kwargs": one.call.kwargs}
        d = decompose(one.model, *one.call.args, groups=asked, **given)
        shown = d.logits or d  # where `explain` has the scores of nodes
        return as_table(shown.total, one.call, one.level).of(shown.target)[:, one.row, one.target]

    return Scorer(_reading("contribution", options), groups=groups)


def _gradient(one: Removal, times_input: bool) -> Tensor:
    x = one.call.x
    features = list(x.values()) if isinstance(x, Mapping) else [x]
    if not all(value.is_floating_point() for value in features):
        raise ValueError("gradients need features that are floating-point numbers")
    slopes = {id(value): value.detach().clone().requires_grad_() for value in features}
    with torch.enable_grad():
        call = one.call.mapped(lambda _, value: slopes.get(id(value), value))
        output = as_table(call.run(shadow_of(one.model)), call, one.level)
        value = output.values[one.row, one.target]
        found = torch.autograd.grad(value, list(slopes.values()), allow_unused=True)
    scores = []
    for own, slope in zip(features, found, strict=True):
        known = torch.zeros_like(own) if slope is None else slope
        scores.append((known * own if times_input else known.abs()).flatten(1).sum(1))
    return torch.cat(scores)


def _occlusion(one: Removal) -> Tensor:
    """How much the output falls when the features of one node are set to 0."""
    kept = ~torch.eye(one.num_nodes, dtype=torch.bool)
    return one.prediction[one.target] - one.predictions(kept)[:, one.target]


def _made(name: str, make: Callable[..., Method]) -> Scorer:
    """A method of `xdegree.baselines`, made when it is used: some need a package of their own."""

    def method(one: Instance) -> Scores:
        return make()(one)

    return _by_instance(method, name not in _UNSIGNED_BASELINES)


def _by_instance(method: Method, signed: bool | None) -> Scorer:
    def nodes(one: Removal) -> Tensor:
        edge_index = find_edge_index(one.call)
        if edge_index is None or isinstance(one.call.x, Mapping):
            raise ValueError("methods of xdegree.baselines take x and edge_index")
        rest = {name: value for name, value in one.call.named_values() if value is not one.call.x}
        kwargs = {name: value for name, value in rest.items() if value is not edge_index and value is not None}
        index = None if one.level == "graph" else one.row
        asked = instance(one.model, one.call.x, edge_index, index=index, target=one.target, **kwargs)
        return method(asked).node.detach()

    return Scorer(nodes, signed=signed is not False)
