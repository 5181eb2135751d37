"""Untrusted text from a browser or a file: read strictly, or refused with the reason.

A graph is JSON: ``x`` (a list of features per node) and ``edge_index`` (two lists of node numbers), and as it likes
``names`` (one text per node), ``smiles`` (to draw it as that molecule), ``index`` (the node that is explained) and
``title``.
"""

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

from ..canvas import Edge, edge_of
from .problem import MAX_EDGES, MAX_NAME, MAX_NODES, MAX_SENTENCE, MAX_SMILES, MAX_UPLOAD, Problem

_KEYS = {"format", "x", "edge_index", "names", "smiles", "index", "title"}
_EDGE = re.compile("[0-9]{1,9}-[0-9]{1,9}")
FORMAT = "xdegree.graph/1"


@dataclass(frozen=True)
class Reference:
    """What a browser is looking at: an item of the list, a SMILES, a sentence, or a graph as text.

    All that the server keeps of it.
    """

    example: str
    item: int | None = None
    smiles: str | None = None
    sentence: str | None = None
    graph: str | None = None


def reference(raw: Any) -> Reference:
    """A reference as the browser stores it."""
    if not isinstance(raw, dict) or not isinstance(raw.get("example"), str):
        raise Problem("Choose an example first.")
    kinds: dict[str, type] = {"item": int, "smiles": str, "sentence": str, "graph": str}
    given = {key: raw[key] for key in kinds if raw.get(key) is not None}
    fits = len(given) == 1 and all(type(value) is kinds[key] for key, value in given.items())
    if not fits or set(raw) - {"example", *kinds}:
        raise Problem("This is no prediction that the page knows; choose one from the list.")
    return Reference(example=raw["example"], **given)


def mine(raw: Any) -> list[dict[str, Any]]:
    """What a reader brought along, as the browser keeps it: each with a label and a reference."""
    if not isinstance(raw, list):
        return []
    return [own for own in raw if isinstance(own, dict) and isinstance(own.get("label"), str) and _refers(own)]


def _refers(own: dict[str, Any]) -> bool:
    try:
        reference(own.get("ref"))
    except Problem:
        return False
    return True


def nodes(raw: Any, allowed: set[int]) -> tuple[int, ...]:
    """A group that a browser selected: node numbers, each once, in order."""
    if raw is None:
        return ()
    if not isinstance(raw, list) or not all(type(node) is int for node in raw):
        raise Problem("A group is a list of node numbers.")
    if outside := sorted(set(raw) - allowed):
        raise Problem(f"Node {outside[0]} is not among those that can contribute to this prediction.")
    return tuple(sorted(set(raw)))


def edges(raw: Any, allowed: Collection[Edge]) -> tuple[Edge, ...]:
    """A group of edges that a browser selected, each by its ends as in ``"3-5"``: each once, in order."""
    given = raw or []
    if not isinstance(given, list) or not all(isinstance(edge, str) and _EDGE.fullmatch(edge) for edge in given):
        raise Problem('A group of edges is a list of their ends, as in "3-5".')
    found = sorted({edge_of(*map(int, edge.split("-"))) for edge in given})
    if outside := [edge for edge in found if edge not in allowed]:
        raise Problem(f"Edge {outside[0]} is not among those that can contribute to this prediction.")
    return tuple(found)


def smiles(text: Any) -> str:
    """A SMILES as far as it can be judged without chemistry."""
    given = text.strip() if isinstance(text, str) else ""
    if not given:
        raise Problem("Type a SMILES, such as c1ccccc1[N+](=O)[O-] for nitrobenzene.")
    if len(given) > MAX_SMILES:
        raise Problem(f"This SMILES has {len(given):,} letters; the page takes up to {MAX_SMILES}.")
    return given


def sentence(text: Any) -> str:
    """A sentence as far as it can be judged without a vocabulary."""
    given = " ".join(text.split()) if isinstance(text, str) else ""
    if not given:
        raise Problem("Type a sentence, its words set apart by blanks.")
    if len(given) > MAX_SENTENCE:
        raise Problem(f"This sentence has {len(given):,} letters; the page takes up to {MAX_SENTENCE}.")
    return given


def graph(text: Any, width: int) -> tuple[Data, int | None, str]:
    """A graph, the node that is explained, and a title.

    Args:
        text: JSON, see above.
        width: how many features the model expects of a node.
    """
    content = _json(text)
    if unknown := sorted(set(content) - _KEYS):
        raise Problem(f"The file has a field {_short(unknown[0])!r}; a graph has {', '.join(sorted(_KEYS))}.")
    if content.get("format", FORMAT) != FORMAT:
        raise Problem(f"The format is {_short(content['format'])!r}; this page reads {FORMAT!r}.")
    x = _features(content.get("x"), width)
    data = Data(x=x, edge_index=_edges(content.get("edge_index"), len(x)))
    if "names" in content:
        data.names = _names(content["names"], len(x))
    if "smiles" in content:
        data.smiles = smiles(content["smiles"])
    index = content.get("index")
    if index is not None and not (type(index) is int and 0 <= index < len(x)):
        raise Problem(f"index must be a node from 0 to {len(x) - 1} (got {_short(index)}).")
    title = content.get("title", "uploaded graph")
    if not isinstance(title, str):
        raise Problem(f"title must be a text (got {_short(title)}).")
    return data, index, title[:MAX_NAME]


def _json(text: Any) -> dict[str, Any]:
    if not isinstance(text, str) or not text.strip():
        raise Problem("The file is empty; a graph is JSON with x and edge_index.")
    if len(text.encode()) > MAX_UPLOAD:
        raise Problem(f"The file is larger than {MAX_UPLOAD / 1e6:g} MB, the most that this page takes.")
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Problem(f"The file is no JSON: {_short(error)}.") from None
    if not isinstance(content, dict):
        raise Problem(f"A graph is a JSON object with x and edge_index (got a {type(content).__name__}).")
    return content


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _features(raw: Any, width: int) -> torch.Tensor:
    if not isinstance(raw, list) or not raw:
        raise Problem("x must be a list with the features of each node.")
    if len(raw) > MAX_NODES:
        raise Problem(f"The graph has {len(raw):,} nodes; the page takes up to {MAX_NODES:,}.")
    for number, row in enumerate(raw):
        if not isinstance(row, list) or len(row) != width:
            got = f"{len(row)} numbers" if isinstance(row, list) else _short(row)
            raise Problem(f"Node {number} must have {width} features, as the model expects (got {got}).")
        for value in row:
            if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > 1e30:
                raise Problem(f"Node {number} has a feature that is no finite number (got {_short(value)}).")
    return torch.tensor(raw, dtype=torch.float32)


def _edges(raw: Any, count: int) -> torch.Tensor:
    pair = isinstance(raw, list) and len(raw) == 2 and all(isinstance(row, list) for row in raw)
    if not pair or len(raw[0]) != len(raw[1]):
        raise Problem("edge_index must be two lists of node numbers, of the same length.")
    if len(raw[0]) > MAX_EDGES:
        raise Problem(f"The graph has {len(raw[0]):,} edges; the page takes up to {MAX_EDGES:,}.")
    for row in raw:
        for node in row:
            if type(node) is not int or not 0 <= node < count:
                raise Problem(f"edge_index names nodes from 0 to {count - 1} (got {_short(node)}).")
    return torch.tensor(raw, dtype=torch.long).reshape(2, -1)


def _names(raw: Any, count: int) -> list[str]:
    if not isinstance(raw, list) or len(raw) != count or not all(isinstance(name, str) for name in raw):
        raise Problem(f"names must be one text for each of the {count} nodes.")
    return raw


def _short(value: Any) -> str:
    """What was given, cut to what a message can hold."""
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
