"""Any graph: places that follow the hops between nodes."""

from collections.abc import Iterable, Mapping, Sequence

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from ..results.explanation import Explanation
from .base import Canvas, Point, edges_of
from .scores import explained_node, node_scores

MOST_SHOWN = 300  # nodes of a page's drawing; of more, the strongest with the ways between them
SLOW = 400  # from so many nodes on, all pairs of hops take longer than a reader waits
STEPS, STILL = 200, 0.0003  # of the layout at most; the largest move, in hops, that is not visible
GAP, WIDE = 1.2, 1.3  # between parts, in hops; how much wider than high they are together, as screens and pages are


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


def neighborhood(
    edge_index: Tensor, nodes: Sequence[int], strength: Tensor, root: int | None, most: int | None = None
) -> list[int]:
    """So many of the nodes at most: the strongest, each with the shortest way that joins it to the root.

    The root is the explained node, or the strongest one. What cannot be reached from it comes last.
    """
    most = MOST_SHOWN if most is None else most
    if len(nodes) <= most:
        return list(nodes)
    inside = set(nodes)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((u, v) for u, v in edge_index.t().tolist() if u in inside and v in inside)
    order = sorted(nodes, key=lambda node: (-float(strength[node]), node))
    start = order[0] if root is None else root
    before = dict(nx.bfs_predecessors(graph, start))
    chosen = {start}
    for node in sorted(order, key=lambda node: node not in before):
        way = [node]
        while way[-1] in before and way[-1] not in chosen:
            way.append(before[way[-1]])
        if len(chosen.union(way)) <= most:
            chosen.update(way)
    return sorted(chosen)


def explained_graph(e: Explanation, labels: Mapping[int, str] | None = None) -> Canvas:
    """The nodes that can contribute to a prediction; of more than can be told apart, the neighborhood that matters."""
    if e.edge_index is None:
        raise ValueError("the explanation does not know its graph: give on=graph_canvas(edge_index, nodes)")
    strength = torch.tensor(node_scores(e)).abs()
    return graph_canvas(e.edge_index, neighborhood(e.edge_index, e.nodes.tolist(), strength, explained_node(e)), labels)


def part_line(canvas: Canvas, nodes: Sequence[int], scores: Sequence[float], root: int | None) -> str:
    """What is drawn of a graph that is too large to be drawn, and how much of the scores; empty where all is drawn."""
    if len(canvas.places) >= len(nodes):
        return ""
    share = sum(abs(scores[node]) for node in canvas.places) / (sum(map(abs, scores)) or 1.0)
    to = "the strongest node" if root is None else "the explained node"
    return (
        f"Drawn are {len(canvas.places)} of {len(nodes):,} nodes that can contribute, with {share:.0%} of all"
        f" scores by magnitude: the strongest, and the ways that join them to {to}. All numbers count all nodes."
    )


def _layout(graph: "nx.Graph[int]") -> dict[int, Point]:
    """Each connected part by itself, the long side flat, and the parts side by side."""
    parts = [graph.subgraph(sorted(part)) for part in nx.connected_components(graph)]
    laid = [_flat(_by_hops(part) if len(part) < SLOW else _by_springs(part)) for part in parts]
    moved = np.concatenate([xy + corner for xy, corner in zip(laid, _corners(laid), strict=True)])
    moved -= moved.mean(0)
    found = dict(zip((node for part in parts for node in sorted(part)), moved.tolist(), strict=True))
    return {node: (found[node][0], found[node][1]) for node in graph}


def _flat(xy: np.ndarray) -> np.ndarray:
    xy = xy - xy.mean(0)
    turned: np.ndarray = xy @ np.linalg.eigh(xy.T @ xy)[1][:, ::-1]
    return turned


def _corners(laid: Sequence[np.ndarray]) -> list[np.ndarray]:
    """How far each part [n, 2] moves: rows of parts from the top, high ones first, as lines of text are filled."""
    low, size = [xy.min(0) for xy in laid], [np.ptp(xy, axis=0) + GAP for xy in laid]
    width = max(*(wide for wide, _ in size), (WIDE * sum(wide * high for wide, high in size)) ** 0.5)
    moves = [np.zeros(2)] * len(laid)
    x = y = row = 0.0
    for part in sorted(range(len(laid)), key=lambda i: (-size[i][1], -size[i][0], i)):
        wide, high = size[part]
        if x and x + wide > width + 1e-9:
            x, y, row = 0.0, y - row, 0.0
        row = row or high
        moves[part] = np.array([x, y - (row + high) / 2]) - low[part]  # in the middle of its row
        x += wide
    return moves


def _by_hops(part: "nx.Graph[int]") -> np.ndarray:
    """Distances [n, 2] that follow the hops as Kamada and Kawai ask, found by majorisation of their stress.

    The same optimum as networkx's layout of that name, ten times as fast: each step solves the linear system of
    Gansner, Koren and North, "Graph drawing by stress majorization" (2004), whose matrix stays the same.
    """
    if len(part) == 1:
        return np.zeros((1, 2))
    hops = _hops(part)
    weight = 1 / (hops + np.eye(len(hops))) ** 2 - np.eye(len(hops))
    inverse = np.linalg.inv(np.diag(weight.sum(1)) - weight + 1 / len(hops)) - 1 / len(hops)
    xy = _start(hops)
    for step in range(STEPS):
        pull = weight * hops / np.maximum(_distances(xy), 1e-9)
        better = inverse @ (pull.sum(1)[:, None] * xy - pull @ xy)
        if np.abs(better - xy).max() < STILL:
            break
        # A double step is allowed and saves half of them; now and then a plain one keeps them from swinging.
        xy = 2 * better - xy if step % 4 else better
    return better


def _hops(part: "nx.Graph[int]") -> np.ndarray:
    try:
        from scipy.sparse.csgraph import shortest_path  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:  # networkx comes with torch, but scipy does not
        message = f'laying out a graph needs {error.name}: pip install "xdegree[plot]"'
        raise ModuleNotFoundError(message, name=error.name) from error
    found: np.ndarray = shortest_path(nx.to_scipy_sparse_array(part), unweighted=True)
    return found


def _distances(xy: np.ndarray) -> np.ndarray:
    """[n, n], by the products of all pairs: quicker than their differences."""
    products = xy @ xy.T
    squares = np.diag(products)
    found: np.ndarray = np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 0))
    return found


def _start(hops: np.ndarray) -> np.ndarray:
    """Classical scaling of the hops [n, n]: from a circle the layout often stays tangled.

    The circle is added in small, because nodes of equal hops would start at one point and never part.
    """
    squares = hops**2
    centred = squares.mean(0) + squares.mean(1)[:, None] - squares.mean() - squares
    values, vectors = np.linalg.eigh(centred)
    turn = 2 * np.pi * np.arange(len(hops)) / len(hops)
    near: np.ndarray = 0.1 * np.stack([np.cos(turn), np.sin(turn)], 1)
    return near + vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))


def _by_springs(part: "nx.Graph[int]") -> np.ndarray:
    """For large parts; an edge is one hop long, as in the others."""
    place = nx.spring_layout(part, seed=0)
    lengths = [np.linalg.norm(place[u] - place[v]) for u, v in part.edges]
    return np.array([place[node] for node in part]) / np.median(lengths)
