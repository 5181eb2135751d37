# ruff: noqa: E501  (tables of one-line cases)
"""The PyTorch layers that people put between graph layers, as calls with the node features first."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from cases import EDGES, FUSED, ORDER, OTHERS, SOFTMAX, WEIGHT, WEIGHTS, Case, N, as_batch, case, mlp, noise
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric import nn as pyg

OTHER = noise(N, 4, seed=21)
MATRIX = noise(4, 5, seed=22)
CAUSAL = torch.ones(N, N, dtype=torch.bool).triu(1)
CUBE = noise(3, 4, 5, seed=23)


def channels(m: Any, x: Tensor) -> Any:
    """The nodes as one sequence, channels first: ``[1, F, N]``."""
    return m(x.t().unsqueeze(0))


def sparse(layout: torch.layout, weight: Tensor | None = None) -> Tensor:
    """The transposed adjacency matrix, as PyG takes it."""
    values = torch.ones(EDGES.shape[1], dtype=torch.float64) if weight is None else weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its compressed layouts a beta
        adj = torch.sparse_coo_tensor(EDGES.flip(0), values, (N, N)).coalesce()
        return adj if layout == torch.sparse_coo else adj.to_sparse(layout=layout)


def edge_index_object(sort: str, fill: bool = True) -> EdgeIndex:
    edges = EdgeIndex(EDGES, sparse_size=(N, N), is_undirected=True).sort_by(sort).values
    return edges.fill_cache_() if fill else edges


def layer(name: str, build: Any, *args: Any, **more: Any) -> Case:
    return case("torch", name, build, *args, **more)


def activation(name: str, *args: Any, **more: Any) -> Case:
    return case("activation", name, lambda: getattr(nn, name)(*args), **more)


_SHAPES = (
    *("ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "ELU", "CELU"),
    *("SELU", "GELU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softshrink", "PReLU", "Softsign", "Tanhshrink"),
)  # fmt: skip
ACTIVATION = [
    *(activation(name) for name in _SHAPES),
    activation("Threshold", 0.3, 0.7),
    activation("GLU"),
    *(activation(name, -1, **WEIGHTS) for name in ("Softmin", "Softmax")),
    activation("LogSoftmax", -1),
    case("activation", "Softmax2d", nn.Softmax2d, call=lambda m, x: m(x.view(N, 2, 2, 1)), **WEIGHTS),
    case("activation", "MultiheadAttention", lambda: nn.MultiheadAttention(4, 2, batch_first=True),
         call=lambda m, x: m(x[None], x[None], x[None])[0], **SOFTMAX, **ORDER),
    case("activation", "MultiheadAttention", lambda: nn.MultiheadAttention(4, 2),
         call=lambda m, x: m(x, x, x, need_weights=False)[0], variant="without weights", **SOFTMAX),
    case("activation", "MultiheadAttention", lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=2),
         call=lambda m, x: m(x, x[:, :3], x[:, :2], attn_mask=CAUSAL)[0], variant="mask, kdim", **SOFTMAX, **ORDER),
]  # fmt: skip

LAYERS = [
    layer("Linear", lambda: nn.Linear(4, 5)),
    layer("Linear", lambda: mlp(4, 6, 6, 3), variant="several"),
    layer("Identity", nn.Identity),
    layer("Dropout", lambda: nn.Dropout(0.5)),
    layer("Bilinear", lambda: nn.Bilinear(4, 4, 5), call=lambda m, x: m(x, x.flip(1))),
    layer("LayerNorm", lambda: nn.LayerNorm(4)),
    layer("GroupNorm", lambda: nn.GroupNorm(2, 4)),
    layer("InstanceNorm1d", lambda: nn.InstanceNorm1d(4, affine=True), call=channels, **ORDER),
    layer("InstanceNorm1d", lambda: nn.InstanceNorm1d(4, track_running_stats=True), call=channels, variant="running", **ORDER),
    layer("BatchNorm1d", lambda: nn.BatchNorm1d(4)),
    layer("BatchNorm1d", lambda: nn.BatchNorm1d(4, track_running_stats=False), variant="of the batch"),
    layer("RMSNorm", lambda: nn.RMSNorm(4)),
    layer("LocalResponseNorm", lambda: nn.LocalResponseNorm(2), call=channels, **ORDER),
    layer("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), call=as_batch, **SOFTMAX, **FUSED, **ORDER),
    layer("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(4, 2, 6, activation="gelu", norm_first=True), variant="norm first, gelu", **SOFTMAX),
    layer("TransformerEncoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2), call=as_batch, **SOFTMAX, **FUSED, **ORDER),
    layer("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(4, 2, 6), call=lambda m, x: m(x, x.flip(0)), **SOFTMAX),
    layer("Transformer", lambda: nn.Transformer(4, 2, 1, 1, 6), call=lambda m, x: m(x, x), **SOFTMAX),
    *(layer(name, lambda name=name: getattr(nn, name)(4, 5, batch_first=True), call=lambda m, x: m(x.view(4, 3, 4)), **ORDER)
      for name in ("RNN", "LSTM", "GRU")),
    *(layer(name, lambda name=name: getattr(nn, name)(4, 6, num_layers=2, bidirectional=True), call=lambda m, x: m(x.view(3, 4, 4))[0],
            variant="two ways", **ORDER) for name in ("RNN", "LSTM", "GRU")),
    layer("RNN", lambda: nn.RNN(4, 5, nonlinearity="relu"), variant="relu", **ORDER),
    *(layer(name, lambda name=name: getattr(nn, name)(4, 5)) for name in ("RNNCell", "LSTMCell", "GRUCell")),
    layer("GRUCell", lambda: nn.GRUCell(4, 4), call=lambda m, x: m(x, x.tanh()), variant="with a state"),
    layer("LSTMCell", lambda: nn.LSTMCell(4, 4), call=lambda m, x: m(x, (x.tanh(), x.relu())), variant="with a state"),
    layer("Conv1d", lambda: nn.Conv1d(4, 5, 3, padding=1), call=channels, **ORDER),
    layer("Conv1d", lambda: nn.Conv1d(4, 6, 3, stride=2, groups=2, dilation=2), call=channels, variant="groups", **ORDER),
    layer("Conv1d", lambda: nn.Conv1d(1, 5, 4, stride=4), call=lambda m, x: m(x.view(1, 1, -1)), variant="over features", **ORDER),
    layer("Conv2d", lambda: nn.Conv2d(1, 2, 2), call=lambda m, x: m(x[None, None]), **ORDER),
    layer("ConvTranspose1d", lambda: nn.ConvTranspose1d(4, 5, 3, stride=2), call=channels, **ORDER),
    layer("MaxPool1d", lambda: nn.MaxPool1d(2, 2), call=channels, **ORDER),
    layer("MaxPool1d", lambda: nn.MaxPool1d(3, 2, padding=1), variant="unbatched"),
    layer("MaxPool2d", lambda: nn.MaxPool2d(2), call=lambda m, x: m(x[None, None]), **ORDER),
    layer("AvgPool1d", lambda: nn.AvgPool1d(2), call=channels, **ORDER),
    layer("AvgPool2d", lambda: nn.AvgPool2d(2), call=lambda m, x: m(x[None, None]), **ORDER),
    layer("AdaptiveAvgPool1d", lambda: nn.AdaptiveAvgPool1d(3), call=channels, **ORDER),
    layer("AdaptiveAvgPool1d", lambda: nn.AdaptiveAvgPool1d(5), call=channels, variant="uneven", **ORDER),
    layer("AdaptiveMaxPool1d", lambda: nn.AdaptiveMaxPool1d(3), call=channels, **ORDER),
    layer("AdaptiveMaxPool1d", lambda: nn.AdaptiveMaxPool1d(5), call=channels, variant="uneven", **ORDER),
    layer("LPPool1d", lambda: nn.LPPool1d(2, 2), call=channels, **ORDER),
    layer("Flatten", lambda: nn.Sequential(nn.Flatten(0), nn.Linear(4 * N, 3)), **ORDER),
    layer("Unflatten", lambda: nn.Unflatten(1, (2, 2))),
    layer("ReplicationPad1d", lambda: nn.ReplicationPad1d(2), call=channels, **ORDER),
    layer("ReflectionPad1d", lambda: nn.ReflectionPad1d(2), call=channels, **ORDER),
    layer("ConstantPad1d", lambda: nn.ConstantPad1d(2, 0.0), call=channels, **ORDER),
    layer("Upsample", lambda: nn.Upsample(scale_factor=2), call=channels, **ORDER),
    layer("CosineSimilarity", nn.CosineSimilarity, call=lambda m, x: m(x, x.flip(1))),
    layer("CosineSimilarity", nn.CosineSimilarity, OTHER, variant="to a constant"),
    layer("PairwiseDistance", nn.PairwiseDistance, call=lambda m, x: m(x, x.flip(1))),
    layer("PairwiseDistance", lambda: nn.PairwiseDistance(p=1), OTHER, variant="to a constant"),
]  # fmt: skip


def expression(name: str, function: Any, *args: Any, **more: Any) -> Case:
    return case("expression", name, lambda: function, *args, **more)


EXPRESSIONS = [
    expression("einsum", lambda x: torch.einsum("nf,fo->no", x, MATRIX), variant="linear"),
    expression("einsum", lambda x: torch.einsum("nhf,hfo->nho", x.view(N, 2, 2), CUBE[:2, :2]), variant="heads"),
    expression("einsum", lambda x: torch.einsum("nf,kfo->nko", x, CUBE), variant="bases"),
    expression("einsum", lambda x: torch.einsum("nf,nf->n", x, x.flip(1)), variant="dot"),
    expression("einsum", lambda x: torch.einsum("nf,mf->nm", x, x.tanh()), variant="gram", **ORDER),
    expression("einsum", lambda x: torch.einsum("ni,nj->nij", x, x), variant="outer"),
    expression("matmul", lambda x: x.view(3, 4, 4) @ x.view(3, 4, 4).mT, **ORDER),
    expression("residual", lambda x: x + F.gelu(x) * 0.5),
    expression("concatenation", lambda x: torch.cat([x, x.relu(), x.new_ones(N, 1)], -1), **OTHERS),
    expression("attention", lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]), **SOFTMAX, **ORDER),
    expression("normalize", lambda x: F.normalize(x, dim=-1)),
    expression("normalize", lambda x: F.normalize(x, p=1, dim=0), variant="L1"),
    expression("standardise", lambda x: (x - x.mean(0)) / x.std(0)),
    expression("std_mean", lambda x: torch.cat(torch.std_mean(x, 0))),
    expression("var_mean", lambda x: torch.cat(torch.var_mean(x, 1)), **ORDER),
    expression("min-max scaling", lambda x: (x - x.amin(0)) / (x.amax(0) - x.amin(0))),
    expression("sort", lambda x: x.sort(0).values, **ORDER),
    expression("topk", lambda x: x.topk(3, 0).values),
    expression("median", lambda x: x.median(0).values),
    expression("quantile", lambda x: x.quantile(0.3, 0)),
    expression("kthvalue", lambda x: x.kthvalue(2, 0).values),
    expression("mode", lambda x: x.mode(0).values),
    expression("max", lambda x: torch.cat([x.max(0).values, x.min(0).values, x.max()[None], x.amax(1), torch.maximum(x[0], x[1])]), **ORDER),
    expression("cumsum", lambda x: x.cumsum(0), **ORDER),
    expression("cumprod", lambda x: x.cumprod(0), **ORDER),
    expression("cummax", lambda x: x.cummax(0).values, **ORDER),
    expression("prod", lambda x: x.prod(0)),
    expression("logsumexp", lambda x: x.logsumexp(0)),
    expression("norm", lambda x: torch.stack([x.norm(), x.norm(p=1), torch.linalg.vector_norm(x, float("inf"))])),
    expression("cdist", lambda x: torch.cdist(x, x), **ORDER),
    expression("cdist", lambda x: torch.cdist(x, OTHER), variant="to constants"),
    expression("cross", lambda x: torch.linalg.cross(x[:, :3], x[:, 1:])),
    expression("atan2", lambda x: torch.atan2(x[:, 0], x[:, 1])),
    expression("hypot", lambda x: torch.hypot(x[:, 0], x[:, 1])),
    expression("lerp", lambda x: torch.lerp(x, x.tanh(), 0.3)),
    expression("lerp", lambda x: torch.lerp(x, x.tanh(), x.sigmoid()), variant="gate"),
    expression("embedding", lambda x: F.embedding(torch.tensor([0, 3, 3, 5]), x), **ORDER),
    expression("nan_to_num", torch.nan_to_num),
    expression("masked_select", lambda x: x.masked_select(x > 0), **ORDER),
    expression("take_along_dim", lambda x: x.take_along_dim(x.argsort(0), 0), **ORDER),
    expression("masked_scatter", lambda x: torch.zeros_like(x).masked_scatter(x > 0, x), **ORDER),
    expression("index_fill", lambda x: x.index_fill(0, torch.tensor([1, 3]), 0.0), **ORDER),
    expression("index_copy", lambda x: x.index_copy(0, torch.tensor([1, 3]), x[:2]), **ORDER),
    expression("index_reduce", lambda x: x.new_zeros(2, 4).index_reduce(0, torch.arange(N) % 2, x, "mean"), **ORDER),
    expression("segment_reduce", lambda x: torch.segment_reduce(x, "sum", lengths=torch.tensor([5, 7])), **ORDER),
    expression("as_strided", lambda x: x.as_strided((6, 4), (8, 1)), **ORDER),
    expression("unfold", lambda x: x.unfold(0, 3, 2), **ORDER),
    expression("tensor_split", lambda x: x.tensor_split(3, 1)[0]),
    expression("chunk", lambda x: torch.cat(x.chunk(3, 0)[::-1], 1), **ORDER),
    expression("movedim", lambda x: x.view(N, 2, 2).movedim(1, 2).swapaxes(1, 2).flatten(1)),
    expression("block_diag", lambda x: torch.block_diag(x[:3], x[3:5]), **ORDER),
    expression("kron", lambda x: torch.kron(x[:2], MATRIX), **ORDER),
    expression("trace", lambda x: x[:4].trace(), **ORDER),
    expression("diag_embed", lambda x: x.diag_embed()),
    expression("tensordot", lambda x: torch.tensordot(x, MATRIX, 1)),
    expression("outer", lambda x: torch.outer(x[:, 0], x[:, 1]), **ORDER),
    expression("repeat_interleave", lambda x: x.repeat_interleave(2, 0), **ORDER),
    expression("tile", lambda x: x.tile(2, 1), **ORDER),
    expression("rot90", lambda x: x.rot90(), **ORDER),
    expression("roll", lambda x: x.roll(1, 0), **ORDER),
    expression("gated unit", lambda x: x[:, :2].sigmoid() * x[:, 2:].tanh()),
    expression("attention by hand", lambda x: (x @ x.t() / 2).softmax(-1) @ x, **SOFTMAX),
    expression("log_softmax", lambda x: (x @ MATRIX).log_softmax(-1)),
    expression("in place", lambda x: x.clone().mul_(2).add_(1).relu_()),
    expression("dtype", lambda x: x.float().relu().double()),
    expression("spectral filter", lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=0)[:3], n=N, dim=0), **ORDER),
    expression("linalg.norm of messages", lambda x, e: torch.linalg.norm(x[e[0]] - x[e[1]], dim=-1), EDGES),
]  # fmt: skip


def graph(name: str, build: Any, *args: Any, **more: Any) -> Case:
    return case("adjacency", name, build, *args, **ORDER, **more)


def attend(x: Tensor, edge_index: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(edge_index, (x[edge_index[0]] * x[edge_index[1]]).sum(-1), (N, N)) @ x


_LAYOUTS = {"COO": sparse(torch.sparse_coo), "CSR": sparse(torch.sparse_csr), "CSC": sparse(torch.sparse_csc)}
_INDICES = {
    "by row": edge_index_object("row"),
    "by column": edge_index_object("col"),
    "without caches": edge_index_object("col", fill=False),
}
_NETS = {
    "GCNConv": lambda: pyg.GCNConv(4, 5),
    "SAGEConv": lambda: pyg.SAGEConv(4, 5),
    "GINConv": lambda: pyg.GINConv(mlp(4, 5)),
    "GraphConv": lambda: pyg.GraphConv(4, 5),
    "GCN": lambda: pyg.GCN(4, 6, 2, 3),
}
ADJACENCY = [
    *(graph(f"{name} on {layout}", build, adj) for name, build in _NETS.items() for layout, adj in _LAYOUTS.items()
      if not (layout == "CSC" and "GCN" in name)),
    *(graph(f"{name} on EdgeIndex", build, edges, variant=kind) for name, build in _NETS.items() for kind, edges in _INDICES.items()),
    graph("GATConv on COO", lambda: pyg.GATConv(4, 5), _LAYOUTS["COO"], **SOFTMAX),
    graph("GATConv on EdgeIndex", lambda: pyg.GATConv(4, 5), _INDICES["by column"], **SOFTMAX),
    graph("TransformerConv on CSR", lambda: pyg.TransformerConv(4, 5), _LAYOUTS["CSR"], **SOFTMAX),
    graph("GCNConv on weighted COO", lambda: pyg.GCNConv(4, 5), sparse(torch.sparse_coo, WEIGHT)),
    graph("sparse.mm", lambda: lambda x, adj: torch.sparse.mm(adj, x), _LAYOUTS["COO"]),
    graph("sparse.mm", lambda: lambda x, adj: torch.sparse.mm(adj, x), _LAYOUTS["CSR"], variant="CSR"),
    graph("sparse @", lambda: lambda x, adj: adj @ x @ MATRIX, _LAYOUTS["COO"]),
    graph("sparse.addmm", lambda: lambda x, adj: torch.sparse.addmm(x, adj, x), _LAYOUTS["COO"]),
    graph("EdgeIndex @", lambda: lambda x, e: e @ x, _INDICES["by row"]),
    graph("EdgeIndex.matmul", lambda: lambda x, e: e.matmul(x, WEIGHT[: e.size(1)], reduce="max"), _INDICES["by row"]),
]  # fmt: skip

CASES = [*ACTIVATION, *LAYERS, *EXPRESSIONS, *ADJACENCY]


@dataclass(frozen=True)
class Refused:
    """An operation that portions must not pass in silence: a call, the operation that the error names, and why."""

    what: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    op: str
    reason: str


REFUSED = [
    Refused(
        "a sparse matrix made of portions", attend, (EDGES,), "aten._sparse_coo_tensor_with_dims_and_tensors",
        "A sparse tensor owns its entries, which would have to be portions; write the messages out by edge_index instead.",
    ),
    Refused(
        "a bag of embeddings", lambda x: F.embedding_bag(torch.tensor([0, 3, 3, 5]), x, torch.tensor([0, 2]), mode="sum"), (),
        "aten._embedding_bag", "It looks up and sums in one step, which no rule takes apart; use embedding and sum.",
    ),
    Refused(
        "a gradient inside the model", lambda x: torch.ops.aten.tanh_backward(x, x.tanh()), (), "aten.tanh_backward",
        "Its steps differentiate the model itself, which is no function of portions.",
    ),
    Refused(
        "division with rounding", lambda x: torch.div(x, 2, rounding_mode="floor"), (), "aten.div",
        "A rounded number is no sum of contributions; steps carry nothing.",
    ),
    Refused(
        "integers", lambda x: F.embedding(x[:, 0].abs().long(), torch.eye(9)), (), "aten._to_copy",
        "Integers cannot carry portions; start the decomposition behind the embedding.",
    ),
    Refused(
        "a kernel made of portions", lambda x: F.conv1d(torch.ones(1, 3, 8), x[:2, :3].unsqueeze(-1)), (), "aten.convolution",
        "The rule is linear in the input; a convolution of two portions was not thought through.",
    ),
    Refused(
        "a lazy conjugate", lambda x: torch.view_as_complex(x.view(N, 2, 2)).conj().abs(), (), "aten._conj",
        "PyTorch only notes it on the tensor, and portions cannot carry the note; use torch.conj_physical.",
    ),
    Refused(
        "a remainder by portions", lambda x: torch.remainder(3.0, x), (), "aten.remainder",
        "A portion that is zero divides nothing.",
    ),
    Refused(
        "a norm with weights of portions", lambda x: F.layer_norm(x, (4,), x[0], x[1]), (), "aten.native_layer_norm",
        "The rule takes its parameters as given, and these would be lost; normalise without them, then multiply and add.",
    ),
    Refused(
        "bounds made of portions", lambda x: torch.clamp(x, max=x.mean()), (), "aten.clamp",
        "A maximum or minimum of two portions is what is meant; use torch.minimum.",
    ),
]  # fmt: skip
