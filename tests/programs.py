"""Random programs of PyTorch and PyG operations on node features and edges, as hypothesis strategies.

A program is a list of steps. Each step is drawn for the shape that the steps before it have made, and runs on tensors
and on portions alike. `LINEAR` steps make f(x) linear in x; with `AFFINE` ones it is still true that a background of its
own gives f of the background; `OTHER` ones have no constants, so that all nodes together contribute everything; `MIXED` is
the rest. `NODE` steps give each node a row from its neighbourhood, `GLOBAL` ones look at the whole graph.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GraphNorm, LayerNorm, MessagePassing, PairNorm, SAGEConv
from torch_geometric.utils import scatter, softmax

LIMIT = 400
"""Entries that a value may have, so that programs stay small."""

Draw = Callable[..., Any]
Run = Callable[[Tensor, "State"], Tensor]


@dataclass
class State:
    """What a step may use beside the value it is given."""

    edge_index: Tensor
    past: list[Tensor] = field(default_factory=list)
    """The values before; the first one is x."""


@dataclass(frozen=True)
class Step:
    """One operation with its parameters."""

    text: str
    run: Run


@dataclass(frozen=True)
class Program:
    """A model ``f(x, edge_index)`` with a graph to run it on."""

    x: Tensor
    edge_index: Tensor
    steps: tuple[Step, ...]

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        state, h = State(edge_index), x
        for step in self.steps:
            state.past.append(h)
            h = step.run(h, state)
        return h

    def __repr__(self) -> str:
        edges = list(map(tuple, self.edge_index.t().tolist()))
        return f"Program(x={list(self.x.shape)}, edges={edges}, {' | '.join(step.text for step in self.steps)})"


Op = Callable[[Draw, Tensor, State], tuple[str, Run] | None]
LINEAR: dict[str, Op] = {}
AFFINE: dict[str, Op] = {}
OTHER: dict[str, Op] = {}
MIXED: dict[str, Op] = {}


def op(table: dict[str, Op]) -> Callable[[Op], Op]:
    """Put a kind of step into a table. It returns its text and what it does, or None where the value does not fit."""

    def put(function: Op) -> Op:
        table[function.__name__] = function
        return function

    return put


def constant(draw: Draw, shape: tuple[int, ...]) -> Tensor:
    """Plain numbers from a drawn seed; seed 0 has zeros in it."""
    seed = draw(st.integers(0, 5))
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values * (values.abs() > 0.6) if seed == 0 else values


def broadcastable(draw: Draw, shape: torch.Size, grow: bool = True) -> tuple[int, ...]:
    """A shape that broadcasts to the given one: fewer dimensions, ones in places, sometimes a dimension in front."""
    kept = list(shape)[draw(st.integers(0, len(shape))) :]
    found = [1 if draw(st.booleans()) and draw(st.booleans()) else n for n in kept]
    if grow and len(found) == len(shape) < 3 and draw(st.integers(0, 4)) == 0:
        found = [draw(st.integers(1, 3)), *found]
    return tuple(found)


def axis(draw: Draw, h: Tensor) -> int:
    """A dimension, counted from the front or from the end."""
    return draw(st.integers(-h.dim(), h.dim() - 1))


def on_nodes(h: Tensor, state: State) -> bool:
    """Whether the rows of a value can be those of the nodes."""
    return h.dim() >= 1 and len(h) == len(state.past[0])


def on_edges(h: Tensor, state: State) -> bool:
    return h.dim() >= 1 and len(h) == state.edge_index.shape[1]


# Linear maps.


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
    return f"{'mean' if mean else 'sum'} {dims} {keep}", lambda h, _: (
        h.mean(dims, keepdim=keep) if mean else h.sum(dims, keepdim=keep)
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
            "[rows] = 0": lambda h, _: _written(h, lambda c: c.__setitem__(rows, 0.0)),
            "[0] = 0": lambda h, _: _written(h, lambda c: c.__setitem__(0, 0.0)),
            "[:, 0] *= 2": lambda h, _: _written(h, lambda c: c[..., :1].mul_(2.0)),
            f"index_fill {d}": lambda h, _: h.index_fill(d, rows, 0.0) if h.shape[d] else h,
            f"index_copy {d}": lambda h, _: h.clone().index_copy_(d, rows, 3 * h.narrow(d, h.shape[d] - 1, 1))
            if h.shape[d]
            else h,
            "slices swapped": lambda h, _: _written(h, lambda c: c[:1].copy_(h[-1:].clone())),
            "zeros, then written": lambda h, _: _into_zeros(h),
            "zeros, then put": lambda h, _: h.new_zeros(h.shape).index_put_((rows,), h[-1:], accumulate=True),
            "zero_": lambda h, _: _written(h, lambda c: c[0].zero_()),
            "accumulated": lambda h, _: _written(h, lambda c: c[:1].add_(h[-1:])),
            "view changed": lambda h, _: _written(h, lambda c: c.view(-1)[:1].mul_(-3.0)),
            "row of base": lambda h, _: _base_after_view(h),
        }
    way = draw(st.sampled_from(list(ways)))
    return f"{way} {tuple(mask.shape)}", ways[way]


def _written(h: Tensor, write: Callable[[Tensor], Any]) -> Tensor:
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
    fitting = [i for i, past in enumerate(state.past) if _fit(past, h)]
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


def _fit(a: Tensor, b: Tensor) -> bool:
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
        ways["GCNConv"] = _module(draw, GCNConv(h.shape[1], 3, bias=False))
        ways["SAGEConv"] = _module(draw, SAGEConv(h.shape[1], 3, bias=False))
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


def _module(draw: Draw, module: nn.Module) -> Run:
    """A module on the value and the edges, with random numbers in all of its parameters."""
    seed = draw(st.integers(1, 3))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    module = module.double().eval().requires_grad_(False)
    return lambda h, s: module(h, s.edge_index)


# With constants and activations: a background of its own gives f of the background.


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
        ways["copy_ of a row"] = lambda h, _: _written(h, lambda a: a[:1].copy_(c[:1])) if c.dim() == h.dim() > 0 else h
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
    "relu of a slice": lambda h: _written(h, lambda c: c[..., :1].relu_()) if h.dim() else h,
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
        "[mask] = number": lambda h, _: _written(h, lambda a: a.__setitem__(mask.expand(a.shape), 1.5)),
        "masked_scatter": lambda h, _: h.masked_scatter(mask, constant_like(h.numel())),
    }
    if h.dim() and len(h):
        row = c.expand(h.shape)[:1]
        ways |= {
            "[0] = row": lambda h, _: _written(h, lambda a: a.__setitem__(0, row[0])),
            "[-1:] += row": lambda h, _: _written(h, lambda a: a[-1:].add_(row)),
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
    return kind.__name__, _module(draw, kind(h.shape[1], 2))


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


# Everything else: only the laws hold.


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
        "batch norm of the batch": lambda h, _: F.batch_norm(h, None, None, training=True)
        if h.numel() > h.shape[1]
        else h,
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
        "maximum": lambda h, s: torch.maximum(h, s.past[-1]) if _fit(h, s.past[-1]) else h,
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
    fitting = [i for i, past in enumerate(state.past) if _fit(past, h)]
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
        "hypot": lambda h, s: torch.hypot(h, s.past[past]) if _fit(h, s.past[past]) else h,
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
        "GATConv": _module(draw, GATConv(h.shape[1], 2)),
        "softmax of messages": lambda h, s: scatter(
            softmax(h[s.edge_index[0]], s.edge_index[1], num_nodes=n) * h[s.edge_index[0]], s.edge_index[1], 0, n
        ),
        "softmax · values": lambda h, _: (h @ h.t()).softmax(-1) @ h,
        "log_softmax": lambda h, _: h.log_softmax(-1),
        "over nodes": lambda h, _: h.softmax(0) * h,
    }
    way = draw(st.sampled_from(list(ways)))
    return way, ways[way]


@st.composite
def graphs(draw: Draw) -> tuple[Tensor, Tensor]:
    """Features and edges: one node, no edges, isolated nodes, self-loops and duplicates, as many nodes as features."""
    n = draw(st.integers(1, 5))
    f = draw(st.sampled_from([1, 2, 3, n]))
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=8))
    x = constant(draw, (n, f))
    return x, torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()


@st.composite
def programs(draw: Draw, *tables: dict[str, Op], most: int = 6) -> Program:
    """A program of steps from the tables, with a graph to run it on."""
    kinds = {name: kind for table in tables for name, kind in table.items()}
    x, edge_index = draw(graphs())
    state, h, steps = State(edge_index), x.clone(), []
    for _ in range(draw(st.integers(1, most))):
        name = draw(st.sampled_from(sorted(kinds)))
        state.past.append(h)
        drawn = kinds[name](draw, h, state)
        if drawn is None or h.numel() > LIMIT:
            state.past.pop()
            continue
        steps.append(Step(*drawn))
        h = drawn[1](h, state)
    return Program(x, edge_index, tuple(steps))


@st.composite
def groups_of(draw: Draw, x: Tensor) -> Tensor:
    """Shares ``[K, N]`` or ``[K, N, F]``: every node by itself (as many pairs as nodes), some nodes, parts of them."""
    n = len(x)
    kind = draw(st.sampled_from(["single", "single", "masks", "shares", "features"]))
    if kind == "single":
        return torch.eye(n, dtype=torch.float64)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9)))
    shape = (draw(st.integers(1, 4)), n, *([x.shape[1]] if kind == "features" else []))
    share = torch.rand(shape, generator=generator, dtype=torch.float64)
    return share if kind == "shares" else share.lt(0.4).double()


def spread_over(share: Tensor, x: Tensor) -> Tensor:
    """The shares of each entry, ``[K, N, F]``."""
    return share if share.dim() == 3 else share.unsqueeze(-1).expand(-1, *x.shape)
