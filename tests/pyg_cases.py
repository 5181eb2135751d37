# ruff: noqa: E501  (tables of one-line cases)
"""Every layer that PyG exports, as calls with the node features first, and the few that are not covered."""

import importlib
from collections.abc import Callable
from typing import Any

import pyg_models
import torch
import torch_geometric.nn as pyg
from cases import (
    ATTR,
    CLUSTER,
    DEGREE,
    EDGES,
    FUSED,
    INDEX,
    KIND,
    META,
    NORMAL,
    ORDER,
    OTHERS,
    PAIR_EDGES,
    POS,
    SOFTMAX,
    TYPE,
    TYPED,
    UNIT,
    WEIGHT,
    WEIGHTS,
    ZEROS,
    Build,
    Case,
    N,
    as_batch,
    by_sign,
    by_type,
    case,
    hetero,
    mlp,
    on_dense,
)  # fmt: skip
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.pool.select import SelectTopK
from torch_geometric.utils import to_dense_adj


def exported(package: str) -> list[str]:
    """The public names of a sub-package of ``torch_geometric.nn``."""
    module = importlib.import_module("torch_geometric.nn" + (f".{package}" if package != "nn" else ""))
    return list(module.__all__)


def conv(name: str, build: Build, *args: Any, **more: Any) -> Case:
    return case("conv", name, build, *(args or (EDGES,)), **more)


def norm(name: str, build: Build, *args: Any, **more: Any) -> Case:
    return case("norm", name, build, *args, **more)


def aggr(name: str, build: Build, *args: Any, **more: Any) -> Case:
    return case("aggr", name, build, *(args or (INDEX,)), **more)


def pool(name: str, build: Build, *args: Any, **more: Any) -> Case:
    return case("pool", name, build, *args, **more)


def dense(name: str, build: Build, *args: Any, call: Any = on_dense, **more: Any) -> Case:
    return case("dense", name, build, *(args or (EDGES,)), call=call, **more)


class Custom(MessagePassing):
    """A layer as users write them: its own message, update and edge update."""

    def __init__(self) -> None:
        super().__init__(aggr="add")
        self.lin, self.att = nn.Linear(8, 5), nn.Linear(8, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        alpha = self.edge_updater(edge_index, x=x)
        return self.propagate(edge_index, x=x, alpha=alpha)

    def edge_update(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return self.att(torch.cat([x_i, x_j], -1)).sigmoid()

    def message(self, x_i: Tensor, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha * self.lin(torch.cat([x_i, x_j - x_i], -1)).relu()

    def update(self, inputs: Tensor, x: Tensor) -> Tensor:
        return torch.cat([inputs, x], -1)


class OwnAggregation(pyg.Aggregation):
    """An aggregation as users write them."""

    def forward(self, x: Tensor, index: Any = None, ptr: Any = None, dim_size: Any = None, dim: int = -2) -> Tensor:
        return self.reduce(x, index, ptr, dim_size, dim, reduce="sum").tanh()


_FOUR = torch.arange(N).repeat_interleave(4)
MESH = torch.stack(
    [(_FOUR + torch.tensor([1, 3, 5, 8]).repeat(N)) % N, _FOUR]
)  # four neighbors of every edge of a mesh
LAMBDA_MAX = torch.tensor([2.0, 3.0], dtype=torch.float64)
_WITHIN = {"attention_mechanism": "within-relation", "attention_mode": "multiplicative-self-attention"}
_ALL = ["mean", "min", "max", "std", "var", "sum"]
_SCALERS = ["identity", "amplification", "attenuation", "linear", "inverse_linear"]
CONV = [
    conv("MessagePassing", Custom),
    conv("SimpleConv", lambda: pyg.SimpleConv(combine_root="self_loop")),
    conv("SimpleConv", lambda: pyg.SimpleConv("mean", combine_root="cat"), EDGES, WEIGHT, variant="mean, weights"),
    conv("GCNConv", lambda: pyg.GCNConv(4, 5)),
    conv("GCNConv", lambda: pyg.GCNConv(4, 5, improved=True, cached=True), EDGES, WEIGHT, variant="weights, cached", **ORDER),
    conv("GCNConv", lambda: pyg.GCNConv(4, 5, normalize=False, aggr="max"), variant="max"),
    conv("ChebConv", lambda: pyg.ChebConv(4, 5, K=3)),
    conv("ChebConv", lambda: pyg.ChebConv(4, 5, K=2, normalization="rw"), EDGES, WEIGHT, INDEX, LAMBDA_MAX, variant="batch"),
    *(conv("SAGEConv", lambda a=a: pyg.SAGEConv(4, 5, aggr=a), variant=a) for a in ("mean", "add", "max", "min", "median", "std", "var")),
    conv("SAGEConv", lambda: pyg.SAGEConv(4, 5, normalize=True, project=True), variant="normalize, project"),
    conv("SAGEConv", lambda: pyg.SAGEConv(4, 5, aggr=["mean", "max", "std"]), variant="several"),
    conv("SAGEConv", lambda: pyg.SAGEConv(4, 5, aggr="lstm"), EDGES[:, EDGES[1].argsort()], variant="lstm", **ZEROS, **ORDER),
    conv("SAGEConv", lambda: pyg.SAGEConv((4, 4), 5), call=lambda m, x, e: m((x, x[:7]), e[:, e[1] < 7]), variant="bipartite", **ORDER),
    conv("GraphConv", lambda: pyg.GraphConv(4, 5), EDGES, WEIGHT),
    conv("GatedGraphConv", lambda: pyg.GatedGraphConv(5, 2)),
    conv("ResGatedGraphConv", lambda: pyg.ResGatedGraphConv(4, 5)),
    conv("ResGatedGraphConv", lambda: pyg.ResGatedGraphConv(4, 5, edge_dim=2), EDGES, ATTR, variant="edge features", **OTHERS),
    conv("GATConv", lambda: pyg.GATConv(4, 3, heads=2), **SOFTMAX),
    conv("GATConv", lambda: pyg.GATConv(4, 3, heads=2, edge_dim=2, residual=True, concat=False), EDGES, ATTR, variant="edge features", **SOFTMAX),
    conv("GATConv", lambda: pyg.GATConv(4, 3), call=lambda m, x, e: m(x, e, return_attention_weights=True), variant="weights out", **WEIGHTS, **ORDER),
    conv("GATv2Conv", lambda: pyg.GATv2Conv(4, 3, heads=2), **SOFTMAX),
    conv("GATv2Conv", lambda: pyg.GATv2Conv(4, 3, edge_dim=2, residual=True, share_weights=True), EDGES, ATTR, variant="edge features", **SOFTMAX),
    conv("TransformerConv", lambda: pyg.TransformerConv(4, 3, heads=2), **SOFTMAX),
    conv("TransformerConv", lambda: pyg.TransformerConv(4, 3, heads=2, beta=True, edge_dim=2, concat=False), EDGES, ATTR, variant="gate, edge features", **SOFTMAX),
    conv("AGNNConv", pyg.AGNNConv, **SOFTMAX),
    conv("TAGConv", lambda: pyg.TAGConv(4, 5)),
    conv("GINConv", lambda: pyg.GINConv(mlp(4, 6, 5), train_eps=True)),
    conv("GINEConv", lambda: pyg.GINEConv(mlp(4, 6, 5), edge_dim=2), EDGES, ATTR),
    conv("ARMAConv", lambda: pyg.ARMAConv(4, 5, num_stacks=2, num_layers=2)),
    conv("SGConv", lambda: pyg.SGConv(4, 5, K=2)),
    conv("SSGConv", lambda: pyg.SSGConv(4, 5, alpha=0.1, K=2)),
    conv("APPNP", lambda: pyg.APPNP(K=3, alpha=0.1)),
    conv("MFConv", lambda: pyg.MFConv(4, 5, max_degree=3)),
    conv("RGCNConv", lambda: pyg.RGCNConv(4, 5, 3), EDGES, TYPE),
    conv("RGCNConv", lambda: pyg.RGCNConv(4, 5, 3, num_bases=2), EDGES, TYPE, variant="bases"),
    conv("RGCNConv", lambda: pyg.RGCNConv(4, 6, 3, num_blocks=2, aggr="max"), EDGES, TYPE, variant="blocks, max"),
    conv("FastRGCNConv", lambda: pyg.FastRGCNConv(4, 5, 3), EDGES, TYPE),
    conv("FastRGCNConv", lambda: pyg.FastRGCNConv(4, 6, 3, num_blocks=2), EDGES, TYPE, variant="blocks"),
    conv("RGATConv", lambda: pyg.RGATConv(4, 5, 3), EDGES, TYPE, **SOFTMAX),
    *(conv("RGATConv", lambda mod=mod: pyg.RGATConv(4, 4, 3, mod=mod, heads=2, edge_dim=2, **_WITHIN), EDGES, TYPE, ATTR, variant=mod, **SOFTMAX)
      for mod in ("additive", "scaled", "f-additive", "f-scaled")),
    conv("RGATConv", lambda: pyg.RGATConv(4, 4, 3, num_bases=2, heads=2, dim=2, **_WITHIN), EDGES, TYPE, variant="bases", **SOFTMAX),
    conv("RGATConv", lambda: pyg.RGATConv(4, 4, 3, num_blocks=2, concat=False), EDGES, TYPE, variant="blocks", **SOFTMAX),
    conv("SignedConv", lambda: pyg.SignedConv(4, 5, first_aggr=True), call=by_sign),
    conv("SignedConv", lambda: pyg.SignedConv(4, 5, first_aggr=False), call=by_sign, variant="second", x="wide"),
    conv("DNAConv", lambda: pyg.DNAConv(4, heads=2, groups=2), call=lambda m, x, e: m(torch.stack([x, x.relu(), x.tanh()], 1), e), **SOFTMAX),
    conv("PointNetConv", lambda: pyg.PointNetConv(mlp(7, 5), mlp(5, 3)), POS, EDGES, **OTHERS),
    conv("PointNetConv", lambda: pyg.PointNetConv(mlp(6, 5), mlp(5, 3)), call=lambda m, pos, e: m(pos, pos, e), x="positions", variant="positions"),
    conv("GMMConv", lambda: pyg.GMMConv(4, 5, dim=2, kernel_size=3), EDGES, UNIT),
    conv("GMMConv", lambda: pyg.GMMConv(4, 5, dim=2, kernel_size=3, separate_gaussians=True), EDGES, UNIT, variant="separate"),
    conv("NNConv", lambda: pyg.NNConv(4, 5, mlp(2, 6, 20)), EDGES, ATTR),
    conv("CGConv", lambda: pyg.CGConv(4, dim=2, batch_norm=True), EDGES, ATTR, **OTHERS),
    conv("EdgeConv", lambda: pyg.EdgeConv(mlp(8, 6, 5))),
    conv("PPFConv", lambda: pyg.PPFConv(mlp(8, 5), mlp(5, 3)), POS, NORMAL, EDGES, **OTHERS),
    conv("PPFConv", lambda: pyg.PPFConv(mlp(4, 5)), NORMAL, EDGES, call=lambda m, pos, *more: m(None, pos, *more), x="positions",
         variant="positions", **OTHERS),
    conv("FeaStConv", lambda: pyg.FeaStConv(4, 5, heads=2), **SOFTMAX),
    conv("PointTransformerConv", lambda: pyg.PointTransformerConv(4, 5), POS, EDGES, **SOFTMAX),
    conv("HypergraphConv", lambda: pyg.HypergraphConv(4, 5)),
    conv("HypergraphConv", lambda: pyg.HypergraphConv(4, 5, use_attention=True, heads=2),
         call=lambda m, x, e: m(x, e, None, x.flip(1)), variant="attention", **SOFTMAX),
    conv("LEConv", lambda: pyg.LEConv(4, 5), EDGES, WEIGHT),
    conv("PNAConv", lambda: pyg.PNAConv(4, 6, _ALL, _SCALERS, DEGREE, edge_dim=2, towers=2, pre_layers=2, post_layers=2), EDGES, ATTR, **OTHERS),
    conv("ClusterGCNConv", lambda: pyg.ClusterGCNConv(4, 5, diag_lambda=0.5)),
    conv("GENConv", lambda: pyg.GENConv(4, 5, edge_dim=2, msg_norm=True, learn_t=True), EDGES, ATTR, **SOFTMAX),
    conv("GENConv", lambda: pyg.GENConv(4, 5, aggr="softmax_sg", norm="instance"), variant="softmax_sg", **SOFTMAX),
    conv("GENConv", lambda: pyg.GENConv(4, 5, aggr="powermean", norm="layer"), variant="powermean", **ZEROS),
    conv("GCN2Conv", lambda: pyg.GCN2Conv(4, alpha=0.1, theta=0.5, layer=2, shared_weights=False), call=lambda m, x, e: m(x.relu(), x, e)),
    conv("WLConvContinuous", pyg.WLConvContinuous, EDGES, WEIGHT),
    conv("FiLMConv", lambda: pyg.FiLMConv(4, 5, num_relations=3), EDGES, TYPE),
    conv("SuperGATConv", lambda: pyg.SuperGATConv(4, 3, heads=2), **SOFTMAX),
    conv("SuperGATConv", lambda: pyg.SuperGATConv(4, 3, attention_type="SD"), variant="SD", **SOFTMAX),
    conv("FAConv", lambda: pyg.FAConv(4), call=lambda m, x, e: m(x.relu(), x, e)),
    conv("EGConv", lambda: pyg.EGConv(4, 6, [*_ALL, "symnorm"], num_heads=2)),
    conv("PDNConv", lambda: pyg.PDNConv(4, 5, edge_dim=2, hidden_channels=6), EDGES, ATTR),
    conv("GeneralConv", lambda: pyg.GeneralConv(4, 6, in_edge_channels=2, skip_linear=True, l2_normalize=True), EDGES, ATTR),
    *(conv("GeneralConv", lambda k=k: pyg.GeneralConv(4, 6, attention=True, attention_type=k, heads=2, directed_msg=False), variant=k, **SOFTMAX)
      for k in ("additive", "dot_product")),
    conv("HGTConv", lambda: pyg.HGTConv(4, 6, META, heads=2), call=hetero, **SOFTMAX, **ORDER),
    conv("HEATConv", lambda: pyg.HEATConv(4, 5, 3, 3, edge_type_emb_dim=2, edge_dim=2, edge_attr_emb_dim=3, heads=2), EDGES, KIND, TYPE, ATTR, **SOFTMAX),
    conv("HeteroConv", lambda: pyg.HeteroConv({t: pyg.SAGEConv((4, 4), 5) for t in TYPED}), call=hetero, **ZEROS, **ORDER),
    *(conv("HeteroConv", lambda a=a: pyg.HeteroConv({t: pyg.GATConv((4, 4), 5, add_self_loops=False) for t in TYPED}, aggr=a), call=hetero,
           variant=a, **SOFTMAX, **ORDER) for a in ("mean", "max", "min", "cat")),
    conv("HANConv", lambda: pyg.HANConv(4, 6, META, heads=2), call=hetero, **SOFTMAX, **ORDER),
    conv("LGConv", pyg.LGConv),
    conv("PointGNNConv", lambda: pyg.PointGNNConv(mlp(4, 5, 3), mlp(7, 6), mlp(6, 4)), POS, EDGES),
    conv("GPSConv", lambda: pyg.GPSConv(4, pyg.GCNConv(4, 4), heads=2), PAIR_EDGES, INDEX, **SOFTMAX, **FUSED, **ORDER),
    conv("GPSConv", lambda: pyg.GPSConv(4, pyg.GCNConv(4, 4), heads=2, norm="layer_norm", attn_type="performer"), PAIR_EDGES, INDEX,
         variant="performer", **ZEROS, **ORDER),
    conv("AntiSymmetricConv", lambda: pyg.AntiSymmetricConv(4, num_iters=2)),
    conv("DirGNNConv", lambda: pyg.DirGNNConv(pyg.SAGEConv(4, 5))),
    conv("MixHopConv", lambda: pyg.MixHopConv(4, 5)),
    conv("MeshCNNConv", lambda: pyg.MeshCNNConv(4, 5), MESH),
]  # fmt: skip

NORM = [
    norm("BatchNorm", lambda: pyg.BatchNorm(4)),
    norm("HeteroBatchNorm", lambda: pyg.HeteroBatchNorm(4, 3), KIND),
    norm("InstanceNorm", lambda: pyg.InstanceNorm(4, affine=True)),
    norm("InstanceNorm", lambda: pyg.InstanceNorm(4), INDEX, variant="batch"),
    norm("InstanceNorm", lambda: pyg.InstanceNorm(4, affine=True, track_running_stats=True), INDEX, variant="running"),
    norm("LayerNorm", lambda: pyg.LayerNorm(4)),
    norm("LayerNorm", lambda: pyg.LayerNorm(4), INDEX, variant="batch"),
    norm("LayerNorm", lambda: pyg.LayerNorm(4, mode="node"), variant="node"),
    norm("HeteroLayerNorm", lambda: pyg.HeteroLayerNorm(4, 3), KIND),
    norm("GraphNorm", lambda: pyg.GraphNorm(4), INDEX),
    norm("GraphSizeNorm", pyg.GraphSizeNorm, INDEX),
    norm("PairNorm", pyg.PairNorm),
    norm("PairNorm", lambda: pyg.PairNorm(scale_individually=True), INDEX, variant="batch"),
    norm("MeanSubtractionNorm", pyg.MeanSubtractionNorm, INDEX),
    norm("MessageNorm", lambda: pyg.MessageNorm(learn_scale=True), call=lambda m, x: m(x, x.flip(1).relu())),
    norm("DiffGroupNorm", lambda: pyg.DiffGroupNorm(4, 3), **SOFTMAX),
]  # fmt: skip

_MODES = {"proj": {"in_channels": 4, "out_channels": 4}, "attn": {"in_channels": 4, "out_channels": 4, "num_heads": 2}}
_PLAIN_AGGREGATIONS = ("Sum", "Mean", "Max", "Min", "Mul", "Var", "Std", "Median", "VariancePreserving")
AGGR = [
    aggr("Aggregation", OwnAggregation),
    *(aggr(f"{a}Aggregation", getattr(pyg, f"{a}Aggregation")) for a in _PLAIN_AGGREGATIONS),
    *(aggr("MultiAggregation", lambda k=k: pyg.MultiAggregation(["mean", "max", "std"], mode=k, mode_kwargs=_MODES.get(k)), variant=k, everything=k != "attn")
      for k in ("cat", "proj", "sum", "mean", "max", "min", "logsumexp", "std", "var", "attn")),
    aggr("SoftmaxAggregation", lambda: pyg.SoftmaxAggregation(learn=True), **SOFTMAX),
    aggr("PowerMeanAggregation", lambda: pyg.PowerMeanAggregation(p=2.0), x="positive"),
    aggr("PowerMeanAggregation", lambda: pyg.PowerMeanAggregation(learn=True), x="positive", variant="learnt"),
    *(aggr("QuantileAggregation", lambda i=i: pyg.QuantileAggregation([0.25, 0.6], interpolation=i), variant=i)
      for i in ("linear", "lower", "higher", "nearest", "midpoint")),
    aggr("LSTMAggregation", lambda: pyg.LSTMAggregation(4, 5), **ZEROS, **ORDER),
    aggr("GRUAggregation", lambda: pyg.GRUAggregation(4, 5), **ZEROS, **ORDER),
    aggr("Set2Set", lambda: pyg.Set2Set(4, 2), **SOFTMAX),
    aggr("DegreeScalerAggregation", lambda: pyg.DegreeScalerAggregation(["mean", "max"], ["identity", "amplification"], DEGREE)),
    aggr("SortAggregation", lambda: pyg.SortAggregation(k=4), **ORDER),
    aggr("GraphMultisetTransformer", lambda: pyg.GraphMultisetTransformer(4, k=3, heads=2, layer_norm=True), **SOFTMAX, **FUSED, **ORDER),
    aggr("AttentionalAggregation", lambda: pyg.AttentionalAggregation(mlp(4, 1), mlp(4, 5)), **SOFTMAX),
    aggr("MLPAggregation", lambda: pyg.MLPAggregation(4, 5, max_num_elements=7, hidden_channels=6, num_layers=2, norm=None), **ORDER),
    aggr("DeepSetsAggregation", lambda: pyg.DeepSetsAggregation(mlp(4, 5), mlp(5, 3))),
    aggr("SetTransformerAggregation", lambda: pyg.SetTransformerAggregation(4, num_seed_points=2, heads=2, layer_norm=True), **SOFTMAX, **FUSED, **ORDER),
    aggr("LCMAggregation", lambda: pyg.LCMAggregation(4, 5), **ZEROS, **ORDER),
    aggr("PatchTransformerAggregation", lambda: pyg.PatchTransformerAggregation(4, 5, patch_size=2, hidden_channels=6, heads=2), **SOFTMAX, **FUSED, **ORDER),
]  # fmt: skip

ATTENTION = [
    case("attention", "PerformerAttention", lambda: pyg.PerformerAttention(4, 2, head_channels=4), call=as_batch, **ZEROS, **ORDER),
    case("attention", "QFormer", lambda: pyg.attention.QFormer(4, 6, 5, 2, 1), call=as_batch, **SOFTMAX, **FUSED, **ORDER),
    case("attention", "SGFormerAttention", lambda: pyg.attention.SGFormerAttention(4, 2, head_channels=4), call=as_batch, **ORDER),
    case("attention", "PolynormerAttention", lambda: pyg.attention.PolynormerAttention(4, 2, head_channels=4), call=as_batch, **ORDER),
]  # fmt: skip


def with_data(pooling: Callable[[Tensor, Data], Data]) -> Build:
    return lambda: lambda x, edge_index, cluster: pooling(cluster, Data(x=x, edge_index=edge_index)).x


def diff_pool(m: Any, x: Tensor, edge_index: Tensor) -> Any:
    adj = to_dense_adj(edge_index, max_num_nodes=len(x))
    return pyg.dense_diff_pool(x.unsqueeze(0), adj, m(x).unsqueeze(0))


def mincut_pool(m: Any, x: Tensor, edge_index: Tensor) -> Any:
    adj = to_dense_adj(edge_index, max_num_nodes=len(x))
    return pyg.dense_mincut_pool(x.unsqueeze(0), adj, m(x).unsqueeze(0))


POOL = [
    *(pool(f"global_{a}_pool", lambda a=a: getattr(pyg, f"global_{a}_pool"), INDEX) for a in ("add", "mean", "max")),
    *(pool(f"global_{a}_pool", lambda a=a: getattr(pyg, f"global_{a}_pool"), None, variant="one graph")
      for a in ("add", "mean", "max")),
    pool("TopKPooling", lambda: pyg.TopKPooling(4, ratio=0.5), PAIR_EDGES, None, INDEX),
    pool("TopKPooling", lambda: pyg.TopKPooling(4, min_score=0.1, nonlinearity="softmax"), PAIR_EDGES, None, INDEX, variant="least score", **WEIGHTS, **ORDER),
    pool("SAGPooling", lambda: pyg.SAGPooling(4, ratio=0.5), PAIR_EDGES, None, INDEX),
    pool("SAGPooling", lambda: pyg.SAGPooling(4, ratio=0.5, GNN=pyg.GATConv), PAIR_EDGES, None, INDEX, variant="GAT", **SOFTMAX),
    pool("EdgePooling", lambda: pyg.EdgePooling(4), PAIR_EDGES, INDEX, **WEIGHTS),
    pool("EdgePooling", lambda: pyg.EdgePooling(4, pyg.EdgePooling.compute_edge_score_tanh), PAIR_EDGES, INDEX, variant="tanh", **OTHERS),
    pool("ClusterPooling", lambda: pyg.ClusterPooling(4), PAIR_EDGES, INDEX, **ORDER),
    pool("MemPooling", lambda: pyg.MemPooling(4, 5, heads=2, num_clusters=3), INDEX, **WEIGHTS, **ORDER),
    case("pool.select", "SelectTopK", lambda: SelectTopK(4, ratio=0.5), INDEX, call=lambda m, x, batch: m(x, batch).weight),
    pool("max_pool", with_data(pyg.max_pool), EDGES, CLUSTER),
    pool("avg_pool", with_data(pyg.avg_pool), EDGES, CLUSTER),
    pool("max_pool_x", lambda: lambda x, cluster, batch: pyg.max_pool_x(cluster, x, batch), CLUSTER, INDEX),
    pool("avg_pool_x", lambda: lambda x, cluster, batch: pyg.avg_pool_x(cluster, x, batch), CLUSTER, INDEX),
    pool("max_pool_neighbor_x", lambda: lambda x, e: pyg.max_pool_neighbor_x(Data(x=x, edge_index=e)).x, EDGES),
    pool("avg_pool_neighbor_x", lambda: lambda x, e: pyg.avg_pool_neighbor_x(Data(x=x, edge_index=e)).x, EDGES),
]  # fmt: skip

DENSE = [
    dense("Linear", lambda: pyg.Linear(4, 5), call=lambda m, x, e: m(x)),
    dense("HeteroLinear", lambda: pyg.HeteroLinear(4, 5, 3), KIND, call=lambda m, x, kind: m(x, kind)),
    dense("HeteroDictLinear", lambda: pyg.HeteroDictLinear({"a": 4, "b": 4}, 5), call=lambda m, x, e: m(by_type(x)), **ORDER),
    dense("DenseGCNConv", lambda: pyg.DenseGCNConv(4, 5)),
    dense("DenseGINConv", lambda: pyg.DenseGINConv(mlp(4, 6, 5), train_eps=True)),
    *(dense("DenseGraphConv", lambda a=a: pyg.DenseGraphConv(4, 5, aggr=a), variant=a) for a in ("add", "mean", "max")),
    dense("DenseSAGEConv", lambda: pyg.DenseSAGEConv(4, 5)),
    dense("DenseSAGEConv", lambda: pyg.DenseSAGEConv(4, 5, normalize=True), variant="normalize"),
    dense("DenseGATConv", lambda: pyg.DenseGATConv(4, 3, heads=2), **SOFTMAX),
    dense("dense_diff_pool", lambda: nn.Linear(4, 3), call=diff_pool, **WEIGHTS),
    dense("dense_mincut_pool", lambda: nn.Linear(4, 3), call=mincut_pool, **WEIGHTS),
    dense("DMoNPooling", lambda: pyg.DMoNPooling([4, 4], 3), **WEIGHTS, **ORDER),
]  # fmt: skip

_NEIGHBOURS = "It finds its neighborhoods from the values of its input, by pyg-lib, which is not installed."
_CUGRAPH = "It runs on GPUs only, by pylibcugraphops, which is not installed."
_POSITIONS = (
    "It takes numbers of atoms, and finds their neighbors from the positions by pyg-lib, which is not installed."
)
_SEARCH = "It returns which points are near, no values of them, so there is nothing to contribute to."
_INDEX = "It is a search index over points, no layer, and returns numbers of points."
_SPARSE = "It computes with the matrices of torch-sparse, which is not installed."
_WALKS = "It learns a table of embeddings from random walks and takes no features; its output is a row of its table."
NOT_COVERED: dict[str, dict[str, str]] = {
    "conv": {
        **dict.fromkeys(("CuGraphSAGEConv", "CuGraphGATConv", "CuGraphRGCNConv"), _CUGRAPH),
        **dict.fromkeys(("GravNetConv", "DynamicEdgeConv", "XConv"), _NEIGHBOURS),
        "FusedGATConv": "It runs on GPUs only, by dgNN, which is not installed; GATConv computes the same.",
        "SplineConv": "It needs the B-splines of pyg-lib, which is not installed.",
        "PANConv": _SPARSE,
        "WLConv": "It gives nodes the numbers of hashed colours, which cannot carry portions.",
    },
    "aggr": {
        "EquilibriumAggregation": "It takes gradients inside of its forward pass; what portions contribute to one has no rule.",
    },
    "pool": {
        **dict.fromkeys(("KNNIndex", "L2KNNIndex", "MIPSKNNIndex", "ApproxL2KNNIndex", "ApproxMIPSKNNIndex"), _INDEX),
        **dict.fromkeys(("fps", "knn", "knn_graph", "approx_knn", "approx_knn_graph"), _SEARCH),
        **dict.fromkeys(("radius", "radius_graph", "nearest"), _SEARCH),
        "PANPooling": _SPARSE,
        "ASAPooling": "It builds a sparse matrix whose entries are portions, which a sparse tensor cannot hold.",
        "graclus": "It returns numbers of clusters from the edges alone; max_pool and avg_pool take them.",
        "voxel_grid": "It returns numbers of clusters, which cannot carry portions; max_pool and avg_pool take them.",
    },
    "pool.select": {
        "Select": "It is the abstract base of the selections.",
        "SelectOutput": "It is a record of tensors and computes nothing.",
    },
    "pool.connect": {
        "Connect": "It is the abstract base of the connections.",
        "ConnectOutput": "It is a record of tensors and computes nothing.",
        "FilterEdges": "It keeps edges by the numbers of the chosen nodes and takes no features.",
    },
    "models": {
        **dict.fromkeys(("DimeNet", "DimeNetPlusPlus", "GNNFF", "ViSNet"), _POSITIONS),
        **dict.fromkeys(("Node2Vec", "MetaPath2Vec"), _WALKS),
        "RENet": "It takes the numbers of entities and relations of past events, no features.",
        "TGNMemory": "It keeps a memory from call to call, by numbers of nodes, and takes no features.",
        "to_captum_input": "It arranges arguments for Captum and computes nothing.",
        "captum_output_to_dicts": "It arranges results of Captum and computes nothing.",
    },
    "unpool": {"knn_interpolate": _NEIGHBOURS},
    "kge": {"KGEModel": "It is the abstract base of the four others."},
    "nn": {
        "DataParallel": "It copies a model to several GPUs; explain the model itself.",
        "summary": "It prints a table of a model's layers.",
    },
}  # fmt: skip

PACKAGES = (
    *("nn", "conv", "norm", "aggr", "pool", "pool.select", "pool.connect", "unpool", "dense", "attention", "models"),
    *("encoding", "kge", "functional"),
)
CASES = [*CONV, *NORM, *AGGR, *POOL, *DENSE, *ATTENTION, *pyg_models.CASES]
