"""Any graph: places that follow the hops between nodes."""

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx
import numpy as np
from torch import Tensor

from .base import Canvas, Point, edges_of

SLOW = 300  # above so many nodes Kamada-Kawai takes longer than a reader waits


def graph_canvas(edge_index: Tensor, nodes: Iterable[int], labels: Mapping[int, str] | None = None) -> Canvas:
    """Lay out some nodes of a graph and the edges between them; the same graph gets the same places.

    Args:
        edge_index: [2, E]; directions are not shown.
        nodes: ids of the nodes to show.
        labels: what to call a node; its id by default.
    """
    shown = sorted(set(nodes))
    if not shown:
        raise ValueError("nodes is empty: there is nothing to show")
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(shown)
    graph.add_edges_from(edges_of(edge_index, shown))
    places = _layout(graph)
    paths = {(min(u, v), max(u, v)): ((places[u], places[v]),) for u, v in graph.edges}
    return Canvas(places, paths, {node: (labels or {}).get(node, str(node)) for node in shown})


def _layout(graph: "nx.Graph[int]") -> dict[int, Point]:
    """Positions whose distances follow the hops between nodes (Kamada-Kawai)."""
    if len(graph) > SLOW:
        place = nx.spring_layout(graph, seed=0)
    else:
        paths = dict(nx.all_pairs_shortest_path_length(graph))
        apart = 1 + max(max(row.values()) for row in paths.values())  # parts without a path stand side by side
        hops = np.array([[paths[u].get(v, apart) for v in graph] for u in graph], dtype=float)
        dist = {u: dict(zip(graph, row, strict=True)) for u, row in zip(graph, hops.tolist(), strict=True)}
        place = _kamada_kawai(graph, dist, _start(graph, hops))
    xy = np.array([place[node] for node in graph])
    xy -= xy.mean(0)
    xy = xy @ np.linalg.eigh(xy.T @ xy)[1][:, ::-1]  # the long side lies flat
    return {node: (x, y) for node, (x, y) in zip(graph, xy.tolist(), strict=True)}


def _kamada_kawai(graph: "nx.Graph[int]", dist: Any, start: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    try:
        return nx.kamada_kawai_layout(graph, dist=dist, pos=start)
    except ModuleNotFoundError as error:  # networkx comes with torch, but what this layout needs does not
        message = f'laying out a graph needs {error.name}: pip install "xdegree[plot]"'
        raise ModuleNotFoundError(message, name=error.name) from error


def _start(graph: "nx.Graph[int]", hops: np.ndarray) -> dict[int, np.ndarray]:
    """Classical scaling of the hops [n, n]: from a circle, the default, the layout often stays tangled.

    The circle is added in small, because nodes of equal hops would start at one point and never part.
    """
    squares = hops**2
    centred = squares.mean(0) + squares.mean(1)[:, None] - squares.mean() - squares
    values, vectors = np.linalg.eigh(centred)
    xy = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    return {node: xy[row] + 0.1 * near for row, (node, near) in enumerate(nx.circular_layout(graph).items())}
