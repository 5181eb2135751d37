"""The explanation tree: how groups of nodes grow and meet, and what each meeting changes. Frozen, and able to save and
show itself.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.options import Contexts, Options
from .explanation import require
from .files import finite, read_json, write_json
from .tables import load_pandas

if TYPE_CHECKING:
    import networkx
    import pandas

FORMAT = "xdegree.tree/2"


class Group(NamedTuple):
    """Some nodes and what they contribute together, f^D, in units of the prediction."""

    nodes: frozenset[int]
    """Their ids."""
    score: float
    """What they contribute together."""


Level = tuple[Group, ...]
"""Disjoint connected groups, the one with the smallest node first."""


class Merge(NamedTuple):
    """Groups of one level (or nodes that were in none) that are one group in the next."""

    level: int
    """Where the union is first seen."""
    union: Group
    """What they became."""
    parts: Level
    """What they were before."""
    interaction: float
    """The score of the union minus the sum of its parts' scores: what they do only together."""


@dataclass(frozen=True)
class ExplanationTree:
    """Levels of groups, from single nodes to the whole graph or computation graph."""

    levels: tuple[Level, ...]
    """The groups of each step, the first with the first seeds."""
    contextual: tuple[tuple[float, ...], ...]
    """φ of each group of each level: what the growth was led by."""
    leaves: Level
    """Every node that takes part, alone."""
    prediction: tuple[float, ...]
    """The model's own output for what is explained, one number per class."""
    target: int
    """The class that is explained."""
    index: int
    """The node, link or graph that is explained: its row in the output."""
    num_nodes: int
    """Of the whole graph."""
    reading: str = "contribution"
    """What a score is, as in `explain`."""
    selection: str = "threshold"
    """How candidates were chosen, as in `agglomerate`."""
    candidates: str = "groups"
    """What groups could take in, as in `agglomerate`."""
    rising: bool = False
    """Whether only candidates that raise the score were taken."""
    q: float = 0.6
    """The threshold, as in `agglomerate`."""
    max_levels: int | None = None
    """The most levels; None for no limit."""
    max_nodes: int | None = None
    """The most nodes that could take part; None for no limit."""
    left_out: float = 0.0
    """The share of what single nodes contribute, by magnitude, that nodes have which did not take part."""
    contextual_error: float = 0.0
    """The largest standard error of φ among the groups of the tree; 0 where no contexts were drawn."""
    seed: int = 0
    """Of the contexts that were drawn."""
    contexts: Contexts = field(default_factory=Contexts)
    """How φ was asked for."""
    options: Options = field(default_factory=Options)
    """The choices among rules that made the scores."""
    logits: tuple[float, ...] | None = None
    """What the last softmax or sigmoid was applied to, where scores are parts of that instead of the prediction."""
    baseline_output: tuple[float, ...] | None = None
    """What is explained with the features of the baseline; None for one step from zero."""

    def __post_init__(self) -> None:
        """What views and files rely on."""
        alone = [next(iter(leaf.nodes), -1) for leaf in self.leaves if len(leaf.nodes) == 1]
        inside = set(alone)
        require(len(inside) == len(self.leaves), "leaves must be single nodes, each once")
        require(all(0 <= node < self.num_nodes for node in inside), f"nodes lie between 0 and {self.num_nodes - 1}")
        require(0 <= self.target < len(self.prediction), f"target lies between 0 and {len(self.prediction) - 1}")
        require(0 <= self.index < max(self.num_nodes, 1), f"index lies between 0 and {self.num_nodes - 1}")
        require([len(level) for level in self.levels] == [len(phi) for phi in self.contextual], "one φ per group")
        before: dict[int, int] = {}
        for level in self.levels:
            where = {node: number for number, group in enumerate(level) for node in group.nodes}
            require(sum(len(group.nodes) for group in level) == len(where), "groups of a level must be disjoint")
            require(all(group.nodes for group in level), "groups must not be empty")
            require(where.keys() <= inside, "groups must be made of leaves")
            require(before.keys() <= where.keys(), "levels must only grow")
            require(len({(before[v], where[v]) for v in before}) == len(set(before.values())), "groups must not split")
            before = where

    @cached_property
    def groups(self) -> Mapping[frozenset[int], Group]:
        """Every group of the tree by its nodes, leaves included, in the order in which they appear."""
        return {group.nodes: group for level in (self.leaves, *self.levels) for group in level}

    @cached_property
    def merges(self) -> tuple[Merge, ...]:
        """All merges, first to last; the last one is the top of the tree."""
        found, before = [], tuple[Group, ...]()
        for number, level in enumerate(self.levels):
            known = {group.nodes for group in before}
            for group in level:
                if group.nodes not in known and len(group.nodes) > 1:
                    parts = self._parts(group, before)
                    found.append(Merge(number, group, parts, group.score - math.fsum(part.score for part in parts)))
            before = level
        return tuple(found)

    def _parts(self, group: Group, before: Level) -> Level:
        whole = [part for part in before if part.nodes <= group.nodes]
        covered = frozenset[int]().union(*(part.nodes for part in whole))
        alone = [self.groups[frozenset({node})] for node in group.nodes - covered]
        return tuple(sorted([*whole, *alone], key=_first))

    @cached_property
    def parents(self) -> Mapping[frozenset[int], frozenset[int]]:
        """The group that each group is merged into; groups that never merge have none."""
        return {part.nodes: merge.union.nodes for merge in self.merges for part in merge.parts}

    @cached_property
    def best(self) -> Mapping[int, Group]:
        """The group with the largest score among those of each size that the tree has."""
        found: dict[int, Group] = {}
        for group in self.groups.values():
            size = len(group.nodes)
            if size not in found or group.score > found[size].score:
                found[size] = group
        return dict(sorted(found.items()))

    def to_networkx(self) -> "networkx.DiGraph[frozenset[int]]":
        """Edges from parts to unions; ``score``, ``size`` on groups, ``interaction``, ``level`` on unions."""
        import networkx

        tree: networkx.DiGraph[frozenset[int]] = networkx.DiGraph(
            index=self.index, target=self.target, reading=self.reading
        )
        tree.add_nodes_from((g.nodes, {"score": g.score, "size": len(g.nodes)}) for g in self.groups.values())
        for merge in self.merges:
            tree.add_node(merge.union.nodes, interaction=merge.interaction, level=merge.level)
            tree.add_edges_from((part.nodes, merge.union.nodes) for part in merge.parts)
        return tree

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row per group and level; ``interaction`` where the group has just come about (needs pandas)."""
        pandas = load_pandas()
        merged = {(merge.level, merge.union.nodes): merge.interaction for merge in self.merges}
        rows = [
            (number, tuple(sorted(nodes)), len(nodes), score, phi, merged.get((number, nodes), math.nan))
            for number, (level, phis) in enumerate(zip(self.levels, self.contextual, strict=True))
            for (nodes, score), phi in zip(level, phis, strict=True)
        ]
        return pandas.DataFrame(rows, columns=["level", "nodes", "size", "score", "contextual", "interaction"])

    def draw(self, names: Mapping[int, str] | None = None, width: int = 100) -> str:
        """The tree as text: unions above their parts, each with its score, unions with their interaction.

        Args:
            names: what to call a node, by its id; the id by default.
            width: characters per line at most.
        """
        drawing = _Drawing({merge.union.nodes: merge for merge in self.merges}, names or {})
        nodes = f"{len(self.leaves)} of {self.num_nodes} nodes{self._open()}"
        lines = [f"class {self.target}, {len(self.levels)} levels, {nodes}"]
        for group in self.levels[-1] if self.levels else ():
            lines += drawing.lines(group, width)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.draw()

    def __repr__(self) -> str:
        sizes = " → ".join(str(len(level)) for level in self.levels)
        return (
            f"ExplanationTree(index={self.index}, target={self.target}, reading={self.reading!r},"
            f" nodes={len(self.leaves)} of {self.num_nodes}, groups per level: {sizes or 'none'}{self._open()})"
        )

    def _open(self) -> str:
        """What is not in the tree, in words."""
        return f", {self.left_out:.1%} of what single nodes contribute left out" if self.left_out else ""

    def _repr_png_(self) -> bytes | None:
        """How notebooks show it: as a picture, where the extra for plots is installed, else as text."""
        from .notebook import picture

        return picture(self)

    def save(self, path: str | Path) -> Path:
        """Write a JSON file, whole or not at all."""
        content = {
            "format": FORMAT,
            "levels": [
                [[*_plain(group), finite(phi)] for group, phi in zip(level, phis, strict=True)]
                for level, phis in zip(self.levels, self.contextual, strict=True)
            ],
            "leaves": [_plain(leaf) for leaf in self.leaves],
            "prediction": finite(list(self.prediction)),
            **{name: None if (row := getattr(self, name)) is None else finite(list(row)) for name in _ROWS},
            **{name: getattr(self, name) for name in _KINDS},
            "contexts": self.contexts.to_dict(),
            "options": self.options.to_dict(),
        }
        return write_json(path, content)

    @classmethod
    def load(cls, path: str | Path) -> "ExplanationTree":
        """Read what `save` wrote; anything else is an error that says what does not fit."""
        return read_json(path, FORMAT, "explanation tree", cls._from_content)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> "ExplanationTree":
        values: dict[str, Any] = {name: content[name] for name in _KINDS}
        for name, kind in _KINDS.items():
            value = values[name]
            fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            require(fits, f"{name} must be {kind} (got {value!r})")
        rows = {name: content[name] for name in _ROWS if content.get(name) is not None}
        values |= {name: tuple(map(_number, row)) for name, row in rows.items()}
        return cls(
            levels=tuple(tuple(_group(nodes, score) for nodes, score, _ in level) for level in content["levels"]),
            contextual=tuple(tuple(_number(phi) for _, _, phi in level) for level in content["levels"]),
            leaves=tuple(_group(nodes, score) for nodes, score in content["leaves"]),
            prediction=tuple(_number(value) for value in content["prediction"]),
            contexts=Contexts(**content["contexts"]),
            options=Options.paper(**content["options"]),
            **values,
        )


_ROWS = ("logits", "baseline_output")
"""Numbers per class that not all trees have."""
_KINDS: dict[str, Any] = {
    "target": int,
    "index": int,
    "num_nodes": int,
    "reading": str,
    "selection": str,
    "candidates": str,
    "rising": bool,
    "q": int | float,
    "max_levels": int | None,
    "max_nodes": int | None,
    "left_out": int | float,
    "contextual_error": int | float,
    "seed": int,
}


@dataclass(frozen=True)
class _Drawing:
    """How the tree becomes lines of text."""

    by_union: Mapping[frozenset[int], Merge]
    names: Mapping[int, str]

    def lines(self, group: Group, width: int) -> Iterator[str]:
        """A group, the parts that join it, and below them its largest part, and so on.

        The largest part stays in the same column, so that long chains of growth need no room to the right.
        """
        while (merge := self.by_union.get(group.nodes)) is not None:
            yield self._line(f"{group.score:+.4g}  interaction {merge.interaction:+.4g}  {self._label(group)}", width)
            main = max(merge.parts, key=lambda part: (len(part.nodes), -_first(part)))
            parts = sorted(merge.parts, key=lambda part: (-abs(part.score), _first(part)))
            alone = [part for part in parts if len(part.nodes) == 1]
            last = len(main.nodes) == 1
            for part in parts:
                if part is not main and len(part.nodes) > 1:
                    first, *rest = self.lines(part, width - 3)
                    yield f"├─ {first}"
                    yield from (f"│  {line}" for line in rest)
            if alone:
                singles = ", ".join(f"{self._label(part)} {part.score:+.4g}" for part in alone)
                yield self._line(f"{'└─' if last else '├─'} {singles}", width)
            if last:
                return
            group = main
        yield self._line(f"{group.score:+.4g}  {self._label(group)}", width)

    def _label(self, group: Group) -> str:
        return " ".join(self.names.get(node, str(node)) for node in sorted(group.nodes))

    @staticmethod
    def _line(text: str, width: int) -> str:
        width = max(width, 40)
        return text if len(text) <= width else f"{text[: width - 1]}…"


def _first(group: Group) -> int:
    return min(group.nodes)


def _plain(group: Group) -> list[Any]:
    return [sorted(group.nodes), finite(group.score)]


def _number(value: Any) -> float:
    allowed = isinstance(value, int | float) or value in ("inf", "-inf", "nan")
    require(allowed and not isinstance(value, bool), f"expected a number (got {value!r})")
    return float(value)


def _group(nodes: Any, score: Any) -> Group:
    whole = isinstance(nodes, list) and all(isinstance(node, int) and not isinstance(node, bool) for node in nodes)
    require(whole, f"a group must be a list of node ids (got {nodes!r})")
    require(len(set(nodes)) == len(nodes), f"a group must name each node once (got {nodes!r})")
    return Group(frozenset(nodes), _number(score))
