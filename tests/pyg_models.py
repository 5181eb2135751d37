# ruff: noqa: E501  (tables of one-line cases)
"""Every ready-made model that PyG exports and what else it has beside layers, as calls with the node features first."""

from typing import Any

import torch
import torch_geometric.nn as pyg
from cases import (
    DEGREE,
    EDGES,
    INDEX,
    INPUTS,
    KIND,
    META,
    ORDER,
    OTHERS,
    PAIR_ATTR,
    PAIR_EDGES,
    SOFTMAX,
    WEIGHTS,
    ZEROS,
    Build,
    Case,
    N,
    by_sign,
    case,
    hetero,
    mlp,
    noise,
)  # fmt: skip
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj


def model(name: str, build: Build, *args: Any, **more: Any) -> Case:
    return case("models", name, build, *(args or (EDGES,)), **more)


class EdgeModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = mlp(4 + 4 + 2 + 3, 5)

    def forward(self, src: Tensor, dst: Tensor, edge_attr: Tensor, u: Tensor, batch: Tensor) -> Tensor:
        return self.mlp(torch.cat([src, dst, edge_attr, u[batch]], 1))


class NodeModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = mlp(4 + 5 + 3, 5)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, u: Tensor, batch: Tensor) -> Tensor:
        gathered = torch.zeros(len(x), 5, dtype=x.dtype).index_add_(0, edge_index[1], edge_attr)
        return self.mlp(torch.cat([x, gathered, u[batch]], 1))


class GlobalModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = mlp(3 + 5, 4)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, u: Tensor, batch: Tensor) -> Tensor:
        return self.mlp(torch.cat([u, pyg.global_mean_pool(x, batch)], 1))


class TwoHeads(nn.Module):
    """The encoder of a variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.deviation = pyg.GCNConv(4, 5), pyg.GCNConv(4, 5)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean(x, edge_index), self.deviation(x, edge_index)


def encode_decode(m: Any, x: Tensor, edge_index: Tensor) -> Tensor:
    return m.decode(m.encode(x, edge_index), edge_index[:, ::3])


def encode_discriminate(m: Any, x: Tensor, edge_index: Tensor) -> Tensor:
    return m.discriminator(m.encode(x, edge_index))


def infomax() -> nn.Module:
    def summary(z: Tensor, *_: Any) -> Tensor:
        return z.mean(0).sigmoid()

    def corruption(x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        return x[PERM], edge_index

    return pyg.DeepGraphInfomax(5, pyg.GCNConv(4, 5), summary, corruption)


def fixed_interactions(pos: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    """The graph of a molecule given once and for all, its distances from the positions."""
    return EDGES, (pos[EDGES[0]] - pos[EDGES[1]]).norm(dim=-1)


def correct_and_smooth(m: Any, y_soft: Tensor, mask: Tensor, edge_index: Tensor) -> Tensor:
    y_soft = m.correct(y_soft, KIND[mask], mask, edge_index)
    return m.smooth(y_soft, KIND[mask], mask, edge_index)


def gpse() -> nn.Module:
    sizes = {"layers_mp": 2, "num_node_targets": 3, "num_graph_targets": 2, "multi_head_dim_inner": 4}
    return pyg.GPSE(4, 5, 6, virtual_node=False, use_repr=False, **sizes)


def gpse_prediction(m: Any, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
    true = {"y": torch.zeros(N, 3), "y_graph": torch.zeros(2, 2)}
    return m(Data(x=x, edge_index=edge_index, batch=batch, **true))[0]


def polynormer(everywhere: bool = False) -> nn.Module:
    """Polynormer trains its local half first; the global half is switched on by this attribute."""
    net = pyg.Polynormer(4, 6, 3, local_layers=2)
    net._global = everywhere
    return net


def _basic(name: str, everything: bool = True, dead: bool = False) -> list[Case]:
    cls, more = getattr(pyg, name), {}
    if name == "PNA":
        more = {"aggregators": ["mean", "max", "std"], "scalers": ["identity", "amplification"], "deg": DEGREE}
    return [
        model(name, lambda: cls(4, 6, 2, 3, **more), everything=everything and not dead),
        model(name, lambda: cls(4, 6, 2, 3, jk="cat", norm="batch_norm", act="elu", **more), variant="cat", everything=everything),
        model(name, lambda: cls(4, 6, 3, 3, jk="max", norm="graph_norm", act="leaky_relu", **more), variant="max", everything=everything),
        model(name, lambda: cls(4, 6, 2, 3, jk="lstm", norm="layer_norm", act_first=True, **more), variant="lstm", **SOFTMAX),
    ]  # fmt: skip


def _ppr() -> Tensor:
    adjacency = to_dense_adj(EDGES)[0].double()
    walk = adjacency / adjacency.sum(1, keepdim=True)
    return (0.15 * torch.linalg.inv(torch.eye(N).double() - 0.85 * walk)).to_sparse()


PERM = torch.randperm(N, generator=torch.Generator().manual_seed(8))
MASK = torch.arange(N) % 3 == 0
PAIRS = torch.tensor([[0, 3, 9], [2, 6, 11]])
PPR = _ppr()
MODELS = [
    model("MLP", lambda: pyg.MLP([4, 6, 6, 3]), call=lambda m, x, e: m(x)),
    model("MLP", lambda: pyg.MLP([4, 6, 3], norm="graph_norm", act="gelu"), INDEX, variant="graph norm"),
    *_basic("GCN"), *_basic("GraphSAGE"), *_basic("GIN"), *_basic("GAT", **SOFTMAX), *_basic("PNA"), *_basic("EdgeCNN", dead=True),
    *(model("JumpingKnowledge", lambda k=k: pyg.JumpingKnowledge(k, 4, 3), call=lambda m, x, e: m([x, x.relu(), x.tanh()]),
            variant=k, everything=k != "lstm") for k in ("cat", "max", "lstm")),
    *(model("HeteroJumpingKnowledge", lambda k=k: pyg.HeteroJumpingKnowledge(["a", "b"], k, 4, 3),
            call=lambda m, x, e: m({"a": [x, x.relu(), x.tanh()], "b": [x, x, x]}), variant=k, everything=k != "lstm") for k in ("cat", "max", "lstm")),
    model("MetaLayer", lambda: pyg.MetaLayer(EdgeModel(), NodeModel(), GlobalModel()), PAIR_EDGES, PAIR_ATTR, noise(2, 3), INDEX, **OTHERS),
    model("DeepGraphInfomax", infomax, **ORDER),
    model("InnerProductDecoder", pyg.InnerProductDecoder),
    model("InnerProductDecoder", pyg.InnerProductDecoder, call=lambda m, z, e: m.forward_all(z), variant="all pairs", **ORDER),
    model("GAE", lambda: pyg.GAE(pyg.GCNConv(4, 5))),
    model("GAE", lambda: pyg.GAE(pyg.GCNConv(4, 5)), call=encode_decode, variant="links"),
    model("VGAE", lambda: pyg.VGAE(TwoHeads()), call=encode_decode),
    model("ARGA", lambda: pyg.ARGA(pyg.GCNConv(4, 5), mlp(5, 3, 1)), call=encode_discriminate),
    model("ARGVA", lambda: pyg.ARGVA(TwoHeads(), mlp(5, 3, 1)), call=encode_discriminate),
    model("SignedGCN", lambda: pyg.SignedGCN(4, 6, 2), call=by_sign, **ZEROS),
    model("GraphUNet", lambda: pyg.GraphUNet(4, 6, 3, depth=2)),
    model("SchNet", lambda: pyg.SchNet(6, 6, 2, 5, interaction_graph=fixed_interactions), call=lambda m, pos, e: m(KIND, pos), x="positions", **OTHERS, **ORDER),
    model("GPSE", gpse, PAIR_EDGES, INDEX, call=gpse_prediction, **ORDER),
    model("GPSENodeEncoder", lambda: pyg.GPSENodeEncoder(6, 3, 2, 4, expand_x=True), noise(N, 3), **OTHERS),
    model("to_captum_model", lambda: pyg.to_captum_model(pyg.GCN(4, 6, 2, 3), "node", 5), call=lambda m, x, e: m(x.unsqueeze(0), e), **ORDER),
    *(model("DeepGCNLayer", lambda b=b: pyg.DeepGCNLayer(pyg.GCNConv(4, 4), pyg.LayerNorm(4), nn.ReLU(), block=b), variant=b)
      for b in ("res+", "res", "dense", "plain")),
    model("LabelPropagation", lambda: pyg.LabelPropagation(3, 0.8), EDGES, MASK, x="probabilities"),
    *(model("CorrectAndSmooth", lambda a=a: pyg.CorrectAndSmooth(2, 0.8, 2, 0.8, autoscale=a), MASK, EDGES, call=correct_and_smooth,
            x="probabilities", variant="" if a else "fixed scale", **ORDER, **OTHERS) for a in (True, False)),
    model("AttentiveFP", lambda: pyg.AttentiveFP(4, 6, 3, 2, 2, 2), PAIR_EDGES, PAIR_ATTR, INDEX, **SOFTMAX),
    model("RECT_L", lambda: pyg.RECT_L(4, 6)),
    model("LINKX", lambda: pyg.LINKX(N, 4, 6, 3, 2), **ORDER, **OTHERS),
    model("MaskLabel", lambda: pyg.MaskLabel(3, 4), KIND, MASK),
    model("MaskLabel", lambda: pyg.MaskLabel(3, 4, method="concat"), KIND, MASK, variant="concat", **OTHERS),
    model("GroupAddRev", lambda: pyg.GroupAddRev(pyg.GCNConv(2, 2), num_groups=2), call=lambda m, x, e: m(x.clone(), e)),
    model("GroupAddRev", lambda: pyg.GroupAddRev(pyg.GCNConv(2, 2), num_groups=2, disable=True), variant="not inverted"),
    model("PMLP", lambda: pyg.PMLP(4, 6, 3, 2)),
    model("NeuralFingerprint", lambda: pyg.NeuralFingerprint(4, 6, 3, 2), PAIR_EDGES, INDEX, **WEIGHTS),
    model("LPFormer", lambda: pyg.LPFormer(4, 6, ppr_thresholds=[0, 0, 0]), PAIRS, EDGES, PPR,
          call=lambda m, x, pairs, *more: m(pairs, x, *more), **SOFTMAX, **ORDER),
    model("SGFormer", lambda: pyg.SGFormer(4, 6, 3, gnn_num_layers=2), PAIR_EDGES, INDEX),
    model("Polynormer", polynormer, PAIR_EDGES, INDEX, **SOFTMAX),
    model("Polynormer", lambda: polynormer(everywhere=True), PAIR_EDGES, INDEX, variant="global", **SOFTMAX),
    model("ARLinkPredictor", lambda: pyg.models.ARLinkPredictor(4, 6)),
]  # fmt: skip


class Homogeneous(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.lin = pyg.SAGEConv((4, 4), 5), pyg.SAGEConv((5, 5), 5), nn.Linear(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(self.conv2(self.conv1(x, edge_index).relu(), edge_index).relu())


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.pool, self.lin = pyg.GCNConv(4, 5), pyg.SumAggregation(), nn.Linear(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.lin(self.pool(self.conv(x, edge_index), batch))


def with_bases() -> nn.Module:
    net = pyg.to_hetero_with_bases(Homogeneous(), META, num_bases=3, in_channels={"x": 4})
    hetero(net, INPUTS["nodes"].to(torch.get_default_dtype()))  # makes its lazy parameters
    return net


def sequential() -> nn.Module:
    layers = [
        (pyg.GCNConv(4, 6), "x, edge_index -> x1"),
        nn.ReLU(),
        (pyg.GCNConv(6, 6), "x1, edge_index -> x2"),
        (lambda a, b: [a, b], "x1, x2 -> xs"),
        (pyg.JumpingKnowledge("cat"), "xs -> x"),
        nn.Linear(12, 3),
    ]
    return pyg.Sequential("x, edge_index", layers)


REST = [
    case("encoding", "PositionalEncoding", lambda: pyg.PositionalEncoding(6), call=lambda m, x: m(x.view(-1)), x="one"),
    case("encoding", "TemporalEncoding", lambda: pyg.TemporalEncoding(6), call=lambda m, x: m(x.view(-1)), x="one"),
    case("nn", "PositionalEncoding", lambda: pyg.PositionalEncoding(6), call=lambda m, x: m(x.view(-1)), x="one"),
    case("nn", "TemporalEncoding", lambda: pyg.TemporalEncoding(6), call=lambda m, x: m(x.view(-1)), x="one"),
    case("functional", "bro", lambda: pyg.bro, INDEX, **ORDER),
    case("functional", "gini", lambda: pyg.gini),
    case("nn", "Reshape", lambda: pyg.Reshape(-1, 2, 2)),
    case("nn", "Sequential", sequential, EDGES),
    case("nn", "to_hetero", lambda: pyg.to_hetero(Homogeneous(), META), call=hetero, **ZEROS, **ORDER),
    case("nn", "to_hetero_with_bases", with_bases, call=hetero, **ORDER),
    case("nn", "to_fixed_size", lambda: pyg.to_fixed_size(Pooled(), batch_size=2), PAIR_EDGES, INDEX),
]  # fmt: skip


def lookup(module: nn.Module, table: Tensor, *args: Any) -> Any:
    """The module with other embeddings in the place of its own: where portions start if nodes are numbers."""
    names = {"embedding.weight", "node_emb.weight"} & {name for name, _ in module.named_parameters()}
    return torch.func.functional_call(module, dict.fromkeys(names, table), args)


def complex_lookup(module: nn.Module, table: Tensor, *args: Any) -> Any:
    halves = {"node_emb.weight": table[:, :4], "node_emb_im.weight": table[:, 4:]}
    return torch.func.functional_call(module, halves, args)


TRIPLES = (torch.tensor([0, 3, 5]), torch.tensor([0, 1, 2]), torch.tensor([7, 3, 2]))
EMBEDDINGS = [
    case("models", "LightGCN", lambda: pyg.LightGCN(N, 4, 2), EDGES, PAIRS, call=lookup, **ORDER),
    case("kge", "TransE", lambda: pyg.TransE(N, 3, 4), *TRIPLES, call=lookup, **ORDER),
    case("kge", "DistMult", lambda: pyg.DistMult(N, 3, 4), *TRIPLES, call=lookup, **ORDER),
    case("kge", "ComplEx", lambda: pyg.ComplEx(N, 3, 4), *TRIPLES, call=complex_lookup, x="wide", **ORDER),
    case("kge", "RotatE", lambda: pyg.RotatE(N, 3, 4), *TRIPLES, call=complex_lookup, x="wide", **ORDER),
]  # fmt: skip

CASES = [*MODELS, *REST, *EMBEDDINGS]
