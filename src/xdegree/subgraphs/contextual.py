"""The contextual score φ: what a group adds to the contexts that it stands in.

    φ(S) = E over C ~ RW(N_L(S)) of f^D(S ∪ C) − f^D(C)

A group that has no context but the empty one has φ = f^D. `contexts` says which contexts a group has.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..attribution.decompose import whole_survey
from ..attribution.request import Question
from ..attribution.scores import Reader, Reading, check_choices
from ..engine.options import Options
from ..locality.computation_graph import workplace
from ..locality.message_flow import trace
from ..locality.subgraph_call import Workplace
from ..model_call.call import ModelCall, model_call, prepare, short
from ..model_call.edges import find_edge_index, is_edges
from ..model_call.memory import Memory, budget
from ..model_call.outputs import as_table, check_index
from ..model_call.split_points import find_source
from .adjacency import Adjacency, Bits, mask, members, union
from .contexts import Contexts, Surroundings


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
    call = model_call(model, args, {**kwargs, **(model_kwargs or {})})
    scorer = Scorer.of(model, call, index, target, reading, layer, options, memory, graph, contexts, seed)
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
    scorer = Scorer.of(model, call, index, target, reading, layer, options, memory, none)
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
        surroundings: Surroundings,
        prediction: Tensor,
        index: int,
        memory: Memory,
    ) -> None:
        self.model, self.call, self.work, self.reader, self.memory = model, call, work, reader, memory
        self.surroundings, self.adjacency = surroundings, surroundings.adjacency
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

    @classmethod
    def of(
        cls,
        model: Any,
        call: ModelCall,
        index: Any = None,
        target: Any = None,
        reading: Reading = "contribution",
        layer: str | None = None,
        options: Options | None = None,
        memory: Memory = None,
        graph: Tensor | None = None,
        contexts: Contexts | None = None,
        seed: int = 0,
    ) -> "Scorer":
        """Everything is checked, and the model is run once, plain, to see what it predicts and how deep it is."""
        check_choices(reading, None, memory)
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"seed must be a whole number (got {seed!r})")
        question = Question(target, reading, layer=layer, options=Options.of(options), memory=memory)
        contexts = Contexts.of(contexts)
        prepare(model, call)
        find_source(model, call)  # says what is wrong with the features
        if not isinstance(call.x, Tensor):
            raise NotImplementedError(
                "groups grow in a graph with one type of nodes; with several use decompose with groups by type"
            )
        seen = trace(model, call)
        table = as_table(seen.output, call)
        index = check_index(index, table)
        classes = question.classes(table.values[[index]])
        edges = _edges(graph, call)
        work = workplace(model, call, seen, torch.tensor([index]), table.level)
        reader = question.reader(work.rows, classes, seen, table.level)
        marks = call.x[work.field].reshape(len(work.field), -1)
        if table.level == "node":  # the explained node is like no other
            marks = torch.cat([marks, (work.field == index).to(marks).unsqueeze(1)], 1)
        adjacency = Adjacency(_numbered(edges, work.field, len(call.x)), len(work.field), marks)
        around = Surroundings(adjacency, contexts, seen.hops, seed)
        return cls(model, call, work, reader, around, table.values[index].detach().clone(), index, memory)

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
        seen_in = {group: self.surroundings.of(group) for group in contextual if group not in self.contextual}
        wanted = dict.fromkeys(contributions)  # a set that keeps its order
        relative = self.surroundings.contexts.kind == "walks"
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


def _edges(graph: Tensor | None, call: ModelCall) -> Tensor:
    """The edges along which groups are connected, or a clear error."""
    edges = find_edge_index(call) if graph is None else graph
    if edges is None:
        raise ValueError(
            "groups grow along edges, but no edge_index [2, E] is among the model's arguments; give it as graph=…"
        )
    if not is_edges(edges):
        raise ValueError("graph must be edges, a tensor [2, E] of whole numbers")
    if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < len(call.x)):
        raise ValueError(f"graph must name nodes from 0 to {len(call.x) - 1}")
    return edges.long()


def _numbered(edges: Tensor, nodes: Tensor, num_nodes: int) -> Tensor:
    """The edges among some nodes, numbered by their place in that list."""
    place = edges.new_full((num_nodes,), -1)
    place[nodes] = torch.arange(len(nodes), device=edges.device)
    there = place[edges]
    return there[:, (there >= 0).all(0)]
