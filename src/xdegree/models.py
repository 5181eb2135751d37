"""The paper's networks and a GIN, as anybody would write them with PyTorch Geometric.

Nothing here knows of decomposition.
"""

from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, global_max_pool

Level = Literal["node", "graph"]


class _Network(nn.Module):
    """Convolutions with ReLU, for graphs a global max pool, then two linear layers."""

    def __init__(
        self,
        conv: Callable[[int, int], nn.Module],
        in_channels: int,
        out_channels: int,
        hidden: int,
        layers: int,
        level: Level,
        first: Callable[[int, int], nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if level not in ("node", "graph"):
            raise ValueError(f'level is "node" or "graph" (got {level!r})')
        self.level = level
        self.config: dict[str, Any] = {
            "kind": type(self).__name__,
            "in_channels": in_channels,
            "out_channels": out_channels,
            "hidden": hidden,
            "layers": layers,
            "level": level,
        }
        """What it takes to make the same network again, as plain values: see `build`."""
        self.convs = nn.ModuleList([(first or conv)(in_channels, hidden)])
        self.convs.extend(conv(hidden, hidden) for _ in range(layers - 1))
        self.lin1 = nn.Linear(hidden, hidden)
        self.lin2 = nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Raw logits, [N, classes] of nodes or [graphs, classes] of graphs; `batch` [N] tells a node's graph."""
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        if self.level == "graph":
            x = global_max_pool(x, batch)
        logits: Tensor = self.lin2(self.lin1(x).relu())
        return logits


class GCN(_Network):
    """The paper's GCN; its Tree-Grid experiment takes `layers=4`."""

    def __init__(
        self, in_channels: int, out_channels: int, *, hidden: int = 20, layers: int = 3, level: Level = "node"
    ) -> None:
        super().__init__(GCNConv, in_channels, out_channels, hidden, layers, level)


class GAT(_Network):
    """The paper's GAT: the GCN with attention of one head.

    Where all nodes have the same features it cannot learn: attention sums to one, so every node gets the same output.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, hidden: int = 20, layers: int = 3, level: Level = "node"
    ) -> None:
        super().__init__(GATConv, in_channels, out_channels, hidden, layers, level)


class HybridGAT(_Network):
    """A GAT whose first layer is a graph convolution, which tells nodes of constant features apart by their degrees.

    Very probably the paper's: an older notebook of its authors has this model.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, hidden: int = 20, layers: int = 3, level: Level = "node"
    ) -> None:
        super().__init__(GATConv, in_channels, out_channels, hidden, layers, level, first=GCNConv)


class GIN(_Network):
    """The GCN with sums over neighbors and two linear layers in each convolution; not in the paper."""

    def __init__(
        self, in_channels: int, out_channels: int, *, hidden: int = 20, layers: int = 3, level: Level = "node"
    ) -> None:
        super().__init__(_gin_conv, in_channels, out_channels, hidden, layers, level)


def _gin_conv(width: int, hidden: int) -> nn.Module:
    return GINConv(nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))


Network = GCN | GAT | HybridGAT | GIN
MODELS: dict[str, type[GCN] | type[GAT] | type[HybridGAT] | type[GIN]] = {
    "GCN": GCN,
    "GAT": GAT,
    "HybridGAT": HybridGAT,
    "GIN": GIN,
}


def build(config: dict[str, Any]) -> Network:
    """A network, with new weights, from the `config` of another."""
    settings = dict(config)
    kind = settings.pop("kind", None)
    if kind not in MODELS:
        raise ValueError(f"kind must be one of {tuple(MODELS)} (got {kind!r})")
    return MODELS[kind](**settings)
