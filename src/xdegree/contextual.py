"""The contextual score φ: what a group adds to the contexts that it stands in.

    φ(S) = E over C ~ RW(N_L(S)) of f^D(S ∪ C) − f^D(C)

A context C is what a random walk visits. The walk starts at a node drawn evenly from N_L(S), the nodes within L hops
of the group but not of the group itself, goes on along edges to a node drawn evenly from those of N_L(S), and stays
where it is if there is none. With nothing around the group the only context is the empty one, and φ is f^D.

Where few contexts are possible the expectation is exact: all of them, each with its probability. Else walks are drawn.
What they meet is a function of the seed and the group alone: not of other groups, of their order, of what was scored
before. Exact scores follow when nodes are renumbered. Drawn ones do as far as features and structure tell nodes apart:
walks are drawn along names that do not depend on the numbering, and two nodes with the same name (mirror images, say)
are told apart by their ids, so for them only the distribution stays the same.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from .adjacency import Adjacency, Bits, Words, mask, members, scramble, union
from .computation_graph import Workplace, trace, workplace
from .decompose import whole_survey
from .edges import find_edge_index
from .inputs import ModelCall, model_call, prepare, short
from .memory import Memory, budget
from .options import Options
from .outputs import as_table, check_index, check_target
from .scores import Reader, Reading, check_choices
from .sources import find_source

Kind = Literal["walks", "neighbours", "none"]

_STATES_PER_CONTEXT = 8  # a walk that has seen the same nodes may stand on any of them


@dataclass(frozen=True)
class Contexts:
    """Which contexts a group is seen in.

    Args:
        kind: ``"walks"``, random walks around the group, as the paper says; ``"neighbours"``, as the authors' code
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
                raise ValueError(f"Contexts.{name} must be a whole number of at least {least} (got {value!r})")

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


def contextual_scores(
    model: Callable[..., Any],
    *args: Any,
    groups: Iterable[Iterable[int]],
    index: int | None = None,
    target: int | None = None,
    contexts: Contexts | None = None,
    seed: int = 0,
    reading: Reading = "contribution",
    layer: str | None = None,
    graph: Tensor | None = None,
    options: Options | None = None,
    memory: Memory = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Tensor:
    """The contextual score φ of each group, ``[K]`` in float64, from one engine call.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        groups: lists of node ids. Nodes outside the computation graph contribute nothing and are left out.
        index: the node (or, in a batch, the graph) that is explained.
        target: the class that is explained; the predicted one by default.
        contexts: how many, how long, how far: see `Contexts`.
        seed: draws the walks where contexts are too many to take all of them.
        reading: what f^D is, as in `explain`.
        layer: where the strength is read, as in `explain`.
        graph: edges ``[2, E]`` to walk along; those of the model's ``edge_index`` by default.
        options: choices among rules; the paper's by default.
        memory: budget for the portions, as in `decompose`.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    scorer = Scorer.of(
        model,
        model_call(model, args, {**kwargs, **(model_kwargs or {})}),
        index=index,
        target=target,
        contexts=contexts,
        seed=seed,
        reading=reading,
        layer=layer,
        graph=graph,
        options=options,
        memory=memory,
    )
    asked = [scorer.inside(group, f"group {number}") for number, group in enumerate(groups)]
    scorer.score(contextual=asked)
    return torch.tensor([scorer.contextual[group] for group in asked], dtype=torch.float64)


def interaction(
    model: Callable[..., Any],
    *args: Any,
    a: Iterable[int],
    b: Iterable[int],
    index: int | None = None,
    target: int | None = None,
    reading: Reading = "contribution",
    layer: str | None = None,
    options: Options | None = None,
    memory: Memory = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> float:
    """What two groups do together beyond what each does alone: f^D(a ∪ b) − f^D(a) − f^D(b).

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        a: node ids.
        b: node ids, none of them in a.
        index: the node (or, in a batch, the graph) that is explained.
        target: the class that is explained; the predicted one by default.
        reading: what f^D is, as in `explain`.
        layer: where the strength is read, as in `explain`.
        options: choices among rules; the paper's by default.
        memory: budget for the portions, as in `decompose`.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    call = model_call(model, args, {**kwargs, **(model_kwargs or {})})
    none = torch.empty(2, 0, dtype=torch.long)  # nothing walks here
    chosen: dict[str, Any] = {"index": index, "target": target, "reading": reading, "layer": layer, "options": options}
    scorer = Scorer.of(model, call, graph=none, memory=memory, **chosen)
    a, b = _listed(a, "a"), _listed(b, "b")
    first, second = scorer.inside(a, "a"), scorer.inside(b, "b")
    if both := sorted(set(a) & set(b)):
        raise ValueError(f"a and b must have no node in common (got {short(both)} in both)")
    scorer.score(contributions=[first, second, first | second])
    f = scorer.contributions
    return f[first | second] - f[first] - f[second]


class Scorer:
    """f^D and φ of groups of one prediction. Nothing is scored twice, and one request is one engine call.

    Groups are sets of bits here: bit i stands for node ``nodes[i]``.
    """

    def __init__(
        self,
        model: Any,
        call: ModelCall,
        work: Workplace,
        reader: Reader,
        adjacency: Adjacency,
        prediction: Tensor,
        index: int,
        hops: int,
        contexts: Contexts,
        seed: int,
        memory: Memory,
    ) -> None:
        self.model, self.call, self.work, self.reader, self.memory = model, call, work, reader, memory
        self.adjacency, self.contexts, self.seed = adjacency, contexts, seed
        self.prediction, self.index, self.target = prediction, index, int(reader.classes[0])
        self.nodes: list[int] = work.field.tolist()
        self.contributions: dict[Bits, float] = {}
        """f^D of all groups that were scored so far."""
        self.contextual: dict[Bits, float] = {}
        """φ of all groups that were asked for so far."""
        self.calls = 0
        """How often the engine was called."""
        self.rounding = 64 * torch.finfo(call.x.dtype).eps
        self._source = find_source(model, call)
        self._place = {node: bit for bit, node in enumerate(self.nodes)}
        self._here = torch.tensor([ids[0] for ids in work.groups(work.field.unsqueeze(1))], dtype=torch.long)
        self._hops = max(1, hops) if contexts.hops is None else contexts.hops
        self._length = self._hops if contexts.length is None else contexts.length

    @classmethod
    def of(
        cls,
        model: Any,
        call: ModelCall,
        *,
        index: Any = None,
        target: Any = None,
        contexts: Contexts | None = None,
        seed: int = 0,
        reading: Any = "contribution",
        layer: str | None = None,
        graph: Tensor | None = None,
        options: Options | None = None,
        memory: Memory = None,
    ) -> "Scorer":
        """Everything is checked, and the model is run once, plain, to see what it predicts and how deep it is."""
        check_choices(reading, None, memory)
        contexts, options, seed = Contexts.of(contexts), Options.of(options), _check_seed(seed)
        prepare(model, call)
        find_source(model, call)  # says what is wrong with the features
        if not isinstance(call.x, Tensor):
            raise NotImplementedError(
                "groups grow in a graph with one type of nodes; with several use decompose with groups by type"
            )
        seen = trace(model, call)
        table = as_table(seen.output, call)
        index = check_index(index, table)
        target = check_target(target, table.values[index])
        edges = _edges(graph, call)
        work = workplace(model, call, seen, torch.tensor([index]), table.level)
        layer = layer or seen.output_layer
        reader = Reader(reading, work.rows, torch.tensor([target]), layer, options, level=table.level)
        marks = call.x[work.field].reshape(len(work.field), -1)
        if table.level == "node":  # the explained node is like no other
            marks = torch.cat([marks, (work.field == index).to(marks).unsqueeze(1)], 1)
        adjacency = Adjacency(_numbered(edges, work.field, len(call.x)), len(work.field), marks)
        row = table.values[index].detach().clone()
        return cls(model, call, work, reader, adjacency, row, index, seen.hops, contexts, seed, memory)

    def inside(self, group: Iterable[int], what: str) -> Bits:
        """A user's group as bits, without the nodes that cannot contribute."""
        nodes = _listed(group, what)
        outside = [node for node in nodes if not 0 <= node < self.work.num_nodes]
        if outside:
            raise ValueError(f"{what} names nodes {short(outside)}, but ids go from 0 to {self.work.num_nodes - 1}")
        return union(self._place[node] for node in nodes if node in self._place)

    def own(self, group: Bits) -> frozenset[int]:
        """A group by the ids that the user knows."""
        return frozenset(self.nodes[bit] for bit in members(group))

    def score(self, contributions: Iterable[Bits] = (), contextual: Iterable[Bits] = ()) -> None:
        """See to it that f^D of some groups and φ of others are known."""
        seen_in = {group: self.contexts_of(group) for group in contextual if group not in self.contextual}
        wanted = dict.fromkeys(contributions)  # a set that keeps its order
        relative = self.contexts.kind == "walks"
        for group, contexts in seen_in.items():
            for context in contexts:
                wanted[group | context] = None
                if relative:
                    wanted[context] = None
        self._ask([group for group in wanted if group not in self.contributions])
        f = self.contributions
        for group, contexts in seen_in.items():
            self.contextual[group] = sum(
                weight * (f[group | context] - (f[context] if relative else 0)) for context, weight in contexts.items()
            )

    def _ask(self, groups: list[Bits]) -> None:
        """One engine call; more only where the groups' masks alone would take a quarter of the memory."""
        x = self.work.call.x
        at_once = max(1, budget(self.memory, x.device) // (4 * len(x) * x.element_size())) if groups else 1
        for start in range(0, len(groups), at_once):
            some = groups[start : start + at_once]
            share = x.new_zeros(len(x), len(some))  # rows first, see `portions.rows`
            share[self._here] = mask(some, len(self.nodes)).to(share)
            with whole_survey(self.model, self.call, self._source):
                scores = self.reader.scores(self.model, self.work.call, share.t(), self.memory)
            self.calls += 1
            self.contributions.update(zip(some, scores.tolist(), strict=True))

    def contexts_of(self, group: Bits) -> dict[Bits, float]:
        """The contexts of a group and the weight of each."""
        if self.contexts.kind == "none":
            return {0: 1.0}
        if self.contexts.kind == "neighbours":
            around = [0, *(1 << node for node in members(self.adjacency.around(group)))]
            return dict.fromkeys(around, 1 / len(around))
        region = self.adjacency.within(group, self._hops) & ~group
        if not region:
            return {0: 1.0}
        return self._enumerated(region) or self._drawn(group, region)

    def _enumerated(self, region: Bits) -> dict[Bits, float] | None:
        """All contexts with their probabilities; None if there are too many."""
        starts = list(members(region))
        inside = {node: list(members(self.adjacency.touching[node] & region)) or [node] for node in starts}
        walks = {(1 << node, node): 1 / len(starts) for node in starts}
        for _ in range(self._length):
            longer: dict[tuple[Bits, int], float] = {}
            for (seen, node), weight in walks.items():
                steps = inside[node]
                weight /= len(steps)  # noqa: PLW2901
                for step in steps:
                    state = (seen | 1 << step, step)
                    longer[state] = longer.get(state, 0.0) + weight
            if len(longer) > _STATES_PER_CONTEXT * self.contexts.exact:
                return None
            walks = longer
        contexts: dict[Bits, float] = {}
        for (seen, _), weight in walks.items():
            contexts[seen] = contexts.get(seen, 0.0) + weight
        return contexts if len(contexts) <= self.contexts.exact else None

    def _drawn(self, group: Bits, region: Bits) -> dict[Bits, float]:
        """Contexts that walks found, weighted by how many of them did."""
        rank = self.adjacency.rank
        starts = sorted(members(region), key=rank.__getitem__)
        inside: dict[int, list[int]] = {}
        contexts: dict[Bits, float] = {}
        for start, *steps in self._draws(group).tolist():
            node = starts[int(start * len(starts))]
            seen = 1 << node
            for step in steps:
                if node not in inside:
                    ways = members(self.adjacency.touching[node] & region)
                    inside[node] = sorted(ways, key=rank.__getitem__) or [node]
                node = inside[node][int(step * len(inside[node]))]
                seen |= 1 << node
            contexts[seen] = contexts.get(seen, 0.0) + 1 / self.contexts.walks
        return contexts

    def _draws(self, group: Bits) -> Any:
        """Even draws from 0 to 1, ``[walks, length + 1]``, a function of the seed and the group's own keys."""
        keys = np.array([self.adjacency.keys[node] for node in members(group)], dtype=np.uint64)
        seed = scramble(np.array([self.seed % 2**64], dtype=np.uint64))
        start = scramble(seed + np.add.reduce(scramble(keys)))
        shape = (self.contexts.walks, self._length + 1)
        counter: Words = np.arange(shape[0] * shape[1], dtype=np.uint64)
        numbers = scramble(start + counter)
        return ((numbers >> np.uint64(11)) * 2.0**-53).reshape(shape)


def _listed(group: Any, what: str) -> list[int]:
    """Node ids as a list of whole numbers, or a clear error."""
    if isinstance(group, Tensor):
        group = group.reshape(-1).tolist()
    if isinstance(group, str | bytes) or not isinstance(group, Iterable):
        raise TypeError(f"{what} must be a list of node ids (got {group!r})")
    nodes = [item.item() if hasattr(item, "item") else item for item in group]
    if any(isinstance(node, bool) or not isinstance(node, int) for node in nodes):
        raise TypeError(f"{what} must hold whole node ids (got {short(nodes)})")
    return nodes


def _check_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed must be a whole number (got {seed!r})")
    return seed


def _edges(graph: Tensor | None, call: ModelCall) -> Tensor:
    """The edges along which groups are connected, or a clear error."""
    edges = find_edge_index(call) if graph is None else graph
    if edges is None:
        raise ValueError(
            "groups grow along edges, but no edge_index [2, E] is among the model's arguments; give it as graph=…"
        )
    if not isinstance(edges, Tensor) or edges.dtype != torch.long or edges.dim() != 2 or edges.shape[0] != 2:
        raise ValueError("graph must be edges, a tensor [2, E] of whole numbers")
    if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < len(call.x)):
        raise ValueError(f"graph must name nodes from 0 to {len(call.x) - 1}")
    return edges


def _numbered(edges: Tensor, nodes: Tensor, num_nodes: int) -> Tensor:
    """The edges among some nodes, numbered by their place in that list."""
    place = edges.new_full((num_nodes,), -1)
    place[nodes] = torch.arange(len(nodes), device=edges.device)
    there = place[edges]
    return there[:, (there >= 0).all(0)]
