"""What a model predicts when some of its nodes are taken away, in three ways: blank features, cut edges, no nodes.

```python
from xdegree.removal import Removal

away = Removal(model, x, edge_index, index=5)
away.values(kept, "edges")  # the explained probability (or number) with the edges of all other nodes cut
```

Many variants of the graph are computed in one pass, side by side, where the model takes several graphs at once. Every
pass has the whole graph among them: if that does not get the model's own prediction, they are computed one by one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from .engine.registry import aten, op_schema
from .engine.torch_private import OpOverload
from .locality.parts import Place, subgraph_call
from .locality.stacking import Stack, Variants
from .model_call.call import (
    Level,
    ModelCall,
    as_table,
    check_index,
    check_target,
    find_batch,
    find_edges,
    model_call,
)
from .model_call.shadow_model import Plain, check_call, shadow_of
from .model_call.split_points import find_source, mean_features

Way = Literal["zero", "mean", "edges", "nodes"]
"""Features set to zero or to the mean; all edges at a node cut; the node removed from the graph and from pooling."""
WAY_NAMES: dict[Way, str] = {
    "zero": "features set to zero",
    "mean": "features set to the mean",
    "edges": "edges cut",
    "nodes": "nodes removed",
}
Task = Literal["classification", "binary", "regression"]
ROUNDING = 1e-3
"""By what share of the largest output the whole graph may differ between a pass of its own and one of many."""


class Removal:
    """One prediction without some of its nodes; the nodes of all types are numbered one after another.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, as for `explain`.
        index: the node, link or graph whose prediction is meant; None if there is only one.
        target: the class (or output); the largest output by default.
        task: ``"classification"``, outputs are logits (or probabilities) of classes, of which one is true;
            ``"binary"``, each is that of a yes or no; ``"regression"``, numbers. By default classification for several
            outputs and regression for one, but binary for what a last sigmoid gives.
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
        self._begin(model, call, index, target, task, level)

    @classmethod
    def at(
        cls, model: Any, place: Place, target: int, task: Task | None, level: Level, mean: Tensor | None = None
    ) -> "Removal":
        """The same for one explained row of a call that is known already, or of a part of it with the mean of all."""
        made = object.__new__(cls)
        made._begin(model, place.call, int(place.rows[0]), target, task, level)
        made._mean = mean
        return made

    def _begin(self, model: Any, call: ModelCall, index: Any, target: Any, task: Any, level: Any) -> None:
        check_call(model, call)
        self.model, self.call = model, _without_shared(call)
        with torch.no_grad(), Plain(call.random_states) as seen:
            try:
                table = as_table(call.run(shadow_of(model)), call, level)
            except (RuntimeError, AttributeError, TypeError):
                find_source(call)  # which says what is wrong with the features
                raise
        self._shadow = None if any(op_schema(op).draws for op in seen.operations) else _without_caches(shadow_of(model))
        self.level, self.row = table.level, check_index(index, table)
        self.prediction = table.values[self.row]
        """The model's own output, ``[C]``."""
        self.target = check_target(target, self.prediction)
        self.task = checked_task(task, table.values, seen.operations)
        self._are_probabilities = are_probabilities(table.values, self.task, seen.operations)
        self._num_rows = len(table.values)
        self._known: dict[tuple[str, bytes], Tensor] = {}
        self._mean: Tensor | None = None
        self._stackable = self._shadow is not None and not isinstance(call.x, Mapping)

    @property
    def whole(self) -> float:
        """What is measured of the whole graph."""
        return float(self.measured(self.prediction[None])[0])

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
            raise ValueError(
                "nodes at a link are spared where edge_label_index and one type of nodes are given; set features to"
                ' zero instead: without="features" (of a Removal, "zero")'
            )
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
        return self.measured(self.predictions(kept, way))

    def measured(self, rows: Tensor) -> Tensor:
        """The probability of the class ``[K]``, or the number of a regression, in outputs ``[K, C]``."""
        return measured(rows, self.target, self.task, self._are_probabilities)

    def predictions(self, kept: Tensor, way: Way = "zero") -> Tensor:
        """The explained row ``[K, C]`` with only the kept nodes ``[K, N]``; each choice is computed once."""
        if way not in get_args(Way):
            raise ValueError(f"way must be one of {get_args(Way)} (got {way!r})")
        masks = self.flat(kept).bool().to(self.prediction.device)
        if way in ("edges", "nodes"):
            masks = masks.clone()
            masks[:, self.explained_nodes] = True
        keys = [(way, row.tobytes()) for row in masks.cpu().numpy()]
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        if new:
            self._known.update(zip(new, self._computed(masks[list(new.values())], way), strict=True))
        return torch.stack([self._known[key] for key in keys])

    def with_edges(self, kept: Tensor) -> Tensor:
        """The explained row ``[K, C]`` with only some edges ``[K, E]``: nodes that none of them touches are removed.

        An explained node, or the ends of an explained link, stay. Where no node is left, pooling gives zeros, or NaN
        stands for what the model cannot compute.
        """
        edges, found = self._variants.edge_index, []
        for some in kept.to(edges.device).split(self._variants.at_once):
            nodes = torch.zeros(len(some), self.num_nodes, dtype=torch.bool, device=edges.device)
            variant, edge = some.nonzero(as_tuple=True)
            nodes[variant, edges[0, edge]] = nodes[variant, edges[1, edge]] = True
            nodes[:, self.explained_nodes] = True
            found.append(self._of_variants(nodes, some))
        return torch.cat(found)

    def _computed(self, kept: Tensor, way: Way) -> Tensor:
        if isinstance(self.call.x, Mapping):
            return torch.stack([self._single(*self._typed(mask, way)) for mask in kept])
        found = []
        for some in kept.split(self._variants.at_once):
            everything = torch.ones_like(some)
            if way in ("zero", "mean"):
                edges = find_edges(self.call)
                count = 0 if edges is None else edges.shape[1]
                found.append(self._of_variants(everything, some.new_ones(len(some), count), self._blanked(some, way)))
            else:
                ends = self._variants.edge_index
                nodes = some if way == "nodes" else everything
                found.append(self._of_variants(nodes, some[:, ends[0]] & some[:, ends[1]]))
        return torch.cat(found)

    @property
    def _variants(self) -> Variants:
        return Variants(self.model, self.call, self.row, self.level, self._num_rows)

    def _of_variants(self, nodes: Tensor, edges: Tensor, x: Tensor | None = None) -> Tensor:
        """The explained row ``[K, C]`` of variants with some nodes ``[K, N]`` and edges, or features ``[K, N, F]``.

        The whole graph comes last in a stack, so that the others may end without any node, and as the proof.
        """
        if self._stackable and (len(nodes) > 1 or not bool(nodes.any())):
            whole = [torch.cat([mask, torch.ones_like(mask[:1])]) for mask in (nodes, edges)]
            features = None if x is None else torch.cat([x, self.call.x.unsqueeze(0)])
            try:
                stack = self._variants.stack(*whole)
                rows = self._rows(stack, features)
            except (RuntimeError, IndexError, ValueError, TypeError, AssertionError):
                rows = None  # the model is made for one graph
            if rows is not None and self._is_own(rows[-1]):
                return rows[:-1]
            self._stackable = False
        variants = range(len(nodes))
        return torch.stack([self._alone(nodes[i], edges[i], None if x is None else x[i]) for i in variants])

    def _alone(self, nodes: Tensor, edges: Tensor, x: Tensor | None) -> Tensor:
        if x is not None:
            return self._single(self.call, self.row, None, (self.call.x, x))
        stack = self._variants.stack(nodes[None], edges[None])
        try:
            return self._single(stack.call, int(stack.rows[0]), stack.num_rows)
        except (RuntimeError, IndexError, ValueError) as error:
            if not bool(nodes.any()):
                return torch.full_like(self.prediction, torch.nan)
            if bool(nodes.all()):
                raise
            raise ValueError(
                f"the model does not work without some of its nodes ({error}); let them stay and set their features to"
                ' zero instead: without="features" (of a Removal, "zero")'
            ) from error

    def _rows(self, stack: Stack, x: Tensor | None) -> Tensor | None:
        """The explained rows of a stack; None if its output has other rows."""
        call, known = stack.call, {id(value) for value in self.call.tensors()}
        ours = [(value, value) for value in call.tensors() if id(value) not in known]
        output = self._run(call, *ours if x is None else [(call.x, x.flatten(0, 1)), *ours])
        if not isinstance(output, Tensor) or not output.dim() or len(output) != stack.num_rows:
            return None
        return output.reshape(stack.num_rows, -1)[stack.rows]

    def _is_own(self, row: Tensor) -> bool:
        if row.shape != self.prediction.shape:
            return False
        near = (row - self.prediction).abs() <= ROUNDING * self.prediction.abs().amax()
        return bool((near | (row == self.prediction)).all())

    def _single(self, call: ModelCall, row: int, num_rows: int | None = None, *given: tuple[Any, Any]) -> Tensor:
        """A row of a call by itself."""
        values = as_table(self._run(call, *given), call, self.level).values
        if len(values) != (num_rows or self._num_rows):
            raise ValueError(f"it predicts {len(values)} rows, not {num_rows}")
        return values[row]

    def _run(self, call: ModelCall, *given: tuple[Any, Any]) -> Any:
        """The model's output; one that draws random numbers gets the same ones in every pass, which takes longer.

        Given is what is replaced (old, new); tensors that were made for this pass alone, by themselves, as others are
        copied before the model sees them.
        """
        if self._shadow is None:
            with torch.no_grad(), Plain(call.random_states):
                return call.run(_without_caches(shadow_of(self.model)), *given)
        with torch.no_grad():
            return call.run(self._shadow, *given)

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

    def _blanked(self, kept: Tensor, way: Way, x: Tensor | None = None) -> Tensor:
        """Features ``[K, N, F]`` with those of all but the kept nodes ``[K, N]`` set to zero or to the mean."""
        x = self.call.x if x is None else x
        assert isinstance(x, Tensor)
        if not x.is_floating_point():
            raise ValueError("features that are integers have no zero and no mean that stands for nothing")
        mean = mean_features(x) if self._mean is None else self._mean
        blank = torch.zeros_like(x) if way == "zero" else mean.expand_as(x)
        return torch.where(kept.reshape(*kept.shape, *[1] * (x.dim() - 1)), x, blank)

    def _typed(self, kept: Tensor, way: Way) -> tuple[ModelCall, int, int]:
        """The call of a graph with types of nodes, without some; its explained row, and how many it has."""
        linked = self._of_type(kept)
        if way in ("zero", "mean"):
            new = {id(x): self._blanked(linked[kind][None], way, x)[0] for kind, x in self._features.items()}
            return self.call.mapped(lambda _, value: new.get(id(value), value)), self.row, self._num_rows
        every = {kind: torch.arange(len(mask), device=mask.device) for kind, mask in linked.items()}
        nodes = {kind: ids[linked[kind]] for kind, ids in every.items()} if way == "nodes" else every
        call, row = self._of(linked, nodes)
        return call, row, len(nodes[self._row_type()]) if self.level == "node" else self._num_rows

    def renumbered(self, generator: torch.Generator) -> tuple["Removal", Tensor]:
        """The same prediction of the graph with its nodes in a random order, and the order ``[N]``."""
        batch, order = find_batch(self.call), {}
        for kind, size in self.sizes.items():
            drawn = torch.randperm(size, generator=generator)
            order[kind] = drawn if batch is None else drawn[torch.argsort(batch[drawn], stable=True)]
        call, row = self._of(self._of_type(torch.ones(self.num_nodes, dtype=torch.bool)), order)
        made = object.__new__(Removal)
        made._begin(self.model, call, row, self.target, self.task, self.level)
        return made, torch.cat([ids + self._offset(kind) for kind, ids in order.items()])

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


def measured(rows: Tensor, target: int, task: Task, already: bool) -> Tensor:
    """What is measured of outputs ``[K, C]``: the probability of the class, or the number of a regression, ``[K]``.

    Outputs that are probabilities already are taken as they are.
    """
    if task == "regression" or already:
        return rows[:, target]
    return rows[:, target].sigmoid() if task == "binary" else rows.softmax(-1)[:, target]


def are_probabilities(rows: Tensor, task: Task, operations: Sequence[OpOverload]) -> bool:
    """Whether a model's outputs ``[K, C]`` are probabilities: of classes with sums of 1, or each behind a sigmoid."""
    if task == "classification":
        sums = rows.sum(-1)
        return bool((rows >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)
    return task == "binary" and _are_squashed(rows, operations)


def _are_squashed(rows: Tensor, operations: Sequence[OpOverload]) -> bool:
    """Whether a softmax or sigmoid put outputs between 0 and 1: what follows it only moves numbers or joins them."""
    for op in reversed(operations):
        schema = op_schema(op)
        if schema.squashes:
            return bool(((rows >= 0) & (rows <= 1)).all())
        keeps = schema.moves or schema.increases or schema.carries_nothing
        if not keeps and op.overloadpacket not in (aten.cat, aten.stack):
            return False
    return False


def checked_task(task: Any, rows: Tensor, operations: Sequence[OpOverload]) -> Task:
    """What the user said that outputs ``[K, C]`` are, or what they seem to be."""
    single = rows.shape[-1] == 1
    if task is None and _are_squashed(rows, operations) and not are_probabilities(rows, "classification", operations):
        return "binary"
    if task is None:
        return "regression" if single else "classification"
    if task not in get_args(Task):
        raise ValueError(f"task must be one of {get_args(Task)} (got {task!r})")
    if task == "classification" and single:
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
