"""The explanation tree as an object: merges, views, files, and what it refuses."""

import copy
import json
import pickle

import networkx
import pytest

from xdegree import Options
from xdegree.engine.options import Contexts
from xdegree.results.tree import ExplanationTree, Group


def group(score: float, *nodes: int) -> Group:
    return Group(frozenset(nodes), score)


def tree(**changes) -> ExplanationTree:
    """Nodes 1 and 2 meet, then 4 joins alone (3 takes no part), then all are one with 0."""
    content = {
        "levels": (
            (group(1.0, 1), group(0.5, 2)),
            (group(2.5, 1, 2), group(-1.0, 4)),
            (group(4.0, 0, 1, 2, 4),),
        ),
        "contextual": ((1.1, 0.6), (2.4, -0.9), (4.0,)),
        "leaves": (group(0.25, 0), group(1.0, 1), group(0.5, 2), group(-1.0, 4)),
        "prediction": (3.5, float("inf")),
        "target": 0,
        "index": 2,
        "num_nodes": 5,
        "options": Options(bias="background"),
        "contexts": Contexts(walks=7),
    }
    return ExplanationTree(**{**content, **changes})


def test_levels_are_pairs_of_nodes_and_score():
    for level in tree().levels:
        for nodes, score in level:
            assert isinstance(nodes, frozenset)
            assert isinstance(score, float)


def test_merges_and_what_they_change():
    first, top = tree().merges
    assert (first.level, first.union, first.parts) == (1, group(2.5, 1, 2), (group(1.0, 1), group(0.5, 2)))
    assert first.interaction == 2.5 - 1.5
    assert top.parts == (group(0.25, 0), group(2.5, 1, 2), group(-1.0, 4))
    assert top.interaction == 4.0 - (0.25 + 2.5 - 1.0)


def test_a_first_level_of_larger_groups_is_merged_from_its_nodes():
    [merge] = tree(levels=((group(2.5, 1, 2),),), contextual=((2.4,),)).merges
    assert merge.parts == (group(1.0, 1), group(0.5, 2))
    assert merge.level == 0


def test_parents():
    whole = frozenset({0, 1, 2, 4})
    assert tree().parents == {
        frozenset({1}): frozenset({1, 2}),
        frozenset({2}): frozenset({1, 2}),
        frozenset({0}): whole,
        frozenset({1, 2}): whole,
        frozenset({4}): whole,
    }


def test_the_best_of_each_size():
    assert tree().best == {1: group(1.0, 1), 2: group(2.5, 1, 2), 4: group(4.0, 0, 1, 2, 4)}


def test_networkx():
    found = tree().to_networkx()
    assert networkx.is_tree(found.to_undirected())
    assert found.graph == {"index": 2, "target": 0, "reading": "contribution"}
    assert found.nodes[frozenset({1, 2})] == {"score": 2.5, "size": 2, "interaction": 1.0, "level": 1}
    assert set(found.predecessors(frozenset({1, 2}))) == {frozenset({1}), frozenset({2})}


def test_dataframe():
    table = tree().to_dataframe()
    assert table.columns.tolist() == ["level", "nodes", "size", "score", "contextual", "interaction"]
    assert table["level"].tolist() == [0, 0, 1, 1, 2]
    assert table["nodes"][2] == (1, 2)
    assert table["contextual"].tolist() == [1.1, 0.6, 2.4, -0.9, 4.0]
    assert table["interaction"].isna().tolist() == [True, True, False, True, False]


def test_drawing():
    assert str(tree()).splitlines() == [
        "class 0, 3 levels, 4 of 5 nodes",
        "+4  interaction +2.25  0 1 2 4",
        "├─ 4 -1, 0 +0.25",
        "+2.5  interaction +1  1 2",
        "└─ 1 +1, 2 +0.5",
    ]
    named = tree().draw(names={1: "nitrogen", 2: "oxygen of the ring"}, width=40).splitlines()
    assert named[3] == "+2.5  interaction +1  nitrogen oxygen o…"
    assert "groups per level: 2 → 2 → 1" in repr(tree())


def test_drawing_of_parts_that_meet():
    levels = (
        (group(2.0, 0, 1, 2), group(1.0, 3, 4)),
        (group(5.0, 0, 1, 2, 3, 4), group(0.0, 5)),
    )
    leaves = tuple(group(0.5, node) for node in range(6))
    drawn = str(tree(levels=levels, contextual=((0.0, 0.0), (0.0, 0.0)), leaves=leaves, num_nodes=6))
    assert drawn.splitlines()[1:] == [
        "+5  interaction +2  0 1 2 3 4",
        "├─ +1  interaction +0  3 4",
        "│  └─ 3 +0.5, 4 +0.5",
        "+2  interaction +0.5  0 1 2",
        "└─ 0 +0.5, 1 +0.5, 2 +0.5",
        "+0  5",
    ]


def test_drawing_a_long_chain():
    """Two thousand levels: no deeper than the stack, no wider than the page."""
    leaves = tuple(group(1.0, node) for node in range(2000))
    levels = tuple((group(1.0, *range(size)),) for size in range(1, 2001))
    drawn = str(tree(levels=levels, contextual=((0.0,),) * 2000, leaves=leaves, num_nodes=2000))
    assert max(len(line) for line in drawn.splitlines()) == 100


def test_frozen_and_portable():
    with pytest.raises(AttributeError):
        tree().target = 1
    assert pickle.loads(pickle.dumps(tree())) == copy.deepcopy(tree()) == tree()


@pytest.mark.parametrize("what", [tree(), tree(levels=(), contextual=()), tree(q=1, max_levels=3, rising=True)])
def test_saved_and_loaded(what, tmp_path):
    path = what.save(tmp_path / "tree.json")
    assert ExplanationTree.load(path) == what
    assert list(tmp_path.iterdir()) == [path]


BROKEN = {
    "two groups share a node": lambda c: c["levels"][1][1][0].append(1),
    "a level shrinks": lambda c: c["levels"].reverse(),
    "a group splits": lambda c: c["levels"].__setitem__(2, [[[1, 4], 1.0, 1.0], [[0, 2], 1.0, 1.0]]),
    "an unknown node": lambda c: c["levels"][2][0][0].append(3),
    "a node beyond the graph": lambda c: c.update(num_nodes=4),
    "an empty group": lambda c: c["levels"][0].append([[], 1.0, 1.0]),
    "a node twice": lambda c: c["levels"][0][0][0].append(1),
    "a leaf of two nodes": lambda c: c["leaves"][0][0].append(1),
    "a leaf twice": lambda c: c["leaves"].append(c["leaves"][0]),
    "ids that are no numbers": lambda c: c["levels"][0][0].__setitem__(0, ["1"]),
    "a score that is no number": lambda c: c["levels"][0][0].__setitem__(1, "much"),
    "a score that is true": lambda c: c["leaves"][0].__setitem__(1, True),
    "no φ": lambda c: c["levels"][0][0].pop(),
    "a class that does not exist": lambda c: c.update(target=2),
    "a negative class": lambda c: c.update(target=-1),
    "an index beyond the graph": lambda c: c.update(index=5),
    "a target that is text": lambda c: c.update(target="0"),
    "a seed that is true": lambda c: c.update(seed=True),
    "rising that is a number": lambda c: c.update(rising=1),
    "an unknown option": lambda c: c["options"].update(ties="never"),
    "an unknown field of options": lambda c: c["options"].update(colour="red"),
    "unknown contexts": lambda c: c["contexts"].update(kind="dreams"),
    "no levels": lambda c: c.pop("levels"),
    "levels that are a number": lambda c: c.update(levels=3),
    "no options": lambda c: c.update(options=None),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_refused(what, tmp_path):
    path = tree().save(tmp_path / "tree.json")
    content = json.loads(path.read_text())
    BROKEN[what](content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="is a broken explanation tree"):
        ExplanationTree.load(path)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\xff\xfe", "is no JSON file"),
        (b"", "is no JSON file"),
        (b'{"format": "xdegree.tree/1"', "is no JSON file"),
        (b"[" * 100_000, "is no JSON file"),
        (b"[]", "is no saved explanation tree"),
        (b'{"format": "xdegree.explanation/2"}', "is no saved explanation tree"),
        (b'{"format": "xdegree.tree/1"}', "is no saved explanation tree"),
        (b'{"format": "xdegree.tree/2"}', "is a broken explanation tree"),
    ],
)
def test_other_files_are_refused(content, match, tmp_path):
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=match):
        ExplanationTree.load(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tree().save(tmp_path / "tree.json")
    monkeypatch.setattr(json, "dumps", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tree(seed=5).save(path)
    monkeypatch.undo()
    assert ExplanationTree.load(path) == tree()
