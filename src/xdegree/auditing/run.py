"""`audit`: does the score of a group tell what the model does without it?"""

import warnings
from collections.abc import Mapping, Sequence
from math import nan
from time import perf_counter
from typing import Any, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from ..baselines import Method
from ..factories import said
from ..removal import Removal, Task, Way
from .measures import SHARES, Trial, blank, measures, rank_correlation
from .methods import RANDOM, Scorer, explained, scorers
from .result import Audit, Measures, MethodAudit

RANKINGS = 5
"""Random rankings that are averaged as a control."""
MOST = 20
"""Predictions at most, if it is not said which."""


def audit(
    model: Any,
    *args: Any,
    index: int | Sequence[int] | None = None,
    target: int | None = None,
    task: Task | None = None,
    methods: Sequence[str] | Mapping[str, Method] | None = None,
    ways: Sequence[Way] = get_args(Way),
    samples: int = 20,
    seed: int = 0,
    level: Any = None,
    output: Any = None,
    progress: bool = True,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Audit:
    """Compare what methods say of nodes with what the model does without them, on the user's own model.

    Nodes are taken away in up to four ways: features set to zero, or to the mean; all their edges cut; the nodes
    removed from the graph and from pooling. A random ranking and a blank graph are the controls. Every mask is one
    forward pass, some hundreds per prediction and method, so this is for small graphs or few predictions.

    Args:
        model: a PyG model or any callable that computes with PyTorch.
        *args: the model's arguments, as for `explain`; or a list of ``Data`` objects, each a graph with one prediction.
        index: the prediction, or several, of which the means are reported. By default all, but at most 20 evenly
            spaced.
        target: the class (or output); the predicted one by default.
        task: ``"classification"``, ``"binary"`` (each output is a yes or no) or ``"regression"``; by default binary
            behind a last sigmoid, else classification for several outputs and regression for one.
        methods: names of readings and of ``xdegree.baselines.METHODS``, or methods by name, as ``{"mine": method}``;
            by default readings under several options, gradients, occlusion and integrated gradients. The random ranking
            is always among them.
        ways: how nodes are taken away: ``"zero"``, ``"mean"``, ``"edges"``, ``"nodes"``.
        samples: random draws for robust fidelity and for infidelity, each.
        seed: of all that is random.
        level: what the rows of the output are, as for `explain`.
        output: which part of the output is meant, as for `explain`.
        progress: show a progress bar.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    _check(ways, samples, seed)
    rest = {"target": target, "task": task, "level": level, "output": output}
    given = {**kwargs, **(model_kwargs or {})}
    subjects = _subjects(model, args, index, rest, given)
    names = list(scorers(methods, subjects[0]))
    notes: dict[str, None] = {}
    cautions: dict[str, str] = {}
    found: list[_One] = []
    with tqdm(total=len(subjects) * len(names), desc="audit", disable=not progress, mininterval=0.5) as bar:
        for number, away in enumerate(subjects):
            generator = torch.Generator().manual_seed(seed * 1_000_003 + number)
            found.append(_one(away, scorers(methods, away), ways, samples, generator, notes, cautions, bar))
    warned = tuple(f"{name}: {said}" for name, said in cautions.items())
    return _joined(found, names, tuple(notes), warned, seed, samples)


def _check(ways: Sequence[str], samples: Any, seed: Any) -> None:
    if isinstance(ways, str) or not ways or any(way not in get_args(Way) for way in ways):
        raise ValueError(f"ways are some of {get_args(Way)} (got {ways!r})")
    for name, value, least in (("samples", samples, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least} (got {value!r})")


def _subjects(
    model: Any, args: tuple[Any, ...], index: Any, rest: dict[str, Any], kwargs: dict[str, Any]
) -> list[Removal]:
    """The predictions that are audited."""
    graphs = args[0] if len(args) == 1 and isinstance(args[0], Sequence) else None
    if graphs is not None and len(graphs) and all(isinstance(graph, Data | HeteroData) for graph in graphs):
        chosen = _evenly(len(graphs)) if index is None else [index] if isinstance(index, int) else list(index)
        if bad := [i for i in chosen if not 0 <= i < len(graphs)]:
            raise ValueError(f"index {bad[0]} is out of range: there are {len(graphs)} graphs")
        return [Removal(model, graphs[i], model_kwargs=kwargs, **rest) for i in chosen]
    if index is None:
        probe = Removal(model, *args, index=0, model_kwargs=kwargs, **rest)
        index = _evenly(probe.num_rows)
    rows = [index] if isinstance(index, int) else list(index)
    if not rows:
        raise ValueError("index is an empty list; name at least one")
    return [Removal(model, *args, index=row, model_kwargs=kwargs, **rest) for row in rows]


def _evenly(count: int) -> list[int]:
    if count <= MOST:
        return list(range(count))
    return [round(i * (count - 1) / (MOST - 1)) for i in range(MOST)]


class _One:
    """What was found on one prediction."""

    def __init__(self, away: Removal) -> None:
        self.whole = away.whole
        self.task = away.task
        self.blank: dict[Way, float] = {}
        self.measures: dict[str, dict[Way, list[Measures]]] = {}
        """By method and way; several for the random ranking, one for all others."""
        self.scores: dict[str, Tensor] = {}
        self.stability: dict[str, float] = {}
        self.seconds: dict[str, float] = {}


def _one(
    away: Removal,
    methods: dict[str, Scorer],
    ways: Sequence[Way],
    samples: int,
    generator: torch.Generator,
    notes: dict[str, None],
    cautions: dict[str, str],
    bar: Any,
) -> _One:
    found = _One(away)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the methods below say the same
        trial = Trial.of(away, _field(away), samples, generator)
    possible = [way for way in ways if _is_possible(trial, way, found, notes)]
    other, order = _renumbered(away, generator)
    for name, scorer in methods.items():
        bar.set_postfix_str(name, refresh=False)
        try:
            with warnings.catch_warnings(record=True) as warned:  # one line in the result instead of one per pass
                warnings.simplefilter("always")
                started = perf_counter()
                scores = scorer.nodes(away).detach().cpu()
                found.seconds[name] = perf_counter() - started
                groups = scorer.of_groups(away, trial.groups, scores).detach()
                found.stability[name] = nan
                if other is not None:
                    again = torch.empty_like(scores)
                    again[order] = scorer.nodes(other).detach().cpu()
                    found.stability[name] = rank_correlation(scores[trial.field], again[trial.field])
            cautions.update((name, str(w.message)) for w in warned if name not in cautions)
        except (ValueError, TypeError, RuntimeError, ImportError) as error:
            notes[f"{name}: not measured, {said(error).splitlines()[0]}"] = None
            continue
        finally:
            bar.update()
        found.scores[name] = scores
        found.measures[name] = {way: [measures(trial, scores, groups, scorer.signed, way)] for way in possible}
    chance = torch.rand(RANKINGS, away.num_nodes, generator=generator)
    found.scores[RANDOM], found.stability[RANDOM], found.seconds[RANDOM] = chance[0], nan, 0.0
    weights = trial.groups.to(chance.dtype)
    found.measures[RANDOM] = {
        way: [measures(trial, scores, weights @ scores, False, way) for scores in chance] for way in possible
    }
    return found


def _field(away: Removal) -> Tensor:
    """The nodes that compete: those that can contribute, where `explain` knows them."""
    if isinstance(away.call.x, Mapping) or not away.call.x.is_floating_point():
        return torch.arange(away.num_nodes)
    return torch.as_tensor(explained(away).nodes).cpu()


def _renumbered(away: Removal, generator: torch.Generator) -> tuple[Removal | None, Tensor]:
    try:
        return away.renumbered(generator)
    except ValueError:  # nodes are numbered by nothing
        return None, torch.empty(0)


def _is_possible(trial: Trial, way: Way, found: _One, notes: dict[str, None]) -> bool:
    try:
        found.blank[way] = blank(trial, way)
        trial.values([trial.dropped(trial.field[:1])], way)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        found.blank.pop(way, None)
        notes[f'way "{way}": not possible, {said(error).splitlines()[0]}'] = None
        return False
    return True


def _joined(
    found: list[_One], names: list[str], notes: tuple[str, ...], warned: tuple[str, ...], seed: int, samples: int
) -> Audit:
    """Means over the predictions; a method or way counts where it could be measured."""
    ways = [way for way in get_args(Way) if any(way in one.blank for one in found)]
    measured_names = [name for name in (*names, RANDOM) if any(name in one.measures for one in found)]
    methods = []
    for name in measured_names:
        those = [one for one in found if name in one.measures]
        by_way = {way: [m for one in those for m in one.measures[name].get(way, [])] for way in ways}
        methods.append(
            MethodAudit(
                name,
                {way: _mean_measures(several) for way, several in by_way.items() if several},
                {other: _agreement(found, name, other) for other in measured_names if other != name},
                _mean([one.stability[name] for one in those]),
                _mean([one.seconds[name] for one in those]),
            )
        )
    spread = {way: _spread([m.fidelity for one in found for m in one.measures[RANDOM].get(way, [])]) for way in ways}
    return Audit(
        tuple(methods),
        SHARES,
        found[0].task,
        len(found),
        _mean([one.whole for one in found]),
        {way: _mean([one.blank[way] for one in found if way in one.blank]) for way in ways},
        spread,
        seed,
        samples,
        notes,
        warned,
    )


def _agreement(found: list[_One], name: str, other: str) -> float:
    pairs = [(one.scores[name], one.scores[other]) for one in found if name in one.scores and other in one.scores]
    return _mean([rank_correlation(a.double(), b.double()) for a, b in pairs])


def _mean_measures(several: list[Measures]) -> Measures:
    def curve(side: str) -> tuple[float, ...]:
        return tuple(_mean(values) for values in zip(*(getattr(m, side) for m in several), strict=True))

    names = ("fidelity", "robust", "infidelity", "correlation")
    return Measures(curve("keep"), curve("drop"), *(_mean([getattr(m, name) for m in several]) for name in names))


def _mean(values: Sequence[float]) -> float:
    return float(torch.tensor([*values, nan], dtype=torch.float64).nanmean())


def _spread(values: Sequence[float]) -> float:
    known = torch.tensor(values, dtype=torch.float64)
    known = known[~known.isnan()]
    return float(known.std()) if len(known) > 1 else nan
