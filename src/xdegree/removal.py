"""What a model predicts when some of its nodes are taken away, in three ways: blank features, cut edges, no nodes.

```python
from xdegree.removal import Removal

away = Removal(model, x, edge_index, index=5)
away.values(kept, "edges")  # the explained probability (or number) with the edges of all other nodes cut
```
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from .engine.registry import op_schema
from .locality.prepared import subgraph_call
from .model_call.call import (
    ModelCall,
    as_table,
    check_call,
    check_index,
    check_target,
    find_batch,
    find_edges,
    model_call,
)
from .model_call.shadow_model import Plain, shadow_of

Way = Literal["zero", "mean", "edges", "nodes"]
"""Features set to zero or to the mean; all edges at a node cut; the node removed from the graph and from pooling."""
WAY_NAMES: dict[Way, str] = {
    "zero": "features set to zero",
    "mean": "features set to the mean",
    "edges": "edges cut",
    "nodes": "nodes removed",
}
Task = Literal["classification", "binary", "regression"]


class Removal:
    """One prediction without some of its nodes; the nodes of all types are numbered one after another.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, as for `explain`.
        index: the node, link or graph whose prediction is meant; None if there is only one.
        target: the class (or output); the largest output by default.
        task: ``"classification"``, outputs are logits (or log-probabilities) of classes; ``"binary"``, one logit;
            ``"regression"``, numbers. By default classification for several outputs and regression for one.
        level: what the rows of the output are, as for `explain`.
        output: which part of the output is meant, as for `explain`.
        model_kwargs: keyword arguments of the model whose names are taken here.
        **kwargs: all other keyword arguments of the model.
    """

    def __init__(
        self,
        model: Any,
        *args: Any,
        index: int | None = None,
        target: int | None = None,
        task: Task | None = None,
        level: Any = None,
        output: Any = None,
        model_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        call = replace(model_call(model, args, {**kwargs, **(model_kwargs or {})}), part=output)
        check_call(model, call)
        self.model, self.call = model, _without_shared(call)
        with torch.no_grad(), Plain(call.random_states) as seen:
            table = as_table(call.run(shadow_of(model)), call, level)
        self._shadow = None if any(op_schema(op).draws for op in seen.operations) else _without_caches(shadow_of(model))
        self.level, self.row = table.level, check_index(index, table)
        self.prediction = table.values[self.row]
        """The model's own output, ``[C]``."""
        self.target = check_target(target, self.prediction)
        self.task = _checked_task(task, len(self.prediction))
        self._num_rows = len(table.values)
        self._known: dict[tuple[str, bytes], Tensor] = {}

    @property
    def num_rows(self) -> int:
        """How many predictions the model makes."""
        return self._num_rows

    @property
    def sizes(self) -> dict[Any, int]:
        """How many nodes there are of each type; of a graph without types under the name None."""
        return {kind: len(x) for kind, x in self._features.items()}

    @property
    def num_nodes(self) -> int:
        """Of all types together."""
        return sum(self.sizes.values())

    @property
    def _features(self) -> dict[Any, Tensor]:
        x = self.call.x
        return dict(x) if isinstance(x, Mapping) else {None: x}

    @property
    def explained_nodes(self) -> list[int]:
        """The node, or the two ends of the link, that is explained: cutting and removing spare them."""
        if self.level == "graph":
            return []
        if self.level == "node":
            return [self._offset(self._row_type()) + self.row]
        links = self.call.get("edge_label_index")
        if links is None or len(self.sizes) > 1:
            raise ValueError("nodes at a link are spared where edge_label_index and one type of nodes are given")
        return sorted(set(links[:, self.row].tolist()))

    def flat(self, value: Tensor | Mapping[Any, Tensor]) -> Tensor:
        """What is said of nodes by type ``{type: [n]}`` as one tensor ``[N]``; what is one tensor stays as it is."""
        if isinstance(value, Mapping):
            if missing := [kind for kind, size in self.sizes.items() if len(value.get(kind, ())) != size]:
                raise ValueError(f"one number per node of every type is needed ({missing} do not have that)")
            value = torch.cat([value[kind] for kind in self.sizes])
        if value.shape[-1] != self.num_nodes:
            raise ValueError(f"one number per node is needed, {self.num_nodes} (got {list(value.shape)})")
        return value

    def values(self, kept: Tensor, way: Way = "zero") -> Tensor:
        """What is measured ``[K]``, under each of the masks ``[K, N]`` of nodes that stay: see `measured`."""
        return measured(self.predictions(kept, way), self.target, self.task)

    def predictions(self, kept: Tensor, way: Way = "zero") -> Tensor:
        """The explained row ``[K, C]`` with only the kept nodes ``[K, N]``; each choice is computed once."""
        if way not in get_args(Way):
            raise ValueError(f"way must be one of {get_args(Way)} (got {way!r})")
        return torch.stack([self._prediction(mask, way) for mask in self.flat(kept).bool()])

    def _prediction(self, kept: Tensor, way: Way) -> Tensor:
        kept = kept.to(self.prediction.device)
        if way in ("edges", "nodes"):
            kept = kept.clone()
            kept[self.explained_nodes] = True
        key = (way, kept.cpu().numpy().tobytes())
        if key not in self._known:
            call, row = self._blanked(kept, way) if way in ("zero", "mean") else self._without(kept, way == "nodes")
            output = self._run(call)
            rows = self._rows_without(kept, way)
            values = as_table(output, call, self.level).values
            if len(values) != rows:
                raise ValueError(f"without these nodes the model predicts {len(values)} rows instead of {rows}")
            self._known[key] = values[row]
        return self._known[key]

    def _run(self, call: ModelCall) -> Any:
        """The model's output; one that draws random numbers gets the same ones in every pass, which takes longer."""
        if self._shadow is None:
            with torch.no_grad(), Plain(call.random_states):
                return call.run(_without_caches(shadow_of(self.model)))
        with torch.no_grad():
            return call.run(self._shadow)

    def _rows_without(self, kept: Tensor, way: Way) -> int:
        """How many rows the output must have: a model that gives others does not mean the same ones any more."""
        if way != "nodes" or self.level == "graph" or bool(kept.all()):
            return self._num_rows
        return int(self._of_type(kept)[self._row_type()].sum()) if self.level == "node" else 1

    def _of_type(self, kept: Tensor) -> dict[Any, Tensor]:
        return dict(zip(self.sizes, kept.split(list(self.sizes.values())), strict=True))

    def _offset(self, kind: Any) -> int:
        kinds = list(self.sizes)
        return sum(self.sizes[k] for k in kinds[: kinds.index(kind)])

    def _row_type(self) -> Any:
        """The type of node that the rows of the output are about."""
        if self.call.part in self.sizes and len(self.sizes) > 1:
            return self.call.part
        fitting = [kind for kind, size in self.sizes.items() if size == self._num_rows]
        if len(fitting) != 1:
            raise ValueError(
                f"which type of node the output's {self._num_rows} rows are about cannot be told (of {self.sizes})"
            )
        return fitting[0]

    def _blanked(self, kept: Tensor, way: Way) -> tuple[ModelCall, int]:
        masks, new = self._of_type(kept), {}
        for kind, x in self._features.items():
            if not x.is_floating_point():
                raise ValueError("features that are integers have no zero and no mean that stands for nothing")
            blank = torch.zeros_like(x) if way == "zero" else mean_features(x).expand_as(x)
            new[id(x)] = torch.where(masks[kind].reshape(-1, *[1] * (x.dim() - 1)), x, blank)
        return self.call.mapped(lambda _, value: new.get(id(value), value)), self.row

    def _without(self, kept: Tensor, nodes_too: bool) -> tuple[ModelCall, int]:
        """The call without the edges of some nodes, or without the nodes as well; and the explained row in it."""
        linked = self._of_type(kept)
        every = {kind: torch.arange(len(mask), device=mask.device) for kind, mask in linked.items()}
        return self._of(linked, {k: ids[linked[k]] for k, ids in every.items()} if nodes_too else every)

    def renumbered(self, generator: torch.Generator) -> tuple[ModelCall, int, Tensor]:
        """The same call with its nodes in a random order: the call, its explained row, and the order ``[N]``."""
        batch, order = find_batch(self.call), {}
        for kind, size in self.sizes.items():
            drawn = torch.randperm(size, generator=generator)
            order[kind] = drawn if batch is None else drawn[torch.argsort(batch[drawn], stable=True)]
        call, row = self._of(self._of_type(torch.ones(self.num_nodes, dtype=torch.bool)), order)
        return call, row, torch.cat([ids + self._offset(kind) for kind, ids in order.items()])

    def _of(self, linked: dict[Any, Tensor], nodes: dict[Any, Tensor]) -> tuple[ModelCall, int]:
        """The call with some nodes, in this order, and the edges between linked ones; the explained row in it."""
        edges = find_edges(self.call)
        if edges is None:
            raise ValueError("edges can be cut where the model takes edge_index [2, E], or a dict of them by type")
        place = {kind: torch.full((size,), -1) for kind, size in self.sizes.items()}
        for kind, ids in nodes.items():
            place[kind] = place[kind].to(ids.device)
            place[kind][ids] = torch.arange(len(ids), device=ids.device)
        row = int(place[self._row_type()][self.row]) if self.level == "node" else self.row
        if not isinstance(edges, Tensor):
            return _typed_part(self.call, edges, linked, nodes, place), row
        own = (linked[None][edges[0]] & linked[None][edges[1]]).nonzero().flatten()
        links = self.call.get("edge_label_index")
        if isinstance(links, Tensor):
            if len(nodes[None]) < self.num_nodes:  # other links may have lost their ends
                links, row = links[:, self.row : self.row + 1], 0
            links = place[None][links]
        return subgraph_call(self.call, edges, nodes[None], own, place[None][edges[:, own]], links), row


def _typed_part(
    call: ModelCall,
    edges: Mapping[Any, Tensor],
    linked: Mapping[Any, Tensor],
    nodes: Mapping[Any, Tensor],
    place: Mapping[Any, Tensor],
) -> ModelCall:
    """The part of a call whose arguments are dicts by type of node or edge."""
    inside = {kind: linked[kind[0]][ends[0]] & linked[kind[-1]][ends[1]] for kind, ends in edges.items()}

    def part(kind: Any, value: Any) -> Any:
        if kind in inside and value is edges[kind]:
            ends = value[:, inside[kind]]
            return torch.stack([place[kind[0]][ends[0]], place[kind[-1]][ends[1]]])
        chosen = inside.get(kind, nodes.get(kind))
        size = len(inside[kind]) if kind in inside else len(place.get(kind, ()))
        fits = isinstance(value, Tensor) and value.dim() and chosen is not None and len(value) == size
        return value[chosen] if fits else value

    def typed(value: Any) -> Any:
        return {kind: part(kind, item) for kind, item in value.items()} if isinstance(value, Mapping) else value

    kwargs = {name: typed(value) for name, value in call.kwargs.items()}
    return replace(call, args=tuple(typed(value) for value in call.args), kwargs=kwargs)


def measured(rows: Tensor, target: int, task: Task) -> Tensor:
    """What is measured of outputs ``[K, C]``: the probability of the class, or the number of a regression, ``[K]``.

    Outputs that are probabilities already (not negative, sums of 1) are taken as they are.
    """
    if task == "regression":
        return rows[:, target]
    if task == "binary":
        return rows[:, target].sigmoid()
    sums = rows.sum(-1)
    already = bool((rows >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)
    return (rows if already else rows.softmax(-1))[:, target]


def mean_features(x: Tensor) -> Tensor:
    """The mean features ``[F]`` of nodes, 0 in columns that do not vary: a node without properties of its own."""
    return torch.where((x == x[:1]).all(0), x.new_zeros(()), x.mean(0))


def _checked_task(task: Any, outputs: int) -> Task:
    if task is None:
        return "classification" if outputs > 1 else "regression"
    if task not in get_args(Task):
        raise ValueError(f"task must be one of {get_args(Task)} (got {task!r})")
    if task == "classification" and outputs == 1:
        raise ValueError('one output is no choice among classes; task is "binary" (a logit) or "regression"')
    found: Task = task
    return found


def _without_caches(shadow: Any) -> Any:
    """A shadow whose layers forget the edges that they kept (``cached=True``): they would not see others."""
    for module in shadow.modules() if isinstance(shadow, nn.Module) else ():
        for name in [name for name in vars(module) if name.startswith("_cached_")]:
            setattr(module, name, None)
        if vars(module).get("cached") is True:
            vars(module)["cached"] = False
    return shadow


def _without_shared(call: ModelCall) -> ModelCall:
    """The call with a tensor of its own for each type of nodes, as they are told apart by identity."""
    x = call.x
    if not isinstance(x, Mapping) or len({id(v) for v in x.values()}) == len(x):
        return call
    own = {kind: v.clone() for kind, v in x.items()}
    args = tuple(own if value is x else value for value in call.args)
    return replace(call, args=args, kwargs={name: own if value is x else value for name, value in call.kwargs.items()})
