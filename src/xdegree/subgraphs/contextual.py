"""The contextual score φ: what a group adds to the contexts that it stands in.

    φ(S) = E over C ~ RW(N_L(S)) of f^D(S ∪ C) − f^D(C)

A group that has no context but the empty one has φ = f^D. `contexts` says which contexts a group has.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..attribution.decompose import path_of, whole_survey
from ..attribution.explain import Answer
from ..attribution.phantoms import warn_of_infinite
from ..attribution.scores import Question, Reader, Reading, chosen_classes
from ..engine.masked_rows import Masks
from ..engine.options import Contexts, Options
from ..engine.process_state import Memory
from ..engine.sparse_rows import NeedsWhole, TooMuch
from ..locality.prepared import Model, PreparedCall
from ..model_call.call import ModelCall, check_index, find_edge_index, is_edges, short
from .adjacency import Adjacency, Bits, mask, members, union
from .contexts import Drawn, Surroundings
from .strongest import strongest

PAIRS = 2**15
"""Pairs of a group and a row in one pass, about: with more, portions no longer fit into caches."""


def contextual_scores(
    model: Model,
    *args: Any,
    groups: Iterable[Iterable[int]],
    index: int | None = None,
    target: int | None = None,
    contexts: Contexts | None = None,
    seed: int = 0,
    reading: Reading = "contribution",
    output: Any = None,
    start: Any = None,
    layer: str | None = None,
    baseline: Any = "zero",
    steps: int = 1,
    graph: Tensor | None = None,
    options: Options | None = None,
    memory: Memory = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Tensor:
    """The contextual score φ of each group, ``[K]`` in float64, from one engine call.

    Args:
        model: a PyG model or any callable that computes with PyTorch, or what `prepare` returned.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        groups: lists of node ids. Nodes outside the computation graph contribute nothing and are left out.
        index: the node (or, in a batch, the graph) that is explained.
        target: the class that is explained; the predicted one by default.
        contexts: how many, how long, how far: see `Contexts`.
        seed: draws the walks where contexts are too many to take all of them.
        reading: what f^D is, as in `explain`.
        output: which part of the output is explained, as in `explain`.
        start: where the rows of nodes are, as in `explain`.
        layer: where the strength is read, as in `explain`.
        baseline: what features are measured from, as in `decompose`.
        steps: in how many steps the way from the baseline is split, as in `decompose`.
        graph: edges ``[2, E]`` to walk along; those of the model's ``edge_index`` by default.
        options: choices among rules; `Options()` by default.
        memory: budget for the portions, as in `decompose`.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    prepared = PreparedCall.of(model, args, {**kwargs, **(model_kwargs or {})}, start=start).of_part(output)
    scorer = Scorer.of(
        prepared, index, target, reading, layer, options, memory, graph, contexts, seed, baseline=baseline, steps=steps
    )
    asked = [scorer.inside(group, f"group {number}") for number, group in enumerate(groups)]
    scorer.score(contextual=asked)
    return torch.tensor([scorer.contextual[group] for group in asked], dtype=torch.float64)


class Scorer:
    """f^D and φ of groups of one prediction. Nothing is scored twice, and one request is one engine call.

    Groups are sets of bits here: bit i stands for node ``nodes[i]``.
    """

    def __init__(
        self, reader: Reader, surroundings: Surroundings, field: Tensor, prediction: Tensor, index: int, left_out: float
    ) -> None:
        self.reader, self.place = reader, reader.place
        self.surroundings, self.adjacency = surroundings, surroundings.adjacency
        self.prediction, self.index, self.target = prediction, index, int(reader.classes[0])
        self.nodes: list[int] = field.tolist()
        self.left_out = left_out
        """The share of what single nodes contribute, by magnitude, that nodes have which do not take part."""
        self.contributions: dict[Bits, float] = {}
        """f^D of all groups that were scored so far."""
        self.contextual: dict[Bits, float] = {}
        """φ of all groups that were asked for so far."""
        self.errors: dict[Bits, float] = {}
        """The standard error of φ where contexts were drawn."""
        self.calls = 0
        """How often the engine was called."""
        self.rounding = 64 * torch.finfo(self.place.call.x.dtype).eps
        self._place = {node: bit for bit, node in enumerate(self.nodes)}
        self._here = self.place.here(field)
        self._follows = len(self.place.rows) == 1
        far = self.place.distance
        rows = len(self.nodes) if far is None else int((far < self.place.rounds).sum())
        self._at_once = max(64, min(1024, PAIRS // max(1, rows)))

    @classmethod
    def of(
        cls,
        prepared: PreparedCall,
        index: Any = None,
        target: Any = None,
        reading: Reading = "contribution",
        layer: str | None = None,
        options: Options | None = None,
        memory: Memory = None,
        graph: Tensor | None = None,
        contexts: Contexts | None = None,
        seed: int = 0,
        baseline: Any = "zero",
        steps: int = 1,
        max_nodes: int | None = None,
    ) -> "Scorer":
        """Everything is checked before any group is scored.

        With ``max_nodes`` only the nodes that contribute most take part, if there are more.
        """
        if not isinstance(prepared.call.x, Tensor):
            raise NotImplementedError(
                "groups grow in a graph with one type of nodes; with several use decompose with groups by type"
            )
        path = path_of(prepared, baseline, steps)
        question = Question(target, reading, layer=layer, options=Options.of(options), memory=memory, path=path)
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"seed must be an integer (got {seed!r})")
        contexts, call = Contexts.of(contexts), prepared.call
        table = prepared.table(None)
        index = check_index(index, table)
        place = prepared.proven_place(torch.tensor([index], device=call.x.device), table.level)
        predictions = table.values[[index]] if place.output is None else place.output
        warn_of_infinite(predictions[0], f"the model's output for row {index}")
        reader = question.reader(prepared, place, chosen_classes([target], predictions), table.level)
        field, left_out = place.field, 0.0
        if max_nodes is not None and len(field) > max_nodes:
            [alone] = Answer(prepared, question, table, [index]).explanations(single=True)
            field, left_out = strongest(alone.node_scores, place, max_nodes)
        marks = place.call.x[place.here(field)].reshape(len(field), -1)
        if table.level == "node":  # the explained node is like no other
            marks = torch.cat([marks, (field == index).to(marks).unsqueeze(1)], 1)
        edges = edges_inside(graph, prepared, field)
        around = Surroundings(Adjacency(edges, len(field), marks), contexts, prepared.flow.rounds, seed)
        return cls(reader, around, field, predictions[0].detach().clone(), index, left_out)

    def inside(self, group: Iterable[int], what: str) -> Bits:
        """A user's group as bits, without the nodes that cannot contribute."""
        nodes = listed(group, what)
        outside = [node for node in nodes if not 0 <= node < self.place.num_nodes]
        if outside:
            raise ValueError(f"{what} names nodes {short(outside)}, but ids go from 0 to {self.place.num_nodes - 1}")
        return union(self._place[node] for node in nodes if node in self._place)

    def own(self, group: Bits) -> frozenset[int]:
        """A group by the ids that the user knows."""
        return frozenset(self.nodes[bit] for bit in members(group))

    def score(self, contributions: Iterable[Bits] = (), contextual: Iterable[Bits] = ()) -> None:
        """Compute f^D of some groups and φ of others, where they are not known yet."""
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
            gains = [f[group | context] - (f[context] if relative else 0) for context in contexts]
            weights = list(contexts.values())
            self.contextual[group] = mean = sum(w * gain for w, gain in zip(weights, gains, strict=True))
            if isinstance(contexts, Drawn):
                spread = math.fsum(w * (gain - mean) ** 2 for w, gain in zip(weights, gains, strict=True))
                self.errors[group] = math.sqrt(spread / max(1, self.surroundings.contexts.walks - 1))

    def _ask(self, groups: list[Bits]) -> None:
        """One request; in passes whose portions fit into caches."""
        source = self.reader.prepared.source()
        waiting = [groups[start : start + self._at_once] for start in range(0, len(groups), self._at_once)]
        with whole_survey(self.reader.prepared.model, self.reader.prepared.sample, source):
            while waiting:
                some = waiting.pop()
                try:
                    scores = self._scores(mask(some, len(self.nodes)))
                except TooMuch:
                    if len(some) == 1:
                        raise
                    waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
                else:
                    self.contributions.update(zip(some, scores.tolist(), strict=True))
        self.calls += bool(groups)

    def _scores(self, inside: Tensor) -> Tensor:
        """f^D of groups, a mask of the nodes that can contribute: by their messages where the model lets us."""
        x = self.place.call.x
        nodes = torch.zeros(len(x), inside.shape[1], dtype=torch.bool, device=x.device)
        nodes[self._here] = inside.to(x.device)
        if self._follows:
            try:
                return self.reader.followed(Masks(nodes))
            except NeedsWhole:
                self._follows = False
        return self.reader.scores(nodes.t())


def listed(group: Any, what: str) -> list[int]:
    """Node ids as a list of integers, or a clear error."""
    if isinstance(group, Tensor):
        group = group.reshape(-1).tolist()
    if isinstance(group, str | bytes) or not isinstance(group, Iterable):
        raise TypeError(f"{what} must be a list of node ids (got {group!r})")
    nodes = [item.item() if hasattr(item, "item") else item for item in group]
    if any(isinstance(node, bool) or not isinstance(node, int) for node in nodes):
        raise TypeError(f"{what} must hold integer node ids (got {short(nodes)})")
    return nodes


def _edges(graph: Tensor | None, call: ModelCall) -> Tensor:
    """The edges along which groups are connected, or a clear error."""
    edges = find_edge_index(call) if graph is None else graph
    if edges is None:
        raise ValueError(
            "groups grow along edges, but no edge_index [2, E] is among the model's arguments; give the edges as well:"
            " graph=edge_index"
        )
    if not is_edges(edges):
        raise ValueError("graph must be edges, a tensor [2, E] of integers")
    if edges.numel() and not (0 <= int(edges.min()) and int(edges.max()) < len(call.x)):
        raise ValueError(f"graph must name nodes from 0 to {len(call.x) - 1}")
    return edges.long()


def edges_inside(graph: Tensor | None, prepared: PreparedCall, field: Tensor) -> Tensor:
    """The edges along which groups are connected, between nodes that take part, numbered by their place there."""
    own = find_edge_index(prepared.call)
    if graph is None and own is not None and prepared.incoming is not None:
        return torch.searchsorted(field, prepared.incoming.among(field)[1])
    edges = _edges(graph, prepared.call).to(field.device)
    there = torch.searchsorted(field, edges).clamp(max=len(field) - 1)
    return there[:, (field[there] == edges).all(0)]
