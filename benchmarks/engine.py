"""The engine's speed on BA-Shapes, in one run: groups against plain forward passes, and explained nodes against peers.

    python benchmarks/engine.py [--quick] [--threads N]

A ratio of 1 means that one pass over K groups takes as long as K + 1 plain passes of the same model. Jobs that are
compared take turns. Times are processor time, which other load on the machine disturbs less than wall time.
"""

import copy
import statistics
from collections.abc import Callable

import torch
from measure import arguments, in_turn, machine, seconds, verdict
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import GINConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import xdegree
from xdegree.datasets import ba_shapes
from xdegree.models import GAT, GCN, _Network
from xdegree.training import train_node

SEED = 0
GROUPS = (1, 10, 100, 700)
EPOCHS = 100
"""Of GNNExplainer, its own default."""


def gin(features: int) -> nn.Module:
    """The paper's network with GIN layers."""
    return _Network(
        lambda i, o: GINConv(nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o))), features, 4, 20, 3, "node"
    )


def sage(features: int) -> nn.Module:
    """The paper's network with GraphSAGE layers."""
    return _Network(SAGEConv, features, 4, 20, 3, "node")


def main() -> None:
    """Print the machine, the settings and all tables."""
    given = arguments(__doc__)
    rounds, explained, epochs = (3, 3, 50) if given.quick else (7, 12, 300)
    data = ba_shapes(seed=SEED)
    width = data.num_features
    models: dict[str, nn.Module] = {"GCN": GCN(width, 4), "GAT": GAT(width, 4), "GIN": gin(width), "SAGE": sage(width)}
    for name in ("GCN", "GAT"):
        train_node(models[name], data, epochs=epochs, seed=SEED, progress=False)
    for model in models.values():
        model.eval()
    print(machine())
    print(f"data      BA-Shapes, seed {SEED}: {data.num_nodes} nodes, {data.num_edges} directed edges, float32")
    print(f"models    3 layers of width 20; GCN and GAT trained for {epochs} epochs; median of {rounds} rounds in turn")
    for name, model in models.items():
        print_ratios(name, model, data, rounds)
    print_yardstick(models["GCN"], data, rounds)
    for name in ("GCN", "GAT"):
        print_explained(name, models[name], data, explained)


def print_ratios(name: str, model: nn.Module, data: Data, rounds: int) -> None:
    """Time of K groups over K + 1 plain passes, for single nodes and for random halves of the graph."""
    print(f"\n{name}: K groups at once against K + 1 plain forward passes")
    print(f"{'K':>5} {'plain (ms)':>11} {'single nodes':>13} {'random halves':>14}")
    for k in GROUPS:
        jobs: dict[str, Callable[[], object]] = {
            "plain": lambda: forward(model, data),
            "single": lambda k=k: decompose(model, data, single_nodes(data, k)),
            "half": lambda k=k: decompose(model, data, random_halves(data, k)),
        }
        took = in_turn(jobs, rounds if k < 700 else max(2, rounds // 3), {"plain": 5})
        plain = took["plain"] * (k + 1)
        mark = f"   {verdict(max(took['single'], took['half']) / plain, 0.6)}" if k >= 100 else ""
        print(f"{k:>5} {1e3 * plain:>11.1f} {took['single'] / plain:>13.2f} {took['half'] / plain:>14.2f}{mark}")


def single_nodes(data: Data, k: int) -> Tensor:
    """Single nodes, spread over the graph."""
    mask = torch.zeros(k, int(data.num_nodes or 0), dtype=torch.bool)
    mask[torch.arange(k), torch.linspace(0, mask.shape[1] - 1, k).long()] = True
    return mask


def random_halves(data: Data, k: int) -> Tensor:
    """Every node with a chance of one half: nothing for the sparse form to gain."""
    return torch.rand(k, int(data.num_nodes or 0), generator=torch.Generator().manual_seed(SEED)) < 0.5


def decompose(model: nn.Module, data: Data, groups: Tensor) -> Tensor:
    """All groups in one call."""
    target: Tensor = xdegree.decompose(model, data.x, data.edge_index, groups=groups).target
    return target


@torch.no_grad()
def forward(model: nn.Module, data: Data) -> Tensor:
    """One plain pass."""
    out: Tensor = model(data.x, data.edge_index)
    return out


@torch.no_grad()
def by_hand(model: nn.Module, data: Data, groups: Tensor) -> Tensor:
    """The paper's GCN by the default rules: a CSR product over the [N, K · F] block, biases shared in place."""
    n, k = int(data.num_nodes or 0), len(groups)
    edges, weight = gcn_norm(data.edge_index, None, n, dtype=data.x.dtype)
    matrix = torch.sparse_coo_tensor(edges.flip(0), weight, (n, n)).to_sparse_csr()
    total, target = data.x, data.x.unsqueeze(1) * groups.t().unsqueeze(2)

    def share(bias: Tensor) -> None:
        nonlocal total
        size = target.abs()
        both = (total.unsqueeze(1) - target).abs_().add_(size).clamp_min_(torch.finfo(target.dtype).tiny)
        target.addcdiv_(size.mul_(bias), both)
        total = total + bias

    def relu() -> None:
        nonlocal total, target
        total = total.relu()
        target = torch.minimum(target.relu_(), total.unsqueeze(1))

    for conv in model.convs:
        total, target = matrix @ (total @ conv.lin.weight.t()), target @ conv.lin.weight.t()
        target = (matrix @ target.reshape(n, -1)).reshape(n, k, -1)
        share(conv.bias)
        relu()
    for number, linear in enumerate((model.lin1, model.lin2)):
        total, target = total @ linear.weight.t(), target @ linear.weight.t()
        share(linear.bias)
        if not number:
            relu()
    return target.movedim(1, 0)


def _double(x: Tensor) -> Tensor:
    return x.double()


def print_yardstick(model: nn.Module, data: Data, rounds: int) -> None:
    """The general engine against a loop that is written for this one model."""
    print("\nGCN, random halves: the general engine against a dense loop written by hand for this model")
    print(f"{'K':>5} {'by hand / (K + 1) plain':>24} {'engine / by hand':>17}")
    exact, doubled, few = copy.deepcopy(model).double(), data.clone().apply(_double, "x"), random_halves(data, 20)
    torch.testing.assert_close(by_hand(exact, doubled, few), decompose(exact, doubled, few))
    for k in (100, 700):
        groups = random_halves(data, k)
        jobs: dict[str, Callable[[], object]] = {
            "plain": lambda: forward(model, data),
            "hand": lambda groups=groups: by_hand(model, data, groups),
            "engine": lambda groups=groups: decompose(model, data, groups),
        }
        took = in_turn(jobs, rounds if k < 700 else max(3, rounds // 2), {"plain": 5})
        ratio = took["engine"] / took["hand"]
        print(f"{k:>5} {took['hand'] / took['plain'] / (k + 1):>24.2f} {ratio:>17.2f}   {verdict(ratio, 1.3)}")


def print_explained(name: str, model: nn.Module, data: Data, count: int) -> None:
    """Nodes one call each, and all motif nodes in one call, against peers."""
    motif = (data.y > 0).nonzero().flatten()
    nodes = motif[torch.linspace(0, len(motif) - 1, count).long()].tolist()
    peer = Explainer(
        copy.deepcopy(model),
        GNNExplainer(epochs=EPOCHS),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    torch.manual_seed(SEED)
    xdegree.explain(model, data.x, data.edge_index, index=nodes[0])  # warms up
    found = []
    for node in nodes:
        single = seconds(lambda node=node: xdegree.explain(model, data.x, data.edge_index, index=node), 3)
        other = seconds(lambda node=node: peer(data.x, data.edge_index, index=node))
        slope = seconds(lambda node=node: saliency(model, data, node), 5)
        plain = seconds(lambda: forward(model, data), 5)
        found.append((single, other, slope, plain))
    single, other, slope, plain = (statistics.median(values) for values in zip(*found, strict=True))
    chosen = motif.tolist()
    whole = in_turn({"all": lambda: xdegree.explain(model, data.x, data.edge_index, index=chosen)}, 3)["all"] / len(
        chosen
    )
    field = statistics.mean(len(e.nodes) for e in xdegree.explain(model, data.x, data.edge_index, index=nodes))
    print(f"\n{name}: milliseconds per explained node, median of {count} motif nodes; all {len(chosen)} in one call")
    print(f"  GNNExplainer, {EPOCHS} epochs        {1e3 * other:9.2f}")
    print(f"  saliency, one backward pass     {1e3 * slope:9.2f}")
    print(f"  one forward pass per group      {1e3 * field * plain:9.2f}   ({field:.0f} nodes in the field on average)")
    print(f"  xdegree, one node per call      {1e3 * single:9.2f}")
    print(f"  xdegree, all in one call        {1e3 * whole:9.2f}")
    against = {"GCN": (0.4, 60.0), "GAT": (2.0, 45.0)}[name]
    gain = other / single
    print(f"  one node per call: {gain:.0f} × faster than GNNExplainer ({verdict(gain, against[1], True)})")
    print(f"  all in one call: {other / whole:.0f} × faster than GNNExplainer ({verdict(other / whole, 400, True)}),")
    ratio = field * plain / whole
    print(f"    {ratio:.0f} × faster than one forward pass per group ({verdict(ratio, 150, True)}),")
    print(f"    {whole / slope:.2f} × one backward pass ({verdict(whole / slope, against[0])})")


def saliency(model: nn.Module, data: Data, node: int) -> Tensor:
    """One gradient."""
    x = data.x.clone().requires_grad_()
    out = model(x, data.edge_index)[node]
    [grad] = torch.autograd.grad(out[out.argmax()], x)
    return grad


if __name__ == "__main__":
    main()
