"""Small models and graphs that several test files build on."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_max_pool, global_mean_pool

import xdegree.attribution.decompose as decompose_module
import xdegree.engine.masked_rows as masked_rows_module
import xdegree.engine.portions as portions_module
from xdegree.engine.run import Run

CONVS = {
    "gcn": GCNConv,
    "gat": lambda i, o: GATConv(i, o, heads=1),
    "sage": SAGEConv,
    "gin": lambda i, o: GINConv(nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o))),
}
POOLS = {"max": global_max_pool, "mean": global_mean_pool}


class Net(nn.Module):
    """Convolutions with ReLU, a pool for graphs, two linear layers."""

    def __init__(self, conv, level="node", features=4, hidden=6, classes=3, layers=2, pool="max"):
        super().__init__()
        self.convs = nn.ModuleList([conv(features if i == 0 else hidden, hidden) for i in range(layers)])
        self.lin1, self.lin2 = nn.Linear(hidden, hidden), nn.Linear(hidden, classes)
        self.level, self.pool = level, POOLS[pool]

    def forward(self, x, edge_index, batch=None):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        if self.level == "graph":
            x = self.pool(x, batch)
        return self.lin2(self.lin1(x).relu())


def ready(model: nn.Module, seed: int = 9, dtype: torch.dtype = torch.float64) -> nn.Module:
    """The model in eval mode with random weights everywhere, biases too (PyG's start at zero)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.8)
    return model.to(dtype).eval()


def net(kind: str = "gcn", level: str = "node", seed: int = 9, dtype: torch.dtype = torch.float64, **sizes) -> Net:
    return ready(Net(CONVS[kind], level, **sizes), seed, dtype)


def features(nodes: int = 12, width: int = 4, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(nodes, width, generator=torch.Generator().manual_seed(seed)).to(dtype)


def both_ways(edges: list[tuple[int, int]]) -> Tensor:
    return torch.tensor([*edges, *[(v, u) for u, v in edges]]).t().contiguous()


# A path of twelve nodes with two chords and a triangle at its end: far enough for three hops to leave something out.
EDGES = both_ways([*[(i, i + 1) for i in range(11)], (0, 2), (3, 6), (9, 11)])
PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])  # four nodes in a row
PAIR_BATCH = torch.tensor([0] * 5 + [1] * 7)
PAIR_EDGES = both_ways([*[(i, i + 1) for i in range(11) if i != 4], (0, 3), (5, 8)])


def singles(nodes: int = 12) -> list[list[int]]:
    return [[node] for node in range(nodes)]


def assert_close(got: Tensor, expected: Tensor, atol: float = 1e-12) -> None:
    """Equal up to rounding, by absolute difference."""
    torch.testing.assert_close(got, expected, rtol=0, atol=atol)


def as_large(monkeypatch) -> None:
    """Let small graphs be treated as large ones are: parts are cut out, rows are explained a few at a time."""
    monkeypatch.setattr("xdegree.attribution.explain.LARGE", 0)
    monkeypatch.setattr("xdegree.locality.prepared.SMALL", 0)
    monkeypatch.setattr("xdegree.locality.prepared.MOST", 1)


FORMS = ("pairs", "rows", "dense")


@contextmanager
def storage(form: str) -> Iterator[None]:
    """How targets are stored: by pairs of group and row, by rows that are all target or nothing, or written out."""
    thin = math.inf if form == "pairs" else -1.0
    run = Run if form != "dense" else lambda *args, **kwargs: Run(*args, **{**kwargs, "sparse": False})
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(masked_rows_module, "THIN", thin))
        stack.enter_context(mock.patch.object(masked_rows_module, "MANY", 0))
        stack.enter_context(mock.patch.object(portions_module, "DENSE_ABOVE", thin))
        stack.enter_context(mock.patch.object(decompose_module, "Run", run))
        yield


def until(page: Any, condition: Callable[[], object], what: str) -> None:
    """Look again and again: what a browser shows comes when the machine has time for it."""
    for _ in range(600):
        if condition():
            return
        page.wait_for_timeout(80)
    raise AssertionError(f"never came true: {what}")


def reads(page: Any, where: str, text: str) -> None:
    """Wait until a part of a page begins with a text."""
    until(page, lambda: page.inner_text(where).startswith(text), f"{where} reads {text!r}")


def holds(page: Any, where: str, count: int) -> None:
    """Wait until a page has so many of something."""
    until(page, lambda: page.locator(where).count() == count, f"{count} of {where}")
