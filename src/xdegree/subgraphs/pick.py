"""One subgraph as the answer: at most so many nodes or edges that carry the prediction best."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import torch
from torch import Tensor

from ..attribution.scores import Reading
from ..engine.options import Contexts, Options
from ..engine.portions import LostPortionsError
from ..engine.process_state import Memory
from ..engine.registry import MissingRuleError
from ..locality.prepared import Model, PreparedCall
from ..removal import Task
from ..results.subgraph import GAMES, Chosen, Control, Objective, Subgraph, Without
from ..results.tree import ExplanationTree
from .adjacency import Bits
from .agglomerate import Growth, grown_tree
from .choice import Choice
from .contextual import Scorer
from .games import Contributions, Game
from .search import Search, random_groups

ORDERS = (Options(activation="target-last", bias="background"), Options())
"""Contributions by which a search for fidelity begins: what is lost without a part, and what a part brings."""
DRAWS = 32
"""Random subgraphs of the control."""
NARROW = 2
"""The beam of the pieces that a search for any set begins with."""


def pick_subgraph(
    model: Model,
    *args: Any,
    of: Chosen = "node",
    size: int | None = None,
    share: float | None = None,
    objective: Objective = "contribution",
    without: Without | None = None,
    connected: bool | None = None,
    truth: Any = None,
    index: int | None = None,
    target: int | None = None,
    task: Task | None = None,
    directed: bool | None = None,
    passes: int | None = None,
    beam: int = 8,
    tree: ExplanationTree | None = None,
    seed: int = 0,
    contexts: Contexts | None = None,
    reading: Reading = "contribution",
    output: Any = None,
    start: Any = None,
    layer: str | None = None,
    baseline: Any = "zero",
    steps: int = 1,
    graph: Tensor | None = None,
    options: Options | None = None,
    memory: Memory = None,
    progress: bool = True,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Subgraph:
    """The subgraph of at most so many nodes or edges that carries the prediction best.

    What "carries" means is a game with rules: ``objective`` says what is maximised, ``without`` how the rest of the
    graph is left out. The result names them, and says what random subgraphs of the same size get in the same game.

    Any set may be chosen, or with ``connected`` one piece. Any set: the best prefixes of several orders (by what is
    lost without each part, and by two kinds of contributions) are improved by adding, leaving out and swapping parts
    for as long as that helps. One piece: groups grow by one part per step, and the best of them go on; nodes are guided
    by an agglomeration too, so that a piece whose parts contribute little alone is found. All candidates of a step are
    computed side by side, none twice. Ties go to the smaller subgraph, then to smaller ids.

    Args:
        model: a PyG model or any callable that computes with PyTorch, or what `prepare` returned.
        *args: the model's arguments, node features first, or a PyG ``Data`` in their place.
        of: what is chosen, ``"node"`` or ``"edge"``.
        size: the most nodes, or undirected edges, that the subgraph may have.
        share: instead of a size, the share of them that may be kept, above 0 and up to 1 (1 − sparsity). Of those that
            can take part, rounded down, at least one.
        objective: ``"contribution"``, f^D by the reading; ``"fidelity"``, fidelity⁺ − fidelity⁻: the probability of the
            class with the subgraph alone, minus that with the rest alone.
        without: what is left out. ``"features"`` (with nodes the default): those of other nodes become 0; ``"mean"``:
            or the mean; ``"edges"`` (with edges the default): other edges are removed, and nodes that no edge is left
            at leave graph and pooling; ``"nodes"``: other nodes are removed with their edges. Chosen edges stand for
            the nodes that they touch, chosen nodes for the edges between them. An explained node always stays.
        connected: whether it must be one piece; by default where nodes are chosen.
        truth: a known motif to compare with: ids, or a mask, of nodes or (with ``of="edge"``) edges.
        index: the node, link or graph that is explained.
        target: the class that is explained; the predicted one by default.
        task: what outputs are, ``"classification"``, ``"binary"`` (one logit) or ``"regression"``; by default
            classification for several outputs and binary for one.
        directed: whether the two directions of an edge are chosen one by one; by default where some edge has no
            reverse, or one with other features.
        passes: the budget of the search: how many variants of the graph (or, for contributions, groups) are computed.
            By default 3,000, or fewer (but 200 at least) where all of them would have more than 10⁸ features.
        beam: how many pieces go on at every step.
        tree: an agglomeration that guides the search for a piece of nodes; grown by default.
        seed: of the random subgraphs, and of the tree's contexts.
        contexts: for the tree, see `agglomerate`.
        reading: what the contribution is, as in `explain`.
        output: which part of the output is explained, as in `explain`.
        start: where the rows of nodes are, as in `explain`.
        layer: where the strength is read, as in `explain`.
        baseline: what features are measured from, as in `decompose`; for contributions of nodes.
        steps: in how many steps the way from the baseline is split, as in `decompose`.
        graph: edges ``[2, E]`` along which nodes are connected; those of the model's ``edge_index`` by default.
        options: choices among rules; `Options()` by default.
        memory: budget for the portions, as in `decompose`.
        progress: show a progress bar on a terminal, if it takes longer than two seconds.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    _check(of, size, share, objective, without, beam, passes, kwargs)
    prepared = PreparedCall.of(model, args, {**kwargs, **(model_kwargs or {})}, start=start).of_part(output)
    choice = Choice.of(prepared, of, index, target, reading, layer, options, memory, baseline, steps, directed)
    connected = of == "node" if connected is None else connected
    without = without or ("features" if of == "node" else "edges")
    units = choice.units
    game, contributions = Game(choice.removal(task), units, without), Contributions(choice.reader, units)
    judge: Game | Contributions = game if objective == "fidelity" else contributions
    passes = passes or max(200, min(3000, 10**8 // choice.place.call.x.numel()))
    most = min(size or max(1, int((share or 0) * units.count + 1e-9)), units.count)
    search = Search(judge, most, passes, 64 * torch.finfo(choice.place.call.x.dtype).eps, progress)
    around = choice.around(graph, connected)
    if connected:
        assert around is not None
        if of == "node" and tree is None:
            growth = Growth()
            how = reading, layer, options, memory, graph, contexts, seed, baseline, steps, growth.max_nodes
            tree = grown_tree(Scorer.of(prepared, index, target, *how), growth)
        groups = tree.groups if tree is not None and of == "node" else ()
        guides = [choice.bits(group, "a group of the tree") for group in groups]
        search.grow(around, beam, guides)
    else:
        families = search.prefixes(_best_first(_orders(choice, judge, passes)))
        families.append(random_groups(units.count, most, DRAWS, seed))
        if around is not None:
            families.append(search.grow(around, NARROW))
        search.climb(families)
    best = search.best()
    plus, minus = game.fidelities([best])[0]
    drawn = judge.scores(random_groups(units.count, best.bit_count(), DRAWS, seed, around if connected else None))
    control = Control(DRAWS, sum(drawn) / DRAWS, max(drawn), game.whole, game.nothing)
    return Subgraph(
        nodes=choice.nodes_of(best),
        edges=choice.edges_of(best),
        size=best.bit_count(),
        score=search.scores[best],
        contribution=_if_followed(contributions, best) if judge is game else search.scores[best],
        fidelity_plus=plus,
        fidelity_minus=minus,
        of=of,
        objective=objective,
        without=without,
        connected=connected,
        target=choice.target,
        index=choice.index,
        passes=judge.passes,
        control=control,
        overlap=None if truth is None else choice.overlap(best, truth),
    )


def _orders(choice: Choice, judge: Game | Contributions, passes: int) -> list[list[float]]:
    """What each unit is worth, in several ways, for the search to begin with."""
    count = choice.units.count
    each = [1 << unit for unit in range(count)]
    if isinstance(judge, Game):
        lost = [judge.without_each()] if count <= passes // 2 else []
        try:
            return [*lost, *(Contributions(choice.by(rules), choice.units).scores(each) for rules in ORDERS)]
        except UNFOLLOWED:
            return lost
    everything = (1 << count) - 1
    return [judge.scores(each), [-score for score in judge.scores([everything ^ one for one in each])]]


def _best_first(orders: Iterable[list[float]]) -> list[list[int]]:
    """Units by falling worth, equal ones by number."""
    return [sorted(range(len(scores)), key=lambda unit: (-scores[unit], unit)) for scores in orders]


def _if_followed(contributions: Contributions, best: Bits) -> float | None:
    """The contribution of the answer to a question about fidelity, if there is any."""
    try:
        return contributions.scores([best])[0]
    except UNFOLLOWED as error:
        warnings.warn(f"contributions cannot be computed here and did not guide the search: {error}", stacklevel=3)
        return None


UNFOLLOWED = (LostPortionsError, MissingRuleError, TypeError, ValueError)
"""What the engine says of models that it cannot follow. Predictions with and without a part need no engine."""


def _check(
    of: Any, size: Any, share: Any, objective: Any, without: Any, beam: Any, passes: Any, kwargs: Mapping[str, Any]
) -> None:
    if "sparsity" in kwargs:
        raise TypeError("sparsity is now called share: the share of nodes or edges that may be kept")
    for name, value, allowed in (
        ("of", of, get_args(Chosen)),
        ("objective", objective, get_args(Objective)),
        ("without", without, (*GAMES, None)),
    ):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {allowed} (got {value!r})")
    if (size is None) == (share is None):
        raise ValueError(f"say how large the subgraph may be: size or share, one of them (got {size}, {share})")
    for name, value in (("size", size), ("beam", beam), ("passes", passes)):
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not whole and not (name != "beam" and value is None):
            raise ValueError(f"{name} must be an integer, at least 1 (got {value!r})")
    number = isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1
    if share is not None and not number:
        raise ValueError(f"share must be above 0 and at most 1, the share that is kept (got {share!r})")
