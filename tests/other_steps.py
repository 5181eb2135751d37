"""Steps of random programs with constants and activations, and such for which only the laws hold.

With `AFFINE` steps it is still true that a background of its own gives f of the background; `OTHER` ones have no
constants, so that all nodes together contribute everything; `MIXED` is the rest.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from linear_steps import fit, module_step, written
from programs import Op, Run, axis, broadcastable, constant, on_nodes, op
from torch import Tensor
from torch_geometric.nn import GATConv, GCNConv, GraphNorm, LayerNorm, PairNorm, SAGEConv
from torch_geometric.utils import scatter, softmax

AFFINE: dict[str, Op] = {}
OTHER: dict[str, Op] = {}
MIXED: dict[str, Op] = {}


@op(AFFINE)
def bias(draw, h, state):
    c = constant(draw, broadcastable(draw, h.shape))
    ways: dict[str, Run] = {
        "h + c": lambda h, _: h + c,
        "c - h": lambda h, _: c - h,
        "c + h": lambda h, _: c + h,
        "add alpha": lambda h, _: torch.add(h, c, alpha=-0.5),
        "sub alpha": lambda h, _: torch.sub(c, h, alpha=2),
        "number": lambda h, _: 1 - h,
        "addcmul": lambda h, _: torch.addcmul(h, c, c, value=0.5),
        "addcmul on c": lambda h, _: torch.addcmul(c, h, c, value=0.5),
        "addcmul both": lambda h, _: torch.addcmul(h, h, c),
        "addcdiv": lambda h, _: torch.addcdiv(h, c, c.abs() + 1),
        "lerp": lambda h, _: torch.lerp(*torch.broadcast_tensors(h, c), 0.25),
    }
    if torch.broadcast_shapes(c.shape, h.shape) == h.shape:
        ways["add_"] = lambda h, _: h.clone().add_(c)
        ways["copy_ of a row"] = lambda h, _: written(h, lambda a: a[:1].copy_(c[:1])) if c.dim() == h.dim() > 0 else h
    way = draw(st.sampled_from(list(ways)))
    return f"{way} {tuple(c.shape)}", ways[way]


@op(AFFINE)
def addmm(draw, h, state):
    """A matrix, a row, a column or a number on top of a product; or the product on top of the value."""
    if h.dim() != 2 or not h.numel():
        return None
    n, f = h.shape
    o = draw(st.sampled_from([n, f, 2]))
    w = constant(draw, (f, o))
    shape = draw(st.sampled_from([(n, o), (1, o), (o,), (n, 1), (1, 1), ()]))
    b, left = constant(draw, shape), constant(draw, (n, 3))
    ways: dict[str, Run] = {
        "addmm(b, h, w)": lambda h, _: torch.addmm(b, h, w),
        "addmm scaled": lambda h, _: torch.addmm(b, h, w, beta=0.5, alpha=-2),
        "addmm(h, c, c)": lambda h, _: torch.addmm(h, left, left[:f].t() if n >= f else constant_like(3, f)),
        "addmm(b, c, h)": lambda h, _: torch.addmm(constant_like(3, f), constant_like(3, n), h),
        "F.linear": lambda h, _: F.linear(h, w.t(), b.reshape(-1)[:1].expand(o)),
        "baddbmm": lambda h, _: torch.baddbmm(b, h.unsqueeze(0), w.unsqueeze(0)),
        "addmv": lambda h, _: torch.addmv(constant_like(n, 1)[:, 0], h, w[:, 0]),
        "bias on h": lambda h, _: torch.addmm(h, h, constant_like(f, f)),
    }
    if n == f == o:
        ways["addmm(w, h, w)"] = lambda h, _: torch.addmm(w, h, w)
        ways["addmm(w, w, h)"] = lambda h, _: torch.addmm(w, w, h)
    way = draw(st.sampled_from(list(ways)))
    return f"{way} b{shape} w{tuple(w.shape)}", ways[way]


def constant_like(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "relu_": lambda h: h.clone().relu_(),
    "relu_ of the value itself": lambda h: h.relu_() if 0 not in h.stride() else h.relu(),
    "leaky": F.leaky_relu,
    "abs": torch.abs,
    "elu": F.elu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "cos": torch.cos,
    "gelu": F.gelu,
    "clamp": lambda h: h.clamp(-0.5, 0.7),
    "hardtanh_": lambda h: F.hardtanh(h.clone(), 0.1, 0.6, inplace=True),
    "square": lambda h: h**2,
    "relu of a slice": lambda h: written(h, lambda c: c[..., :1].relu_()) if h.dim() else h,
}


@op(AFFINE)
def activation(draw, h, state):
    name = draw(st.sampled_from(["relu", *ACTIVATIONS]))
    return name, lambda h, _: ACTIVATIONS[name](h)


@op(AFFINE)
def clamp_by_tensor(draw, h, state):
    low = constant(draw, broadcastable(draw, h.shape))
    if draw(st.booleans()):
        return f"clamp between {tuple(low.shape)}", lambda h, _: h.clamp(low, low.abs() + 1)
    return f"clamp from {tuple(low.shape)}", lambda h, _: torch.clamp(h, max=low)


@op(AFFINE)
def prelu(draw, h, state):
    if h.dim() < 2:
        return None
    slope = constant(draw, (h.shape[1],))
    return "prelu", lambda h, _: F.prelu(h, slope)


@op(AFFINE)
def overwrite(draw, h, state):
    """Constants in the place of entries."""
    mask = constant(draw, broadcastable(draw, h.shape, grow=False)) > 0
    large = constant(draw, broadcastable(draw, h.shape)) > 0
    c = constant(draw, broadcastable(draw, h.shape, grow=False))
    ways: dict[str, Run] = {
        "where c": lambda h, _: torch.where(large, h, c),
        "where c first": lambda h, _: torch.where(large, c, h),
        "masked_fill": lambda h, _: h.masked_fill(large, 2.5),
        "masked_fill by a tensor": lambda h, _: h.masked_fill(mask, torch.tensor(0.5, dtype=h.dtype)),
        "pad": lambda h, _: F.pad(h, (1, 0), value=0.5) if h.dim() else h,
        "[mask] = number": lambda h, _: written(h, lambda a: a.__setitem__(mask.expand(a.shape), 1.5)),
        "masked_scatter": lambda h, _: h.masked_scatter(mask, constant_like(h.numel())),
    }
    if h.dim() and len(h):
        row = c.expand(h.shape)[:1]
        ways |= {
            "[0] = row": lambda h, _: written(h, lambda a: a.__setitem__(0, row[0])),
            "[-1:] += row": lambda h, _: written(h, lambda a: a[-1:].add_(row)),
            "index_fill": lambda h, _: h.index_fill(0, torch.tensor([len(h) - 1]), 2.0),
            "cat 0": lambda h, _: torch.cat([h, row]),
            "cat -1": lambda h, _: torch.cat([c.expand(h.shape), h], -1),
            "cat 1": lambda h, _: torch.cat([h, c.expand(h.shape)], 1) if h.dim() > 1 else h,
            "stack": lambda h, _: torch.stack([h, c.expand(h.shape)], 1),
            "full, then written": lambda h, _: torch.full(h.shape, 0.5, dtype=h.dtype).index_copy_(
                0, torch.tensor([0]), h[-1:]
            ),
            "scatter": lambda h, _: h.scatter(0, torch.zeros(row.shape, dtype=torch.long), row),
        }
    way = draw(st.sampled_from(list(ways)))
    return f"{way} mask{tuple(mask.shape)} c{tuple(c.shape)}", ways[way]


@op(AFFINE)
def batch_norm(draw, h, state):
    if h.dim() not in (2, 3) or not h.numel():
        return None
    mean, var, weight, offset = (constant(draw, (h.shape[1],)) for _ in range(4))
    with_affine = draw(st.booleans())
    return "batch_norm", lambda h, _: F.batch_norm(
        h, mean, var.abs() + 0.1, weight if with_affine else None, offset if with_affine else None
    )


@op(AFFINE)
def convolution_with_bias(draw, h, state):
    if not on_nodes(h, state) or h.dim() != 2 or not h.numel():
        return None
    kind = draw(st.sampled_from([GCNConv, SAGEConv]))
    return kind.__name__, module_step(draw, kind(h.shape[1], 2))


@op(AFFINE)
def spread_of_entries(draw, h, state):
    """Norms and deviations, of which the background's own is the background."""
    if h.dim() < 1 or h.numel() < 2:
        return None
    d = axis(draw, h)
    ways: dict[str, Run] = {
        f"norm {d}": lambda h, _: h.norm(dim=d),
        f"logsumexp {d}": lambda h, _: h.logsumexp(d),
        "var": lambda h, _: h.var(),
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@op(OTHER)
def normalise(draw, h, state):
    if h.dim() < 2 or not h.numel():
        return None
    f = h.shape[-1]
    weight = constant(draw, (f,))
    ways: dict[str, Run] = {
        "layer_norm": lambda h, _: F.layer_norm(h, (f,), weight),
        "layer_norm of all": lambda h, _: F.layer_norm(h, tuple(h.shape)),
        "normalize": lambda h, _: F.normalize(h, dim=-1),
        "rms_norm": lambda h, _: F.rms_norm(h, (f,), weight),
        "batch norm of the batch": lambda h, _: (
            F.batch_norm(h, None, None, training=True) if h.numel() > h.shape[1] else h
        ),
        "standardise": lambda h, _: (h - h.mean(0)) / (h.std(0, correction=0) + 1e-3),
    }
    if h.dim() == 2:
        ways["GraphNorm"] = lambda h, _: GraphNorm(f).double().requires_grad_(False)(h)
        ways["LayerNorm"] = lambda h, _: LayerNorm(f).double().requires_grad_(False)(h)
        ways["PairNorm"] = lambda h, _: PairNorm()(h)
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@op(OTHER)
def extreme(draw, h, state):
    if h.dim() < 1 or not h.numel():
        return None
    d, k = axis(draw, h), draw(st.integers(1, h.shape[-1]))
    ways: dict[str, Run] = {
        f"amax {d}": lambda h, _: h.amax(d),
        f"min {d}": lambda h, _: h.min(d).values,
        "max": lambda h, _: h.max(),
        f"sort {d}": lambda h, _: h.sort(d).values,
        f"topk {k}": lambda h, _: h.topk(k).values,
        f"median {d}": lambda h, _: h.median(d).values,
        "maximum": lambda h, s: torch.maximum(h, s.past[-1]) if fit(h, s.past[-1]) else h,
        f"cummax {d}": lambda h, _: h.cummax(d).values,
        f"prod {d}": lambda h, _: h.prod(d),
        "max at targets": lambda h, s: (
            scatter(h[s.edge_index[0]], s.edge_index[1], 0, len(h), reduce="max") if on_nodes(h, s) else h
        ),
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@op(OTHER)
def product(draw, h, state):
    fitting = [i for i, past in enumerate(state.past) if fit(past, h)]
    if not fitting:
        return None
    i = draw(st.sampled_from(fitting))
    ways: dict[str, Run] = {
        "h * past": lambda h, s: h * s.past[i],
        "h / (1 + |past|)": lambda h, s: h / (1 + s.past[i].abs()),
        "gram": lambda h, _: h @ h.mT if h.dim() > 1 else h * h,
        "sqrt": lambda h, _: h.abs().sqrt(),
        "log1p": lambda h, _: h.abs().log1p(),
    }
    way = draw(st.sampled_from(list(ways)))
    return f"{way} {i}", ways[way]


@op(MIXED)
def with_constants(draw, h, state):
    if h.dim() < 1 or not h.numel():
        return None
    f, past = h.shape[-1], len(state.past) - 1
    weight, offset = constant(draw, (f,)), constant(draw, (f,))
    ways: dict[str, Run] = {
        "layer_norm with offset": lambda h, _: F.layer_norm(h, (f,), weight, offset),
        "minimum of c": lambda h, _: torch.minimum(h, weight),
        "1 / (1 + h²)": lambda h, _: 1 / (1 + h * h),
        "1 / h": lambda h, _: 1 / h,
        "h / 0": lambda h, _: (h / weight).masked_fill(weight == 0, 0.0),
        "exp": lambda h, _: h.clamp(max=5).exp(),
        "pow": lambda h, _: h.abs().pow(weight),
        "number to a power": lambda h, _: torch.pow(2.0, h.clamp(-4, 4)),
        "atan2": lambda h, _: torch.atan2(h, weight),
        "hypot": lambda h, s: torch.hypot(h, s.past[past]) if fit(h, s.past[past]) else h,
        "where h > 0": lambda h, _: torch.where(h > 0, h, weight),
        "h * (h > 0)": lambda h, _: h * (h > 0),
        "lerp by h": lambda h, _: torch.lerp(h, h.flip(-1), h.sigmoid()),
        "nan_to_num": lambda h, _: torch.nan_to_num(h / h.detach().relu()),
        "log": lambda h, _: h.relu().log().clamp(min=-3),
        "sqrt": lambda h, _: (h.square().sum(-1, keepdim=True)).sqrt() + h,
        "rsqrt": lambda h, _: h * (h.square().sum(-1, keepdim=True) + 1e-12).rsqrt(),
        "glu": lambda h, _: F.glu(torch.cat([h, h + 1], -1)),
        "single": lambda h, _: h.float().double(),
        "cosine": lambda h, _: F.cosine_similarity(h, h.flip(-1), dim=-1),
        "cdist": lambda h, _: torch.cdist(h, h) if h.dim() == 2 else h,
        "bilinear": lambda h, _: h.unsqueeze(-1) * h.unsqueeze(-2),
        "std": lambda h, _: h.std(-1, correction=0),
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@op(MIXED)
def attention(draw, h, state):
    if not on_nodes(h, state) or h.dim() != 2 or not h.numel():
        return None
    n = len(h)
    ways: dict[str, Run] = {
        "GATConv": module_step(draw, GATConv(h.shape[1], 2)),
        "softmax of messages": lambda h, s: scatter(
            softmax(h[s.edge_index[0]], s.edge_index[1], num_nodes=n) * h[s.edge_index[0]], s.edge_index[1], 0, n
        ),
        "softmax · values": lambda h, _: (h @ h.t()).softmax(-1) @ h,
        "log_softmax": lambda h, _: h.log_softmax(-1),
        "over nodes": lambda h, _: h.softmax(0) * h,
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]
