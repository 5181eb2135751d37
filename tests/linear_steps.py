"""Steps of random programs that make f(x) linear in x, in the ways that people write them."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from programs import LIMIT, Draw, Op, Run, axis, broadcastable, constant, on_edges, on_nodes, op
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, MessagePassing, SAGEConv
from torch_geometric.utils import scatter

LINEAR: dict[str, Op] = {}


@op(LINEAR)
def linear(draw, h, state):
    if h.dim() < 1:
        return None
    w = constant(draw, (h.shape[-1], draw(st.integers(1, 4))))
    way = draw(st.sampled_from(["matmul", "linear", "einsum", "vector", "tensordot"]))
    ways = {
        "matmul": lambda h, _: h @ w,
        "linear": lambda h, _: F.linear(h, w.t()),
        "einsum": lambda h, _: torch.einsum("...f,fo->...o", h, w),
        "vector": lambda h, _: h @ w[:, 0],
        "tensordot": lambda h, _: torch.tensordot(h, w, 1),
    }
    return f"{way} {tuple(w.shape)}", ways[way]


@op(LINEAR)
def left_product(draw, h, state):
    if h.dim() < 2:
        return None
    a = constant(draw, (draw(st.integers(1, 4)), h.shape[-2]))
    if draw(st.booleans()) and h.dim() == 2:
        return f"sparse {tuple(a.shape)} @ h", lambda h, _: torch.sparse.mm(a.to_sparse_coo(), h)
    return f"{tuple(a.shape)} @ h", lambda h, _: a @ h


@op(LINEAR)
def scale(draw, h, state):
    c = constant(draw, broadcastable(draw, h.shape))
    c = torch.where(c.abs() < 0.1, 0.5, c) if draw(st.booleans()) else c
    ways = {
        "h * c": lambda h, _: h * c,
        "c * h": lambda h, _: c * h,
        "h / c": lambda h, _: h / torch.where(c.abs() < 0.1, 0.5, c),
        "h * number": lambda h, _: h * -0.7,
        "addcmul 0": lambda h, _: torch.addcmul(torch.zeros_like(c * h), h, c, value=-0.5),
    }
    if torch.broadcast_shapes(c.shape, h.shape) == h.shape:
        ways["h.mul_(c)"] = lambda h, _: h.clone().mul_(c)
        ways["h.mul_(c) of the value itself"] = lambda h, _: h.mul_(c) if h.dim() and 0 not in h.stride() else h * c
    way = draw(st.sampled_from(list(ways)))
    return f"{way} {tuple(c.shape)}", ways[way]


@op(LINEAR)
def reduce(draw, h, state):
    if h.dim() < 1:
        return None
    dims = draw(st.lists(st.integers(0, h.dim() - 1), min_size=1, max_size=2, unique=True))
    keep, mean = draw(st.booleans()), draw(st.booleans())
    if mean and not h.numel():
        return None
    return (
        f"{'mean' if mean else 'sum'} {dims} {keep}",
        lambda h, _: h.mean(dims, keepdim=keep) if mean else h.sum(dims, keepdim=keep),
    )


@op(LINEAR)
def rearrange(draw, h, state):
    if h.dim() < 1:
        return None
    d, e = axis(draw, h), axis(draw, h)
    ways = {
        f"transpose {d} {e}": lambda h, _: h.transpose(d, e),
        "T": lambda h, _: h.permute(*reversed(range(h.dim()))),
        f"flip {d}": lambda h, _: h.flip(d),
        f"roll {d}": lambda h, _: h.roll(1, d),
        "roll all": lambda h, _: h.roll(1),
        f"cumsum {d}": lambda h, _: h.cumsum(d),
        f"unsqueeze {d}": lambda h, _: h.unsqueeze(d),
        "squeeze": lambda h, _: h.squeeze(),
        f"squeeze {d}": lambda h, _: h.squeeze(d),
        "neg": lambda h, _: -h,
        "contiguous": lambda h, _: h.t().contiguous() if h.dim() == 2 else h.clone(),
        f"repeat {d}": lambda h, _: torch.cat([h, h], d),
        f"repeat_interleave {d}": lambda h, _: h.repeat_interleave(2, d),
        "stack": lambda h, s: torch.stack([h, s.past[-1]]) if s.past[-1].shape == h.shape else torch.stack([h, h], -1),
        "tril": lambda h, _: h.tril() if h.dim() > 1 else h,
        "diagonal": lambda h, _: h.diagonal() if h.dim() > 1 else h,
        "tile": lambda h, _: h.repeat(2, *[1] * h.dim()),
        "unbind": lambda h, _: h.unbind(d)[-1] if h.shape[d] else h,
        "split": lambda h, _: torch.cat(h.split(2, d)[::-1], d) if h.shape[d] else h,
        "expand": lambda h, _: h.unsqueeze(0).expand(2, *h.shape),
        "unfold": lambda h, _: h.unfold(d, 1, 1),
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@op(LINEAR)
def reshape(draw, h, state):
    n = h.numel()
    if not n:
        return None
    first = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    second = draw(st.sampled_from([d for d in range(1, n // first + 1) if (n // first) % d == 0]))
    shapes = [(first, -1), (-1, first), (first, second, -1), (-1,), (len(h) if h.dim() else 1, -1)]
    shape = draw(st.sampled_from(shapes))
    if draw(st.booleans()):
        return f"view {shape}", lambda h, _: h.contiguous().view(shape)
    return f"reshape {shape}", lambda h, _: h.reshape(shape)


@op(LINEAR)
def choose(draw, h, state):
    if h.dim() < 1 or not h.numel():
        return None
    d = axis(draw, h)
    size = h.shape[d]
    i = draw(st.integers(-size, size - 1))
    some = draw(st.lists(st.integers(-size, size - 1), min_size=0, max_size=4))
    at, mask = torch.tensor(some, dtype=torch.long), constant(draw, tuple(h.shape)) > 0
    front = at % size
    ways: dict[str, Run] = {
        f"select {d} {i}": lambda h, _: h.select(d, i),
        f"slice {d} {i}": lambda h, _: h.narrow(d, i % size, size - i % size),
        f"[::2, {i}:]": lambda h, _: h[::2, i:] if h.dim() > 1 else h[::2],
        f"[..., {i % h.shape[-1]}:]": lambda h, _: h[..., i % h.shape[-1] :],
        f"index_select {d} {some}": lambda h, _: h.index_select(d, front),
        f"[{some}]": lambda h, _: h[at % len(h)],
        f"[negative {some}]": lambda h, _: h[at % len(h) - len(h)],
        f"[:, {some}]": lambda h, _: h[:, at % h.shape[1]] if h.dim() > 1 else h,
        f"[{some}, :, {some}]": lambda h, _: h[at % len(h), :, at % h.shape[2]] if h.dim() > 2 else h,
        f"[{some}, {some}]": lambda h, _: h[at % len(h), at % h.shape[1]] if h.dim() > 1 else h,
        "[mask]": lambda h, _: h[mask],
        "masked_select": lambda h, _: h.masked_select(mask),
        "[mask of rows]": lambda h, _: h[mask.reshape(len(h), -1).any(1)],
        "h[:, None]": lambda h, _: h[:, None],
        f"gather {d}": lambda h, _: h.gather(d, (mask.long() * 7) % size),
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@op(LINEAR)
def erase(draw, h, state):
    """Entries become zero, by masks of all shapes that broadcast, out of place and in place."""
    mask = constant(draw, broadcastable(draw, h.shape, grow=False)) > 0
    rows = torch.tensor([0]) if h.dim() and len(h) else None
    d = axis(draw, h) if h.dim() else 0
    ways: dict[str, Run] = {
        "masked_fill 0": lambda h, _: h.masked_fill(mask, 0.0),
        "masked_fill_ 0": lambda h, _: h.clone().masked_fill_(mask, 0.0),
        "where 0": lambda h, _: torch.where(mask, h, 0.0),
        "where float": lambda h, _: torch.where(mask, h, -h.mean()) if h.numel() else h,
        "masked_fill by portions": lambda h, _: h.masked_fill(mask, h.sum()),
        "masked_fill_ by portions": lambda h, _: h.clone().masked_fill_(mask, h.sum()),
        "fill_": lambda h, _: h.clone().fill_(h.sum()),
        "where zeros": lambda h, _: torch.where(mask, torch.zeros(h.shape[-1:], dtype=h.dtype), h),
        "where past": lambda h, s: torch.where(mask, h, s.past[-1] if s.past[-1].shape == h.shape else 2 * h),
        "h * mask": lambda h, _: h * mask,
        "pad": lambda h, _: F.pad(h, (0, 1)) if h.dim() else h,
    }
    if rows is not None:
        ways |= {
            "[rows] = 0": lambda h, _: written(h, lambda c: c.__setitem__(rows, 0.0)),
            "[0] = 0": lambda h, _: written(h, lambda c: c.__setitem__(0, 0.0)),
            "[:, 0] *= 2": lambda h, _: written(h, lambda c: c[..., :1].mul_(2.0)),
            f"index_fill {d}": lambda h, _: h.index_fill(d, rows, 0.0) if h.shape[d] else h,
            f"index_copy {d}": lambda h, _: (
                h.clone().index_copy_(d, rows, 3 * h.narrow(d, h.shape[d] - 1, 1)) if h.shape[d] else h
            ),
            "slices swapped": lambda h, _: written(h, lambda c: c[:1].copy_(h[-1:].clone())),
            "zeros, then written": lambda h, _: _into_zeros(h),
            "zeros, then put": lambda h, _: h.new_zeros(h.shape).index_put_((rows,), h[-1:], accumulate=True),
            "zero_": lambda h, _: written(h, lambda c: c[0].zero_()),
            "accumulated": lambda h, _: written(h, lambda c: c[:1].add_(h[-1:])),
            "view changed": lambda h, _: written(h, lambda c: c.view(-1)[:1].mul_(-3.0)),
            "row of base": lambda h, _: _base_after_view(h),
        }
    way = draw(st.sampled_from(list(ways)))
    return f"{way} {tuple(mask.shape)}", ways[way]


def written(h: Tensor, write: Callable[[Tensor], Any]) -> Tensor:
    copy = h.clone(memory_format=torch.contiguous_format)
    write(copy)
    return copy


def _into_zeros(h: Tensor) -> Tensor:
    out = torch.zeros(len(h) + 1, *h.shape[1:], dtype=h.dtype)
    out[1:] = h
    out[0] += h[-1]
    return out


def _base_after_view(h: Tensor) -> Tensor:
    base = h * 1.0
    view = base[:1]
    base.mul_(2)
    return base + view.sum(0)


@op(LINEAR)
def residual(draw, h, state):
    """The value with an earlier one, as far as their shapes allow."""
    fitting = [i for i, past in enumerate(state.past) if fit(past, h)]
    if not fitting:
        return None
    i = draw(st.sampled_from(fitting))
    ways: dict[str, Run] = {
        "h + past": lambda h, s: h + s.past[i],
        "past - h": lambda h, s: s.past[i] - h,
        "add alpha": lambda h, s: torch.add(h, s.past[i], alpha=-0.5),
        "rsub": lambda h, s: torch.rsub(h, s.past[i], alpha=2),
        "lerp": lambda h, s: torch.lerp(*torch.broadcast_tensors(h, s.past[i]), 0.3),
    }
    if state.past[i].shape == h.shape:
        ways["add_"] = lambda h, s: h.clone().add_(s.past[i])
        if h.dim():
            ways["cat 0"] = lambda h, s: torch.cat([h, s.past[i]])
            ways["cat -1"] = lambda h, s: torch.cat([s.past[i], h], -1)
    way = draw(st.sampled_from(list(ways)))
    return f"{way} {i}", ways[way]


def fit(a: Tensor, b: Tensor) -> bool:
    try:
        return torch.broadcast_shapes(a.shape, b.shape).numel() <= LIMIT
    except RuntimeError:
        return False


@op(LINEAR)
def messages(draw, h, state):
    """Rows gathered along edges, scaled, and summed at the other end, in the ways that people write it."""
    if not on_nodes(h, state):
        return None
    n, e = len(h), state.edge_index.shape[1]
    w = constant(draw, (e,))
    column = w.reshape(-1, *[1] * (h.dim() - 1))
    ways: dict[str, Run] = {
        "index_add": lambda h, s: torch.zeros_like(h).index_add_(0, s.edge_index[1], h[s.edge_index[0]] * column),
        "scatter sum": lambda h, s: scatter(column * h.index_select(0, s.edge_index[0]), s.edge_index[1], 0, n),
        "scatter mean": lambda h, s: scatter(h[s.edge_index[0]], s.edge_index[1], 0, n, reduce="mean"),
        "scatter_add": lambda h, s: h.new_zeros(h.shape).scatter_add_(
            0, s.edge_index[1].reshape(column.shape).expand(e, *h.shape[1:]), h[s.edge_index[0]]
        ),
        "onto itself": lambda h, s: h.index_add(0, s.edge_index[1], h[s.edge_index[0]] * column, alpha=0.5),
        "not summed": lambda h, s: h[s.edge_index[0]] * column,
        "difference": lambda h, s: h[s.edge_index[1]] - h.index_select(0, s.edge_index[0]),
        "two factors": lambda h, s: scatter(
            h.index_select(0, s.edge_index[0]) * column * column.abs(), s.edge_index[1], 0, n
        ),
    }
    if h.dim() == 2 and h.numel():
        ways["sparse"] = lambda h, s: _adjacency(s.edge_index, w, n) @ h
        ways["propagate"] = lambda h, s: _Weighted()(h, s.edge_index, w)
        ways["GCNConv"] = module_step(draw, GCNConv(h.shape[1], 3, bias=False))
        ways["SAGEConv"] = module_step(draw, SAGEConv(h.shape[1], 3, bias=False))
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@op(LINEAR)
def edges_to_nodes(draw, h, state):
    if not on_edges(h, state):
        return None
    n = len(state.past[0])
    ways: dict[str, Run] = {
        "sum at targets": lambda h, s: scatter(h, s.edge_index[1], 0, n),
        "mean at sources": lambda h, s: scatter(h, s.edge_index[0], 0, n, reduce="mean"),
        "index_add": lambda h, s: h.new_zeros(n, *h.shape[1:]).index_add_(0, s.edge_index[1], h, alpha=2.0),
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


def _adjacency(edge_index: Tensor, weight: Tensor, n: int) -> Tensor:
    return torch.sparse_coo_tensor(edge_index.flip(0), weight, (n, n))


class _Weighted(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, weight=weight)

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return weight.unsqueeze(1) * x_j


def module_step(draw: Draw, module: nn.Module) -> Run:
    """A module on the value and the edges, with random numbers in all of its parameters."""
    seed = draw(st.integers(1, 3))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    module = module.double().eval().requires_grad_(False)
    return lambda h, s: module(h, s.edge_index)
