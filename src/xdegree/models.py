"""The paper's two networks, as anybody would write them with PyTorch Geometric: nothing here knows of decomposition."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, global_max_pool

Level = Literal["node", "graph"]


class _Network(nn.Module):
    """Convolutions with ReLU, for graphs a global max pool, then two linear layers."""

    def __init__(self, convs: Sequence[nn.Module], hidden: int, out_channels: int, level: Level) -> None:
        super().__init__()
        if level not in ("node", "graph"):
            raise ValueError(f'level is "node" or "graph" (got {level!r})')
        self.level = level
        self.convs = nn.ModuleList(convs)
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
        widths = [in_channels] + [hidden] * (layers - 1)
        super().__init__([GCNConv(width, hidden) for width in widths], hidden, out_channels, level)


class GAT(_Network):
    """The paper's GAT: the GCN with attention of one head."""

    def __init__(
        self, in_channels: int, out_channels: int, *, hidden: int = 20, layers: int = 3, level: Level = "node"
    ) -> None:
        widths = [in_channels] + [hidden] * (layers - 1)
        super().__init__([GATConv(width, hidden, heads=1) for width in widths], hidden, out_channels, level)
