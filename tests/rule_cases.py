"""Every rule with calls that use it and a slow twin of each call, typed from its formula one entry at a time.

A case is a function of the node features x ``[6, 4]``. Its twin takes one group's portions of the same features,
γ and β, and returns the target that the formula demands.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.utils
from torch import Tensor, nn
from torch_geometric.nn import SortAggregation
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from xdegree.engine.options import Options

aten = torch.ops.aten
Twin = Callable[[Tensor, Tensor, Options], Tensor]


@dataclass(frozen=True)
class RuleCase:
    rule: str
    name: str
    function: Callable[[Tensor], Any]
    twin: Twin
    laws: tuple[str, ...] = ("total", "nothing", "everything", "finite", "one_pass")
    positive: bool = False


def entries(shape: torch.Size) -> itertools.product:
    return itertools.product(*(range(n) for n in shape))


def share(gamma: float, beta: float) -> float:
    """|γ| / (|γ| + |β|), nothing for the target at 0/0."""
    return abs(gamma) / (abs(gamma) + abs(beta)) if gamma or beta else 0.0


def with_bias(gamma: Tensor, beta: Tensor, bias: Tensor, options: Options) -> Tensor:
    """γ + b·|γ| / (|γ| + |β|)."""
    bias, out = bias.expand_as(gamma), gamma.clone()
    if options.bias == "share":
        for i in entries(gamma.shape):
            out[i] = gamma[i] + bias[i] * share(gamma[i].item(), beta[i].item())
    return out


def ordered(first: Tensor, last: Tensor, options: Options) -> Tensor:
    """The orders of a telescoping sum; a function of several numbers has no gate and takes both."""
    both = (first + last) / 2
    return {"target-first": first, "target-last": last, "both-orders": both, "gate": both}[options.activation]


def telescoped(f: Callable[[Tensor], Tensor]) -> Twin:
    """f(γ) first, or last, or both, or γ·(f(T) − f(0))/T; perhaps no more than f(T) − f(0); f(0) is a bias."""

    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        out = torch.zeros_like(gamma)
        zero = f(torch.zeros(1, dtype=gamma.dtype)).item()
        for i in entries(gamma.shape):
            g, b = gamma[i].reshape(1), beta[i].reshape(1)
            whole = f(g + b).item() - zero
            if options.activation == "gate":
                out[i] = g.item() * whole / (g + b).item() if (g + b).item() else 0.0
            else:
                out[i] = ordered(f(g) - zero, f(g + b) - f(b), options).item()
            if options.bound == "output":
                out[i] = min(max(out[i].item(), min(whole, 0.0)), max(whole, 0.0))
            if options.bias == "share":
                out[i] += zero * share(g.item(), b.item())
        return out

    return twin


def proportional(f: Callable[[Tensor], Tensor]) -> Twin:
    """f(x)·|γ| / (|γ| + |β|)."""

    def twin(gamma: Tensor, beta: Tensor, _: Options) -> Tensor:
        out = torch.zeros_like(gamma)
        for i in entries(gamma.shape):
            out[i] = f((gamma[i] + beta[i]).reshape(1)).item() * share(gamma[i].item(), beta[i].item())
        return out

    return twin


def linear(f: Callable[[Tensor], Any]) -> Twin:
    """f(γ): what a linear map does to the target."""
    return lambda gamma, beta, options: f(gamma)


def bilinear(f: Callable[[Tensor, Tensor], Tensor]) -> Twin:
    """f(γ, γ'), or with half of the mixed terms."""

    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        if options.product == "target":
            return f(gamma, gamma)
        return f(gamma, gamma) + (f(gamma, beta) + f(beta, gamma)) / 2

    return twin


generator = torch.Generator().manual_seed(7)
W = torch.randn(4, 3, generator=generator, dtype=torch.float64)
LEFT = torch.randn(5, 6, generator=generator, dtype=torch.float64)
SYSTEM = LEFT.T @ LEFT + torch.eye(6, dtype=torch.float64)
B3 = torch.randn(3, generator=generator, dtype=torch.float64)
B4 = torch.randn(4, generator=generator, dtype=torch.float64)
B6 = torch.randn(6, generator=generator, dtype=torch.float64)
X2 = torch.randn(6, 4, generator=generator, dtype=torch.float64)
KERNEL = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
B2 = torch.randn(2, generator=generator, dtype=torch.float64)
INDEX = torch.tensor([0, 2, 2, 0, 3, 2])
ROWS = INDEX.unsqueeze(1).expand(6, 4)
SCRAMBLED = torch.randint(0, 5, (6, 4), generator=generator)
MASK = torch.rand(6, 4, generator=generator) < 0.5
RANK3 = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)


def case(rule: str, name: str, function: Any, twin: Twin, **more: Any) -> RuleCase:
    return RuleCase(rule, name, function, twin, **more)


LINEAR = [
    case("solve", "solve", lambda x: torch.linalg.solve(SYSTEM, x), linear(lambda g: SYSTEM.inverse() @ g)),
    case("solve", "solve for a vector", lambda x: torch.linalg.solve(SYSTEM, x[:, 0]), linear(lambda g: SYSTEM.inverse() @ g[:, 0])),
    case("solve", "solve from the right", lambda x: torch.linalg.solve(SYSTEM[:4, :4], x, left=False), linear(lambda g: g @ SYSTEM[:4, :4].inverse())),
    case("matmul", "mm", lambda x: x @ W, linear(lambda g: g @ W)),
    case("matmul", "mm from the left", lambda x: LEFT @ x, linear(lambda g: LEFT @ g)),
    case("matmul", "mm sparse", lambda x: LEFT.relu().to_sparse() @ x, linear(lambda g: LEFT.relu() @ g)),
    case("matmul", "mm both", lambda x: x @ x.t(), bilinear(lambda p, q: p @ q.t())),
    case("matmul", "bmm", lambda x: x.view(2, 3, 4) @ RANK3.transpose(1, 2),
         linear(lambda g: g.view(2, 3, 4) @ RANK3.transpose(1, 2))),
    case("matmul", "bmm from the left", lambda x: RANK3.transpose(1, 2) @ x.view(2, 3, 4),
         linear(lambda g: RANK3.transpose(1, 2) @ g.view(2, 3, 4))),
    case("matmul", "mv", lambda x: x @ B4, linear(lambda g: g @ B4)),
    case("matmul", "mv of a portion", lambda x: LEFT @ x[:, 0], linear(lambda g: LEFT @ g[:, 0])),
    case("matmul", "mv both", lambda x: x @ x[0], bilinear(lambda p, q: p @ q[0])),
    case("matmul", "dot", lambda x: x[:, 1] @ B6, linear(lambda g: g[:, 1] @ B6)),
    case("matmul", "dot both", lambda x: x[:, 1] @ x[:, 2], bilinear(lambda p, q: p[:, 1] @ q[:, 2])),
    case("affine", "linear layer", lambda x: F.linear(x, W.t(), B3),
         lambda g, b, o: with_bias(g @ W, b @ W, B3, o)),
    case("affine", "addmm with alpha and beta", lambda x: torch.addmm(B3, x, W, alpha=2, beta=3),
         lambda g, b, o: with_bias(2 * g @ W, 2 * b @ W, 3 * B3, o)),
    case("affine", "addmm onto a portion", lambda x: torch.addmm(x[:, :3], x, W, alpha=2, beta=3),
         linear(lambda g: 3 * g[:, :3] + 2 * g @ W)),
    case("affine", "baddbmm", lambda x: torch.baddbmm(B4, x.view(2, 3, 4), RANK3.transpose(1, 2) @ RANK3),
         lambda g, b, o: with_bias(g.view(2, 3, 4) @ (RANK3.mT @ RANK3), b.view(2, 3, 4) @ (RANK3.mT @ RANK3), B4, o)),
    case("affine_rare", "addmv", lambda x: torch.addmv(B6, x, B4, alpha=2),
         lambda g, b, o: with_bias(2 * g @ B4, 2 * b @ B4, B6, o)),
    case("affine_rare", "addbmm", lambda x: torch.addbmm(B3, x.view(2, 3, 4), RANK3.mT, beta=2),
         lambda g, b, o: with_bias((g.view(2, 3, 4) @ RANK3.mT).sum(0), (b.view(2, 3, 4) @ RANK3.mT).sum(0), 2 * B3, o)),
    case("affine", "plain product onto a portion", lambda x: torch.addmm(x[:, :3], X2, W, alpha=2, beta=3),
         lambda g, b, o: with_bias(3 * g[:, :3], 3 * b[:, :3], 2 * X2 @ W, o)),
    case("affine_rare", "plain addmv onto a portion", lambda x: torch.addmv(x[:, 0], X2, B4),
         lambda g, b, o: with_bias(g[:, 0], b[:, 0], X2 @ B4, o)),
    case("affine_rare", "plain addbmm onto a portion", lambda x: torch.addbmm(x[:3, :3], RANK3, RANK3.mT, beta=2),
         lambda g, b, o: with_bias(2 * g[:3, :3], 2 * b[:3, :3], (RANK3 @ RANK3.mT).sum(0), o)),
    case("add", "bias", lambda x: x + B4, lambda g, b, o: with_bias(g, b, B4, o)),
    case("add", "bias that makes it larger", lambda x: x[0] + X2,
         lambda g, b, o: with_bias(g[0].expand(6, 4), b[0].expand(6, 4), X2, o)),
    case("add", "number", lambda x: x + 1.5, lambda g, b, o: with_bias(g, b, torch.tensor(1.5).double(), o)),
    case("add", "two portions", lambda x: x + x.flip(0), linear(lambda g: g + g.flip(0))),
    case("add", "broadcast portions", lambda x: x + x[0], linear(lambda g: g + g[0])),
    case("add", "sub", lambda x: x - B4, lambda g, b, o: with_bias(g, b, -B4, o)),
    case("add", "plain minus portion", lambda x: B4 - x, lambda g, b, o: with_bias(-g, -b, B4, o)),
    case("add", "sub with alpha", lambda x: torch.sub(x, x[0], alpha=2), linear(lambda g: g - 2 * g[0])),
    case("rsub", "portion minus plain", lambda x: torch.rsub(B4, x), lambda g, b, o: with_bias(g, b, -B4, o)),
    case("rsub", "two portions", lambda x: torch.rsub(x[0], x, alpha=2), linear(lambda g: g - 2 * g[0])),
    case("rsub", "one minus", lambda x: 1 - x, lambda g, b, o: with_bias(-g, -b, torch.tensor(1.0).double(), o)),
    case("convolution", "conv1d", lambda x: F.conv1d(x.t().unsqueeze(0), KERNEL, B2, padding=1),
         lambda g, b, o: with_bias(F.conv1d(g.t()[None], KERNEL, padding=1), F.conv1d(b.t()[None], KERNEL, padding=1),
                                   B2[:, None], o)),
    case("convolution", "conv1d without bias", lambda x: F.conv1d(x.t().unsqueeze(0), KERNEL, None, stride=2),
         linear(lambda g: F.conv1d(g.t()[None], KERNEL, None, stride=2))),
]  # fmt: skip

PRODUCT = [
    case("mul", "plain factor", lambda x: x * X2, linear(lambda g: g * X2)),
    case("mul", "number", lambda x: 2.5 * x, linear(lambda g: 2.5 * g)),
    case("mul", "broadcast factor", lambda x: x[0] * X2, linear(lambda g: g[0] * X2)),
    case("mul", "attention × value", lambda x: x[:, :1] * x, bilinear(lambda p, q: p[:, :1] * q)),
    case("div", "plain denominator", lambda x: x / (X2.abs() + 1), linear(lambda g: g / (X2.abs() + 1))),
    case("div", "denominator of portions", lambda x: x / x.abs().sum(1, keepdim=True),
         lambda g, b, o: g / (g + b).abs().sum(1, keepdim=True)),
    case("div", "plain numerator", lambda x: X2 / x,
         lambda g, b, o: proportional(lambda t: 1 / t)(g, b, o) * X2),
    case("addcmul", "portions", lambda x: torch.addcmul(x, x, x.flip(0), value=2),
         lambda g, b, o: g + 2 * bilinear(lambda p, q: p * q.flip(0))(g, b, o)),
    case("addcmul", "constant", lambda x: torch.addcmul(x, X2, X2),
         lambda g, b, o: with_bias(g, b, X2 * X2, o)),
    case("addcdiv", "portions", lambda x: torch.addcdiv(x, x, X2.abs() + 1, value=2),
         linear(lambda g: g + 2 * g / (X2.abs() + 1))),
    case("addcdiv", "constant", lambda x: torch.addcdiv(x, X2, X2.abs() + 1),
         lambda g, b, o: with_bias(g, b, X2 / (X2.abs() + 1), o)),
]  # fmt: skip

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.2), "elu": F.elu, "celu": F.celu, "selu": F.selu,
    "gelu": F.gelu, "gelu tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish,
    "softplus": F.softplus, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardtanh": F.hardtanh,
    "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "relu6": F.relu6, "hardshrink": F.hardshrink,
    "softshrink": F.softshrink, "threshold": lambda x: F.threshold(x, 0.3, 0.7), "abs": torch.abs,
    "clamp": lambda x: x.clamp(0.2, 1.0), "clamp_min": lambda x: x.clamp_min(0.1), "clamp_max": lambda x: x.clamp_max(0.4),
    "erf": torch.erf, "erfc": torch.erfc, "sin": torch.sin, "cos": torch.cos, "sinc": torch.sinc, "atan": torch.atan, "asinh": torch.asinh,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2,
    "log10": torch.log10, "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal,
    "sinh": torch.sinh, "cosh": torch.cosh, "tan": torch.tan, "digamma": torch.digamma, "lgamma": torch.lgamma,
    "asin": lambda x: torch.asin(x / 10), "acos": lambda x: torch.acos(x / 10), "atanh": lambda x: torch.atanh(x / 10),
    "acosh": lambda x: torch.acosh(10 * x), "erfinv": lambda x: torch.erfinv(x / 10), "logit": lambda x: torch.logit(x / 10),
}  # fmt: skip
SLOPES = torch.tensor([0.1, 0.2, 0.3, -0.4], dtype=torch.float64)


def prelu_twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
    columns = [
        telescoped(lambda t, s=slope: torch.where(t > 0, t, s * t))(gamma[:, i : i + 1], beta[:, i : i + 1], options)
        for i, slope in enumerate(SLOPES.tolist())
    ]
    return torch.cat(columns, 1)


ACTIVATION = [
    *(case("activation", name, f, telescoped(f)) for name, f in _ACTIVATIONS.items()),
    *(case("magnitude", name, f, proportional(f), positive=True) for name, f in _FUNCTIONS.items()),
    case("log_sigmoid", "logsigmoid", F.logsigmoid, telescoped(F.logsigmoid)),
    case("prelu", "prelu", lambda x: F.prelu(x, SLOPES), prelu_twin),
    case("power", "square", lambda x: x**2, telescoped(lambda t: t**2)),
    case("power", "cube", lambda x: x.pow(3.0), telescoped(lambda t: t**3)),
    case("power", "root", lambda x: x.pow(-0.5), proportional(lambda t: t.pow(-0.5)), positive=True),
    case("power", "as an exponent", lambda x: torch.pow(2.0, x), proportional(lambda t: 2.0**t)),
    case(
        "power",
        "of a larger base",
        lambda x: X2.abs() ** x[0],
        lambda g, b, o: (
            X2.abs() ** (g + b)[0]
            * torch.tensor([share(*pair) for pair in zip(g[0].tolist(), b[0].tolist(), strict=True)], dtype=g.dtype)
        ),
    ),
]


def softmax_twin(groups: Tensor | None, dim: int) -> Twin:
    """softmax(x)·exp|γ| / (exp|γ| + exp|β|), over the rows of one group or over a dimension."""

    def twin(gamma: Tensor, beta: Tensor, _: Options) -> Tensor:
        x, out = gamma + beta, torch.zeros_like(gamma)
        for i, j in entries(x.shape):
            rivals = (
                x[i] if groups is None and dim == 1 else x[groups == groups[i], j] if groups is not None else x[:, j]
            )
            value = 1 / sum(math.exp(rival - x[i, j]) for rival in rivals.tolist())
            g, b = math.exp(abs(gamma[i, j])), math.exp(abs(beta[i, j]))
            out[i, j] = value * g / (g + b)
        return out

    return twin


def log_softmax_twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
    """(log softmax)(γ) + log C, and the constant −log C as a bias."""
    zero = -math.log(gamma.shape[1])
    f = lambda t: t - t.exp().sum(1, keepdim=True).log()
    first, last = f(gamma) - zero, f(gamma + beta) - f(beta)
    target = ordered(first, last, options)
    if options.bias == "share":
        for i in entries(gamma.shape):
            target[i] += zero * share(gamma[i].item(), beta[i].item())
    return target


SOFTMAX_LAWS = ("total", "finite", "one_pass")
ATTENTION = [
    case("softmax", "over classes", lambda x: torch.softmax(x, 1), softmax_twin(None, 1), laws=SOFTMAX_LAWS),
    case("softmax", "safe", lambda x: aten._safe_softmax(x, 1), softmax_twin(None, 1), laws=SOFTMAX_LAWS),
    case("softmax", "over rows", lambda x: torch.softmax(x, 0), softmax_twin(None, 0), laws=SOFTMAX_LAWS),
    case("softmax", "over neighbors", lambda x: torch_geometric.utils.softmax(x, INDEX, num_nodes=5),
         softmax_twin(INDEX, 0), laws=SOFTMAX_LAWS),
    case("log_softmax", "over classes", lambda x: torch.log_softmax(x, 1), log_softmax_twin),
    case("log_softmax", "of a number", lambda x: torch.log_softmax(x[0, 0], 0), linear(lambda g: g.new_zeros(()))),
]  # fmt: skip

MEAN, VAR = torch.tensor([0.1, -0.2, 0.3, 0.0]).double(), torch.tensor([1.0, 2.0, 0.5, 1.5]).double()


def batch_norm_twin(weight: Tensor, bias: Tensor) -> Twin:
    scale = weight / (VAR + 1e-5).sqrt()
    return lambda g, b, o: with_bias(g * scale, b * scale, bias - MEAN * scale, o)


NORMALISATION = [
    case("batch_norm", "eval", lambda x: F.batch_norm(x, MEAN, VAR, SLOPES, B4), batch_norm_twin(SLOPES, B4)),
    case(
        "batch_norm",
        "exported",
        lambda x: aten._native_batch_norm_legit_no_training(x, SLOPES, B4, MEAN, VAR, 0.1, 1e-5)[0],
        batch_norm_twin(SLOPES, B4),
    ),
    case(
        "batch_norm", "not affine", lambda x: F.batch_norm(x, MEAN, VAR), batch_norm_twin(torch.ones(4), torch.zeros(4))
    ),
]


def scatter_twin(reduce: str, index: Tensor, size: int, start: float | None = None) -> Twin:
    """Row by row into the places that the index names, one entry after the other."""

    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        x, out = gamma + beta, torch.zeros(size, gamma.shape[1], dtype=gamma.dtype)
        for place, column in entries(out.shape):
            members = [row for row in range(len(gamma)) if index[row, column] == place]
            values = [gamma[row, column] for row in members]
            if reduce in ("sum", "mean"):
                plain = 0 if start is None else 1
                divisor = 1 if reduce == "sum" else max(1, len(members) + plain)
                out[place, column] = sum(values) / divisor
            elif members:
                totals = [x[row, column].item() for row in members]
                best = max(totals) if reduce == "amax" else min(totals)
                if start is not None and (start > best if reduce == "amax" else start < best):
                    continue
                won = [v for v, t in zip(values, totals, strict=True) if t == best]
                out[place, column] = won[0] if options.ties == "first" else sum(won) / len(won)
        return out

    return twin


def tied(x: Tensor) -> Tensor:
    """Features with many equal entries, as ReLU makes them."""
    return torch.relu(x)


def pooled(reduce: str, index: Tensor = ROWS, size: int = 5, **kwargs: Any) -> Callable[[Tensor], Tensor]:
    fill = kwargs.pop("fill", 0.0)
    return lambda x: x.new_full((size, 4), fill).scatter_reduce(0, index, x, reduce, **kwargs)


def best_twin(dims: tuple[int, ...], keepdim: bool, largest: bool = True) -> Twin:
    """Both portions at the entries that won in the total."""

    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        x = gamma + beta
        kept = [d for d in range(x.dim()) if d not in dims]
        out = torch.zeros([1 if d in dims else x.shape[d] for d in range(x.dim())], dtype=x.dtype)
        for place in entries(out.shape):
            inside = [i for i in entries(x.shape) if all(i[d] == place[d] for d in kept)]
            best = max(x[i].item() for i in inside) if largest else min(x[i].item() for i in inside)
            won = [gamma[i] for i in inside if x[i].item() == best]
            out[place] = won[0] if options.ties == "first" else sum(won) / len(won)
        return out if keepdim else out.squeeze(dims)

    return twin


def after_relu(twin: Twin) -> Twin:
    """A twin behind a ReLU, which is telescoped by itself."""

    def combined(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        target = telescoped(F.relu)(gamma, beta, options)
        return twin(target, F.relu(gamma + beta) - target, options)

    return combined


def larger_twin(largest: bool) -> Twin:
    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        x, out = gamma + beta, torch.zeros_like(gamma)
        for i, j in entries(x.shape):
            here, there = x[i, j], x[5 - i, j]
            if here == there:
                out[i, j] = gamma[i, j] if options.ties == "first" else (gamma[i, j] + gamma[5 - i, j]) / 2
            else:
                out[i, j] = gamma[i, j] if (here > there) == largest else gamma[5 - i, j]
        return out

    return twin


NO_EVERYTHING = ("total", "nothing", "finite", "one_pass")
AGGREGATION = [
    case("scatter_add", "rows", lambda x: x.new_zeros(5, 4).scatter_add(0, ROWS, x), scatter_twin("sum", ROWS, 5)),
    case("scatter_add", "in place", lambda x: x.new_zeros(5, 4).scatter_add_(0, ROWS, x), scatter_twin("sum", ROWS, 5)),
    case("scatter_add", "any places", lambda x: x.new_zeros(5, 4).scatter_add_(0, SCRAMBLED, x),
         scatter_twin("sum", SCRAMBLED, 5)),
    case("scatter_add", "columns", lambda x: x.new_zeros(6, 4).scatter_add_(1, SCRAMBLED.clamp(max=3), x),
         linear(lambda g: g.new_zeros(6, 4).scatter_add_(1, SCRAMBLED.clamp(max=3), g))),
    case("scatter_add", "onto portions, part of the source", lambda x: x.scatter_add(0, SCRAMBLED[:2], x),
         linear(lambda g: g.scatter_add(0, SCRAMBLED[:2], g))),
    case("scatter_add", "into a part", lambda x: x.new_zeros(7, 5).scatter_add(1, SCRAMBLED[:5], x),
         linear(lambda g: g.new_zeros(7, 5).scatter_add(1, SCRAMBLED[:5], g))),
    case("scatter_add", "numbers", lambda x: x[0, 0].scatter_add(0, torch.tensor(0), x[1, 1]), linear(lambda g: g[0, 0] + g[1, 1])),
    case("index_add", "numbers", lambda x: x[0, 0].index_add(0, torch.tensor([0]), x[1, 1]), linear(lambda g: g[0, 0] + g[1, 1])),
    case("index_add", "rows", lambda x: x.new_zeros(5, 4).index_add_(0, INDEX, x), scatter_twin("sum", ROWS, 5)),
    case("index_add", "onto portions", lambda x: x.index_add(0, INDEX, x, alpha=2),
         linear(lambda g: g.index_add(0, INDEX, g, alpha=2))),
    case("index_add", "vector", lambda x: x[:, 0].new_zeros(5).index_add_(0, INDEX, x[:, 0]),
         linear(lambda g: g[:, 0].new_zeros(5).index_add_(0, INDEX, g[:, 0]))),
    case("scatter_reduce", "sum", pooled("sum"), scatter_twin("sum", ROWS, 5, 0.0)),
    case("scatter_reduce", "sum into a part", lambda x: x.new_zeros(7, 5).scatter_reduce(1, SCRAMBLED[:5], x, "sum"),
         linear(lambda g: g.new_zeros(7, 5).scatter_add(1, SCRAMBLED[:5], g))),
    case("scatter_reduce", "max into a part", lambda x: x.new_zeros(7, 4).scatter_reduce(0, ROWS[:5, :3], x, "amax", include_self=False)[:5, :3],
         lambda g, b, o: scatter_twin("amax", ROWS[:5, :3], 5)(g[:5, :3], b[:5, :3], o)),
    case("scatter_reduce", "numbers", lambda x: x[0, 0].scatter_reduce(0, torch.tensor(0), x[1, 1], "sum"),
         linear(lambda g: g[0, 0] + g[1, 1])),
    case("scatter_reduce", "mean", pooled("mean", include_self=False), scatter_twin("mean", ROWS, 5)),
    case("scatter_reduce", "mean with the old value", pooled("mean"), scatter_twin("mean", ROWS, 5, 0.0)),
    case("scatter_reduce", "max", pooled("amax", include_self=False), scatter_twin("amax", ROWS, 5)),
    case("scatter_reduce", "max of ties", lambda x: pooled("amax", include_self=False)(tied(x)),
         after_relu(scatter_twin("amax", ROWS, 5))),
    case("scatter_reduce", "max any places", pooled("amax", SCRAMBLED, include_self=False),
         scatter_twin("amax", SCRAMBLED, 5)),
    case("scatter_reduce", "min", pooled("amin", include_self=False), scatter_twin("amin", ROWS, 5)),
    case("scatter_reduce", "max with the old value", pooled("amax", fill=0.1), scatter_twin("amax", ROWS, 5, 0.1),
         laws=NO_EVERYTHING),
    case("scatter_reduce", "max onto portions", lambda x: x.scatter_reduce(0, SCRAMBLED.clamp(max=3), 3 * x, "amax"),
         lambda g, b, o: onto_portions_twin(g, b, o)),  # noqa: PLW0108 (defined below)
    case("extreme", "max over rows", lambda x: x.max(0).values, best_twin((0,), False)),
    case("extreme", "max keepdim", lambda x: x.max(1, keepdim=True)[0], best_twin((1,), True)),
    case("extreme", "max of all", lambda x: x.max(), lambda g, b, o: best_twin((0, 1), False)(g, b, o).reshape(())),
    case("extreme", "amax", lambda x: x.amax((0, 1)), lambda g, b, o: best_twin((0, 1), False)(g, b, o).reshape(())),
    case("extreme", "amax of ties", lambda x: tied(x).amax(0), after_relu(best_twin((0,), False))),
    case("extreme", "amin of ties", lambda x: tied(x).amin(-2, keepdim=True), after_relu(best_twin((0,), True, False))),
    case("extreme", "of a number", lambda x: x[0, 0].amax(0, keepdim=True) + x[0, 1].max(-1).values, linear(lambda g: g[0, 0] + g[0, 1])),
    case("extreme", "min", lambda x: x.min(1).values, best_twin((1,), False, False)),
    case("maximum", "of two", lambda x: torch.maximum(x, x.flip(0)), larger_twin(True)),
    case("maximum", "fmax", lambda x: torch.fmax(x, x.flip(0)), larger_twin(True)),
    case("maximum", "fmin", lambda x: torch.fmin(x, x.flip(0)), larger_twin(False)),
    case("maximum", "of ties", lambda x: torch.maximum(tied(x), tied(x).flip(0)), after_relu(larger_twin(True))),
    case("maximum", "minimum", lambda x: torch.minimum(x, x.flip(0)), larger_twin(False)),
    case("segment_reduce", "sum", lambda x: torch.segment_reduce(x, "sum", lengths=torch.tensor([2, 0, 4])),
         lambda g, b, o: torch.stack([g[:2].sum(0), g[:0].sum(0), g[2:].sum(0)])),
    case("segment_reduce", "max", lambda x: torch.segment_reduce(x, "max", lengths=torch.tensor([2, 4])),
         lambda g, b, o: torch.stack([best_twin((0,), False)(g[:2], b[:2], o), best_twin((0,), False)(g[2:], b[2:], o)])),
    case("segment_reduce", "prod from two on", lambda x: torch.segment_reduce(x, "prod", lengths=torch.tensor([2, 4]), initial=2.0),
         lambda g, b, o: torch.stack([2 * g[:2].prod(0), 2 * g[2:].prod(0)])),
    case("segment_reduce", "mean by offsets", lambda x: torch.segment_reduce(x, "mean", offsets=torch.tensor([0, 2, 6])),
         lambda g, b, o: torch.stack([g[:2].mean(0), g[2:].mean(0)])),
]  # fmt: skip


def onto_portions_twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
    index, x, out = SCRAMBLED.clamp(max=3), gamma + beta, torch.zeros_like(gamma)
    for place, column in entries(x.shape):
        rivals = [(x[place, column].item(), gamma[place, column])]
        rivals += [(3 * x[r, column].item(), 3 * gamma[r, column]) for r in range(6) if index[r, column] == place]
        best = max(total for total, _ in rivals)
        out[place, column] = next(target for total, target in rivals if total == best)
    return out


def written(x: Tensor, write: Callable[[Tensor, Tensor], Any]) -> Tensor:
    """A buffer that portions are written into."""
    out = x.new_zeros(6, 4)
    write(out, x)
    return out


def halves(x: Tensor) -> Tensor:
    """Complex numbers of which x has the real and the imaginary parts."""
    return torch.view_as_complex(x.view(6, 2, 2))


def spectral_filter(x: Tensor) -> Tensor:
    return torch.fft.irfft(torch.fft.rfft(x, dim=0) * torch.linspace(1, 2, 4)[:, None].double(), n=6, dim=0)


_SHAPES: dict[str, dict[str, Callable[[Tensor], Any]]] = {
    "structural": {
        "transpose": lambda x: x.transpose(0, -1), "unsqueeze": lambda x: x.unsqueeze(1), "select": lambda x: x[:, 2],
        "slice": lambda x: x[1:5:2], "slice columns": lambda x: x[..., 1:], "split": lambda x: x.split(2, 1)[1],
        "split sizes": lambda x: x.split([1, 5])[1], "unbind": lambda x: x.unbind(0)[3], "chunk": lambda x: x.chunk(2)[1],
        "squeeze": lambda x: x.view(6, 1, 4).squeeze(1), "squeeze several": lambda x: x.view(1, 6, 1, 4).squeeze((0, 2)),
        "diagonal": lambda x: x.diagonal(1), "unfold": lambda x: x.unfold(0, 3, 2), "flip": lambda x: x.flip(0, 1),
        "cumsum": lambda x: x.cumsum(0), "clone": lambda x: x.clone(), "detach": lambda x: x.detach(),
        "neg": lambda x: -x, "tril": lambda x: x.tril(), "triu": lambda x: x.triu(1),
        "contiguous": lambda x: x.t().contiguous(), "diag_embed": torch.diag_embed, "rot90": lambda x: x.rot90(),
        "fft": spectral_filter, "fft there and back": lambda x: torch.fft.ifft(torch.fft.fft(x, dim=0), dim=0).real,
        "complex": lambda x: torch.view_as_real(halves(x) * 2j), "imaginary": lambda x: halves(x).imag,
        "conjugate": lambda x: torch.view_as_real(torch.conj_physical(halves(x))),
        "unsafe_split": lambda x: torch.unsafe_split(x, 2, 1)[1], "narrow_copy": lambda x: torch.narrow_copy(x, 0, 1, 3),
        "select_copy": lambda x: torch.select_copy(x, 1, -2), "unsqueeze_copy": lambda x: torch.unsqueeze_copy(x, -1),
        "slice_copy": lambda x: torch.slice_copy(x, 1, 1, 3), "detach_copy": torch.detach_copy, "alias": aten.alias, "lift_fresh": aten.lift_fresh,
        "flip of nothing": lambda x: x.flip(()), "squeeze of nothing": lambda x: x.view(6, 1, 4).squeeze(()),
        "diff": lambda x: x.diff(dim=0, prepend=x[2:3]),
        "cumsum of a number": lambda x: x[0, 0].cumsum(0), "transpose of a number": lambda x: x[0, 0].transpose(0, -1),
        "squeeze of a number": lambda x: x[0, 0].squeeze(0), "unfold of a number": lambda x: x[0, 0].unfold(0, 1, 1),
        "transpose_": lambda x: x.clone().transpose_(0, 1), "squeeze_": lambda x: x.clone().view(6, 1, 4).squeeze_(1),
        "unsqueeze_": lambda x: x.clone().unsqueeze_(0).add_(0),
    },
    "roll": {
        "rows": lambda x: x.roll(2, 0), "both": lambda x: x.roll((1, -1), (0, -1)), "through": lambda x: x.roll(3),
        "nothing": lambda x: x[:0].roll(1).sum() + x.sum(), "a number": lambda x: x[0, 0].roll(2),
    },
    "t": {"t": lambda x: x.t(), "t of a vector": lambda x: x[0].t()},
    "squeeze": {"all": lambda x: x.view(1, 6, 1, 4).squeeze()},
    "permute": {"permute": lambda x: x.view(2, 3, 4).permute(2, 0, -2)},
    "view": {
        "flatten": lambda x: x.flatten(), "split rows": lambda x: x.view(2, 3, 4), "merge": lambda x: x.view(2, 3, 4).view(6, 4),
        "heads": lambda x: x.view(-1, 2, 2), "reshape": lambda x: x.t().reshape(8, 3), "vector": lambda x: x[:, 0].view(-1, 1),
        "alias": lambda x: aten._reshape_alias(x, [4, 6], [6, 1]),
        "concat heads": lambda x: x.view(6, 2, 2).view(-1, 4), "rows of one": lambda x: x.view(6, 1, 4),
    },
    "expand": {"expand": lambda x: x[:, :1].expand(6, 3), "new dimension": lambda x: x.expand(2, 6, 4), "keep": lambda x: x.expand(-1, 4)},
    "repeat": {"repeat": lambda x: x.repeat(2, 3), "new dimension": lambda x: x.repeat(2, 1, 1)},
    "to_copy": {"through float32": lambda x: x.to(torch.float32).to(torch.float64), "through complex": lambda x: x.to(torch.complex128).real},
    "concatenate": {
        "cat rows": lambda x: torch.cat([x, x.flip(0)]), "cat columns": lambda x: torch.cat([x, 2 * x], -1),
        "cat columns by number": lambda x: torch.cat([x, 2 * x], 1), "cat vectors": lambda x: torch.cat([x[0], x[:, 1]]),
        "stack": lambda x: torch.stack([x, x.flip(0)], 1), "stack last": lambda x: torch.stack([x, x.flip(0)], -1),
        "stack empty ones": lambda x: torch.cat([torch.stack([x[0, :0], x[1, :0]], 1).flatten(), x[0]]),
        "cat an empty one": lambda x: torch.cat([x.new_zeros(0), x]),
    },
    "reduce_linear": {
        "sum": lambda x: x.sum(), "sum rows": lambda x: x.sum(0), "mean": lambda x: x.mean(-1, keepdim=True),
        "sum both": lambda x: x.sum((0, 1)), "mean all": lambda x: x.mean(), "sum of a number": lambda x: x.sum().sum(),
        "sum of a number over a dimension": lambda x: x[0, 0].sum(0, keepdim=True), "mean over none": lambda x: x.mean(()),
        "in another dtype": lambda x: x.float().sum(1, dtype=torch.float64), "of nothing": lambda x: x[:0].sum(0),
    },
    "index_select": {"repeated": lambda x: x.repeat_interleave(2, 0), "repeated entries": lambda x: x.repeat_interleave(2),
                     "counts": lambda x: x.repeat_interleave(torch.tensor([0, 1, 2, 0, 1, 1]), 0), "rows": lambda x: x.index_select(0, INDEX), "columns": lambda x: x.index_select(-1, INDEX[:3]),
                     "a number": lambda x: x[0, 0].index_select(0, torch.tensor([0]))},
    "index": {
        "rows": lambda x: x[INDEX], "mask of rows": lambda x: x[MASK[:, 0]], "mask": lambda x: x[MASK],
        "two lists": lambda x: x[INDEX, INDEX.clamp(max=3)], "second": lambda x: x[:, INDEX[:3]], "matrix": lambda x: x[INDEX.view(2, 3)],
        "gap": lambda x: x.view(2, 3, 4)[torch.tensor([0, 1, 1]), :, torch.tensor([3, 0, 2])],
    },
    "masked_select": {"entries": lambda x: x.masked_select(MASK), "broadcast": lambda x: x.masked_select(MASK[:, :1])},
    "trace": {"square": lambda x: x[:4].trace()},
    "block_diag": {"blocks": lambda x: torch.block_diag(x[:2], x[2:])},
    "as_strided": {"windows": lambda x: x.as_strided((3, 4), (4, 2), 1), "diagonal": lambda x: (2 * x).fill_diagonal_(0.0)},
    "take": {"entries": lambda x: torch.take(x, SCRAMBLED), "of a row": lambda x: x[1].take(torch.tensor([3, 0]))},
    "masked_scatter": {"onto portions": lambda x: x.masked_scatter(MASK, x.flip(0))},
    "index_fill": {
        "number": lambda x: x.index_fill(0, torch.tensor([1, 3]), 0.0), "portion": lambda x: x.index_fill(1, torch.tensor([2]), x[0, 0]),
        "a number": lambda x: x[0, 0].index_fill(0, torch.tensor([0]), x[1, 1]),
    },
    "gather": {"rows": lambda x: x.gather(0, SCRAMBLED), "columns": lambda x: x.gather(-1, SCRAMBLED.clamp(max=3)),
               "a number": lambda x: x[0, 0].gather(0, torch.zeros(3, dtype=torch.long))},
    "where": {"two portions": lambda x: torch.where(MASK, x, x.flip(0)), "number": lambda x: torch.where(MASK, x, 0.0)},
    "masked_fill": {"zero": lambda x: x.masked_fill(MASK, 0.0), "portion": lambda x: x.masked_fill(MASK, x[0, 0]),
                    "broadcast": lambda x: x[0].masked_fill(MASK, x[0, 0]), "into a plain row": lambda x: x.new_zeros(4).masked_fill(MASK, x[0, 0])},
    "copy": {
        "whole": lambda x: written(x, lambda out, x: out.copy_(x)), "a row": lambda x: written(x, lambda out, x: out[2].copy_(x[0])),
        "broadcast": lambda x: written(x, lambda out, x: out.copy_(x[0])),
        "slices": lambda x: written(x, lambda out, x: out[1:, :2].add_(x[:5, 2:])),
        "overwritten": lambda x: written(x, lambda out, x: (out.add_(x), out[0].zero_())),
    },
    "fill": {
        "zero": lambda x: written(x, lambda out, x: (out.add_(x), out.view(-1)[3:9].zero_())),
        "a portion": lambda x: written(x, lambda out, x: out[1].fill_(x[0, 0])),
        "a number": lambda x: written(x, lambda out, x: (out.add_(x), out.fill_(0.0), out.add_(x))),
    },
    "index_put": {
        "rows": lambda x: written(x, lambda out, x: out.__setitem__(torch.tensor([1, 4]), x[:2])),
        "mask": lambda x: written(x, lambda out, x: out.__setitem__(MASK, x[MASK])),
        "unsafe": lambda x: aten._unsafe_index_put(x, [torch.tensor([1, 4])], x[:2]),
        "accumulate": lambda x: x.new_zeros(6, 4).index_put((INDEX,), x, accumulate=True),
        "columns": lambda x: written(x, lambda out, x: out.__setitem__((slice(None), torch.tensor([0, 2])), x[:, :2])),
        "broadcast": lambda x: written(x, lambda out, x: out.__setitem__(torch.tensor([1, 4]), x[0])),
        "gap": lambda x: written(x, lambda out, x: out.view(2, 3, 4).__setitem__(
            (torch.tensor([0, 1]), slice(None), torch.tensor([3, 0])), x[:2, :3])),
    },
    "index_copy": {
        "rows": lambda x: x.new_zeros(6, 4).index_copy_(0, torch.tensor([1, 4]), x[:2]),
        "onto portions": lambda x: x.index_copy(1, torch.tensor([3]), x[:, :1]),
        "numbers": lambda x: x[0, 0].index_copy(0, torch.tensor([0]), x[1, 1]),
    },
    "embedding": {"a table of portions": lambda x: F.embedding(INDEX.view(2, 3), x)},
    "scatter": {
        "rows": lambda x: x.new_zeros(6, 4).scatter_(0, torch.arange(6).flip(0).view(6, 1).expand(6, 4), x),
        "number": lambda x: x.scatter(0, SCRAMBLED[:1], 0.0),
        "into a number": lambda x: x[0, 0].scatter(0, torch.tensor(0), x[1, 1]),
    },
    "write_slice": {
        "slice": lambda x: torch.slice_scatter(x, x[:2] * 3, 0, 2, 4), "select": lambda x: torch.select_scatter(x, x[:, 0], 1, 3),
    },
    "pad": {"pad": lambda x: F.pad(x, (1, 2, 0, 1))},
}  # fmt: skip
SHAPE = [
    case(rule, name, f, linear(f), laws=(*RuleCase.laws, "linear"))
    for rule, functions in _SHAPES.items()
    for name, f in functions.items()
]

VALUES = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
LOOK = torch.tensor([[True, False, True], [True, True, False], [True, True, True]])


def attend(x: Tensor, key: Tensor | None = None, **kwargs: Any) -> Tensor:
    return F.scaled_dot_product_attention(x[None], (x if key is None else key)[None], x[None], **kwargs)[0]


def dot_product_twin(causal: bool = False, mask: Tensor | None = None, plain: bool = False) -> Twin:
    """Q Kᵀ/√d of the targets, its softmax rule, times the values."""

    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        q, x = gamma.view(2, 3, 4), (gamma + beta).view(2, 3, 4)
        mixed = 0.5 if options.product == "share" else 0.0
        e_gamma = q @ VALUES.mT / 2 if plain else (q @ q.mT + mixed * (q @ (x - q).mT + (x - q) @ q.mT)) / 2
        e_total = x @ (VALUES if plain else x).mT / 2
        hidden = torch.zeros_like(e_total)
        if causal or mask is not None:
            hidden.masked_fill_(~(mask if mask is not None else torch.ones(3, 3, dtype=torch.bool).tril()), -math.inf)
        attention = torch.softmax(e_total + hidden, -1)
        share = e_gamma.abs().exp() / (e_gamma.abs().exp() + (e_total - e_gamma).abs().exp())
        rest = mixed * ((attention * share) @ (x - q) + (attention * (1 - share)) @ q)
        return (attention * share) @ q + rest

    return twin


ATTENTION += [
    case("dot_product_attention", "of itself", lambda x: attend(x.view(2, 3, 4)), dot_product_twin(), laws=NO_EVERYTHING),
    case("dot_product_attention", "causal", lambda x: attend(x.view(2, 3, 4), is_causal=True), dot_product_twin(True),
         laws=NO_EVERYTHING),
    case("dot_product_attention", "mask", lambda x: attend(x.view(2, 3, 4), attn_mask=LOOK), dot_product_twin(mask=LOOK),
         laws=NO_EVERYTHING),
    case("dot_product_attention", "plain keys", lambda x: attend(x.view(2, 3, 4), VALUES), dot_product_twin(plain=True),
         laws=NO_EVERYTHING),
]  # fmt: skip


def normalised_twin(
    dims: tuple[int, ...], shape: tuple[int, ...], weight: Tensor, bias: Tensor, eps: float = 1e-5
) -> Twin:
    """(γ − mean γ)·w / σ(x), and the offset as a bias."""

    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        g, b = gamma.reshape(shape), beta.reshape(shape)
        sigma = ((g + b).var(dims, correction=0, keepdim=True) + eps).sqrt()
        g, b = ((p - p.mean(dims, keepdim=True)) / sigma * weight for p in (g, b))
        return with_bias(g, b, bias, options)

    return twin


def rms_twin(gamma: Tensor, beta: Tensor, _: Options) -> Tensor:
    x, out = gamma + beta, torch.zeros_like(gamma)
    for i, j in entries(x.shape):
        out[i, j] = gamma[i, j] / math.sqrt((x[i] ** 2).mean() + 1e-6) * SLOPES[j]
    return out


ONE, ZERO = torch.ones(1).double(), torch.zeros(1).double()
NORMALISATION += [
    case("layer_norm", "affine", lambda x: F.layer_norm(x, (4,), SLOPES, B4), normalised_twin((1,), (6, 4), SLOPES, B4)),
    case("layer_norm", "not affine", lambda x: F.layer_norm(x, (6, 4)), normalised_twin((0, 1), (6, 4), ONE, ZERO)),
    case("group_norm", "affine", lambda x: F.group_norm(x, 2, SLOPES, B4),
         lambda g, b, o: normalised_twin((2,), (6, 2, 2), SLOPES.view(2, 2), B4.view(2, 2))(g, b, o).view(6, 4)),
    case("batch_norm", "of the batch", lambda x: F.batch_norm(x, None, None, SLOPES, B4, training=True),
         normalised_twin((0,), (6, 4), SLOPES, B4)),
    case("batch_norm", "instance norm", lambda x: F.instance_norm(x.t().unsqueeze(0)),
         lambda g, b, o: normalised_twin((0,), (6, 4), ONE, ZERO)(g, b, o).t().unsqueeze(0)),
    case("rms_norm", "weight", lambda x: F.rms_norm(x, (4,), SLOPES, 1e-6), rms_twin),
]  # fmt: skip

NORM_EDGES = torch.tensor([[0, 1, 2, 2, 0, 3], [1, 2, 0, 2, 2, 1]])


def degree_twin(loops: bool) -> Twin:
    def twin(gamma: Tensor, beta: Tensor, _: Options) -> Tensor:
        """w / √(d_i d_j) with the degrees of the total; an own self-loop moves to the place of the added one."""
        edges = [
            (u, v, (gamma + beta)[n, 0].item(), gamma[n, 0].item()) for n, (u, v) in enumerate(NORM_EDGES.t().tolist())
        ]
        if loops:
            kept = {u: (w, g) for u, v, w, g in edges if u == v}
            edges = [edge for edge in edges if edge[0] != edge[1]]
            edges += [(v, v, *kept.get(v, (1.0, 0.0))) for v in range(4)]
        degree = [sum(w for _, end, w, _ in edges if end == v) for v in range(4)]
        scale = [d**-0.5 if d > 0 else 0.0 for d in degree]
        return torch.tensor([g * scale[u] * scale[v] for u, v, _, g in edges], dtype=gamma.dtype)

    return twin


NORMALISATION += [
    case("degree_norm", "added self-loops", lambda x: gcn_norm(NORM_EDGES, x[:, 0], 4)[1], degree_twin(True),
         laws=("total", "nothing", "finite", "one_pass"), positive=True),
    case("degree_norm", "no self-loops", lambda x: gcn_norm(NORM_EDGES, x[:, 0], 4, add_self_loops=False)[1], degree_twin(False),
         positive=True),
]  # fmt: skip


def glu_twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
    gate = telescoped(torch.sigmoid)(gamma[:, 2:], beta[:, 2:], options)
    rest = torch.sigmoid(gamma[:, 2:] + beta[:, 2:]) - gate
    mixed = 0.5 if options.product == "share" else 0.0
    return gamma[:, :2] * gate + mixed * (gamma[:, :2] * rest + beta[:, :2] * gate)


PRODUCT += [
    case("cross", "of two portions", lambda x: torch.linalg.cross(x[:, :3], x[:, 1:]),
         bilinear(lambda p, q: torch.linalg.cross(p[:, :3], q[:, 1:]))),
    case("cross", "with a constant", lambda x: torch.linalg.cross(X2[:, :3], x[:, 1:]),
         linear(lambda g: torch.linalg.cross(X2[:, :3], g[:, 1:]))),
    case("lerp", "plain weight", lambda x: torch.lerp(x, x.flip(0), 0.3), linear(lambda g: 0.7 * g + 0.3 * g.flip(0))),
    case("lerp", "towards a constant", lambda x: torch.lerp(x, X2, 0.3), lambda g, b, o: lerp_twin(g, b, o)),  # noqa: PLW0108 (defined below)
    case("lerp", "plain ends", lambda x: torch.lerp(X2, 3 * X2, x), lambda g, b, o: with_bias(2 * g * X2, 2 * b * X2, X2, o)),
    case("lerp", "weight of portions", lambda x: torch.lerp(x, x.flip(0), x[0].expand(6, 4)),
         lambda g, b, o: g + bilinear(lambda p, q: (p.flip(0) - p) * q[0])(g, b, o)),
    case("glu", "gate", F.glu, glu_twin),
    case("xlogy", "of a constant", lambda x: torch.xlogy(x, X2.abs() + 1), linear(lambda g: g * (X2.abs() + 1).log())),
    case("xlogy", "by a constant", lambda x: torch.xlogy(X2, x), lambda g, b, o: X2 * proportional(torch.log)(g, b, o), positive=True),
    case("xlogy", "by a number", lambda x: torch.xlogy(2.0, x), lambda g, b, o: 2 * proportional(torch.log)(g, b, o), positive=True),
    case("xlogy", "of portions", lambda x: torch.xlogy(x, x), lambda g, b, o: xlogy_twin(g, b, o), positive=True),  # noqa: PLW0108 (defined below)
]  # fmt: skip


def xlogy_twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
    """x·log x, a product of x and its logarithm, which is shared by magnitude."""
    log = proportional(torch.log)(gamma, beta, options)
    rest = (gamma + beta).log() - log
    mixed = (gamma * rest + beta * log) / 2
    return gamma * log + (mixed if options.product == "share" else 0)


def lerp_twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
    """x + 0.3·(c − x), in which the constant is a bias of the difference."""
    return gamma + 0.3 * with_bias(-gamma, -beta, X2, options)


def along(f: Callable[[Tensor], Tensor], at_zero: Any = 0.0) -> Twin:
    """A function of many entries in the order of the telescoping sum."""

    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        first, last = f(gamma) - at_zero, f(gamma + beta) - f(beta)
        target = ordered(first, last, options)
        return with_bias(
            target, f(gamma + beta) - at_zero - target, torch.as_tensor(at_zero, dtype=torch.float64), options
        )

    return twin


def ranked_twin(choose: Callable[[Tensor], Tensor]) -> Twin:
    """Both portions where the order of the totals put them."""
    return lambda g, b, o: g.gather(0, choose(g + b))


def _variance(x: Tensor) -> Tensor:
    return ((x - x.mean(1, keepdim=True)) ** 2).sum(1).div(3)


STATISTICS = [
    case("statistic", "norm", lambda x: x.norm(dim=-1, keepdim=True), along(lambda t: (t**2).sum(1, keepdim=True).sqrt())),
    case("statistic", "norm of all", torch.linalg.vector_norm, along(lambda t: (t**2).sum().sqrt())),
    case("statistic", "norm 1", lambda x: x.norm(p=1, dim=0), along(lambda t: t.abs().sum(0))),
    case("statistic", "std", lambda x: x.std(1), along(lambda t: _variance(t).sqrt())),
    case("statistic", "var", lambda x: x.var(1), along(_variance)),
    case("statistic", "logsumexp", lambda x: x.logsumexp(1), along(lambda t: t.exp().sum(1).log(), math.log(4))),
    case("statistic", "prod", lambda x: x.prod(1), along(lambda t: t[:, 0] * t[:, 1] * t[:, 2] * t[:, 3])),
    case("statistic", "norm of a number", lambda x: torch.linalg.vector_norm(x[0, 0]) + x[0, 1].norm(dim=0), along(lambda t: t[0, 0].abs() + t[0, 1].abs())),
    case("statistic", "logsumexp of a number", lambda x: x[0, 0].logsumexp(0, True), linear(lambda g: g[0, 0])),
    case("statistic", "logcumsumexp", lambda x: x.logcumsumexp(1), along(lambda t: t.exp().cumsum(1).log(), torch.arange(1, 5).double().log())),
    case("product", "prod of nothing", lambda x: x[:0].prod() + x[0], linear(lambda g: g[0]), laws=NO_EVERYTHING),
    case("product", "prod in another dtype", lambda x: x[:2].float().prod(dtype=torch.float64),
         lambda g, b, o: torch.tensor(math.prod(g[:2].float().flatten().tolist())).double()),
    case("product", "prod of all", lambda x: x[:2].prod(),
         lambda g, b, o: torch.tensor(math.prod(g[:2].flatten().tolist())).double()),
    case("var_mean", "variance", lambda x: torch.var_mean(x, 1)[0], along(_variance)),
    case("var_mean", "mean", lambda x: torch.var_mean(x, 1)[1], linear(lambda g: g.sum(1) / 4)),
    case("distance", "cdist", lambda x: torch.cdist(x, x[:2]),
         along(lambda t: ((t[:, None] - t[None, :2]) ** 2).sum(-1).sqrt())),
    case("distance", "atan2", lambda x: torch.atan2(x[:, 0], x[:, 1]), along(lambda t: torch.atan2(t[:, 0] + 0.0, t[:, 1] + 0.0))),
    case("distance", "hypot", lambda x: torch.hypot(x[:, 0], x[:, 1]), along(lambda t: (t[:, 0]**2 + t[:, 1]**2).sqrt())),
    case("distance", "logaddexp", lambda x: torch.logaddexp(x[:, 0], x[:, 1]),
         along(lambda t: (t[:, 0].exp() + t[:, 1].exp()).log(), math.log(2))),
    case("distance", "logaddexp2", lambda x: torch.logaddexp2(x[:, 0], x[:, 1]),
         along(lambda t: (2 ** t[:, 0] + 2 ** t[:, 1]).log2(), 1.0)),
    case("distance", "logaddexp with many constants", lambda x: torch.logaddexp(x[0, 0], X2),
         along(lambda t: (t[0, 0].exp() + X2.exp()).log(), (1 + X2.exp()).log())),
    case("distance", "remainder", lambda x: x % 0.7, along(lambda t: t - 0.7 * (t / 0.7).floor())),
    case("distance", "fmod", lambda x: x.fmod(0.7), along(lambda t: t - 0.7 * (t / 0.7).trunc())),
    case("ranked", "sort", lambda x: x.sort(0).values, ranked_twin(lambda x: x.argsort(0))),
    case("ranked", "topk", lambda x: x.topk(2, 0).values, ranked_twin(lambda x: x.argsort(0, descending=True)[:2])),
    case("ranked", "median", lambda x: x[:, [0, 2]].median(0).values,
         lambda g, b, o: ranked_twin(lambda x: x.argsort(0)[2:3])(g[:, [0, 2]], b[:, [0, 2]], o)[0]),
    case("ranked", "nanmedian", lambda x: x[:, [0, 2]].nanmedian(0, keepdim=True).values,
         lambda g, b, o: ranked_twin(lambda x: x.argsort(0)[2:3])(g[:, [0, 2]], b[:, [0, 2]], o)),
    case("median", "median of all", lambda x: x.median() * X2, lambda g, b, o: g.flatten()[(g + b).flatten().argsort()[(g.numel() - 1) // 2]] * X2),
    case("median", "nanmedian of all", lambda x: x[:, :2].nanmedian(), lambda g, b, o: g[:, :2].flatten()[(g + b)[:, :2].flatten().argsort()[(g[:, :2].numel() - 1) // 2]]),
    case("ranked", "mode", lambda x: x[:, [0, 2]].mode(0).values,
         lambda g, b, o: ranked_twin(lambda x: x.argsort(0)[:1])(g[:, [0, 2]], b[:, [0, 2]], o)[0]),
    case("ranked", "of a number", lambda x: x[0, 0].sort(0).values + x[0, 1].cummax(-1).values, linear(lambda g: g[0, 0] + g[0, 1])),
    case("ranked", "kthvalue", lambda x: x[:, [0, 2]].kthvalue(2, 0, keepdim=True).values,
         lambda g, b, o: ranked_twin(lambda x: x.argsort(0)[1:2])(g[:, [0, 2]], b[:, [0, 2]], o)),
]  # fmt: skip


def product_twin(size: int, onto: bool) -> Twin:
    """The product of the targets of all rows that come together; a place that no row reaches is background."""

    def twin(gamma: Tensor, beta: Tensor, _: Options) -> Tensor:
        out = torch.zeros(size, gamma.shape[1], dtype=gamma.dtype)
        for place, column in entries(out.shape):
            factors = [gamma[row, column].item() for row in range(len(gamma)) if ROWS[row, column] == place]
            factors += [gamma[place, column].item()] if onto else []
            out[place, column] = math.prod(factors) if factors else 0.0
        return out

    return twin


AGGREGATION += [
    case("scatter_reduce", "prod", lambda x: x.new_ones(5, 4).scatter_reduce(0, ROWS, x, "prod"), product_twin(5, False),
         laws=NO_EVERYTHING),
    case("scatter_reduce", "prod onto portions", lambda x: x.scatter_reduce(0, ROWS, x, "prod"), product_twin(6, True)),
]  # fmt: skip

GRID = [
    case("windows", name, f, linear(f), laws=(*RuleCase.laws, "linear"))
    for name, f in {
        "avg_pool1d": lambda x: F.avg_pool1d(x.t()[None], 2), "avg_pool1d unbatched": lambda x: F.avg_pool1d(x, 3, 1),
        "avg_pool2d": lambda x: F.avg_pool2d(x[None], (2, 3), 1), "adaptive": lambda x: F.adaptive_avg_pool1d(x.t()[None], 4),
        "reflection": lambda x: F.pad(x.t()[None], (1, 2), "reflect"), "replication": lambda x: F.pad(x, (1, 1), "replicate"),
        "nearest": lambda x: F.interpolate(x.t()[None], scale_factor=2), "bilinear": lambda x: F.interpolate(x[None, None], (7, 5), mode="bilinear"),
        "avg_pool3d": lambda x: F.avg_pool3d(x.view(1, 1, 2, 3, 4), 2, 1), "adaptive 3d": lambda x: F.adaptive_avg_pool3d(x.view(1, 2, 3, 4), (1, 2, 2)),
        "reflection 2d": lambda x: F.pad(x[None], (1, 2, 3, 0), "reflect"), "replication 2d": lambda x: F.pad(x[None, None], (1, 2, 3, 0), "replicate"),
        "nearest 2d": lambda x: F.interpolate(x[None, None], scale_factor=2), "linear": lambda x: F.interpolate(x.t()[None], 9, mode="linear"),
    }.items()
] + [
    case("max_windows", "max_pool1d", lambda x: F.max_pool1d(x.t()[None], 2, return_indices=False),
         lambda g, b, o: torch.stack([best_twin((0,), False)(g[i:i + 2], b[i:i + 2], Options.paper(ties="first")) for i in (0, 2, 4)], 1)[None]),
    *(case("max_windows", name, f, lambda g, b, o: best_twin((0,), True)(g.view(2, 3, 4), b.view(2, 3, 4), Options.paper(ties="first"))[None])
      for name, f in {"max_pool3d": lambda x: F.max_pool3d(x.view(1, 2, 3, 4), (2, 1, 1)),
                      "adaptive 3d": lambda x: F.adaptive_max_pool3d(x.view(1, 2, 3, 4), (1, 3, 4))}.items()),
    case("max_windows", "adaptive", lambda x: F.adaptive_max_pool1d(x.t()[None], 2),
         lambda g, b, o: torch.stack([best_twin((0,), False)(g[i:i + 3], b[i:i + 3], Options.paper(ties="first")) for i in (0, 3)], 1)[None]),
]  # fmt: skip

W3 = torch.randn(5, 4, 4, generator=generator, dtype=torch.float64)
ADJACENCY = (torch.rand(6, 6, generator=generator) < 0.4).double() * torch.randn(6, 6, generator=generator).double()


def adjacency_rows() -> tuple[Tensor, Tensor, Tensor]:
    target, source = ADJACENCY.nonzero().t()
    return target, source, ADJACENCY[target, source]


def sparse_twin(reduce: str) -> Twin:
    def twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
        target, source, weight = adjacency_rows()
        g, b = (part[source] * weight[:, None] for part in (gamma, beta))
        return scatter_twin(reduce, target[:, None].expand(len(target), 4), 6)(g, b, options)

    return twin


LINEAR += [
    case("trilinear", "bilinear", lambda x: F.bilinear(x, X2, W3), linear(lambda g: torch.einsum("ni,oij,nj->no", g, W3, X2))),
    case("trilinear", "of two portions", lambda x: F.bilinear(x, x.flip(0), W3),
         bilinear(lambda p, q: torch.einsum("ni,oij,nj->no", p, W3, q.flip(0)))),
    case("matmul", "sparse COO", lambda x: torch.sparse.mm(ADJACENCY.to_sparse(), x), linear(lambda g: ADJACENCY @ g)),
    case("matmul", "sparse CSR", lambda x: ADJACENCY.to_sparse_csr() @ x, linear(lambda g: ADJACENCY @ g)),
    case("affine", "sparse.addmm", lambda x: torch.sparse.addmm(X2, ADJACENCY.to_sparse(), x),
         lambda g, b, o: with_bias(ADJACENCY @ g, ADJACENCY @ b, X2, o)),
]  # fmt: skip
AGGREGATION += [
    case("sparse_reduce", "max by its other name", lambda x: torch.sparse.mm(ADJACENCY.to_sparse_csr(), x, "max"), sparse_twin("amax")),
    case("sparse_reduce", "mean", lambda x: torch.sparse.mm(ADJACENCY.to_sparse_csr(), x, "mean"), sparse_twin("mean")),
    case("sparse_reduce", "max", lambda x: torch.sparse.mm(ADJACENCY.to_sparse_csr(), x, "amax"), sparse_twin("amax")),
    case("index_reduce", "max", lambda x: x.new_zeros(5, 4).index_reduce(0, INDEX, x, "amax", include_self=False),
         scatter_twin("amax", ROWS, 5)),
    case("index_reduce", "mean", lambda x: x.new_zeros(5, 4).index_reduce(0, INDEX, x, "mean", include_self=False),
         scatter_twin("mean", ROWS, 5)),
]  # fmt: skip
ACTIVATION += [
    case("rrelu", "mean slope", lambda x: F.rrelu(x, 0.1, 0.3), telescoped(lambda t: F.leaky_relu(t, 0.2))),
    case("activation", "nan_to_num", torch.nan_to_num, telescoped(lambda t: t)),
]  # fmt: skip


def cdist_twin(gamma: Tensor, beta: Tensor, options: Options) -> Tensor:
    """‖γ − c‖ − ‖c‖ in the order of the telescoping sum, and ‖c‖ as a bias."""
    distance = lambda t: torch.stack([(t - c).pow(2).sum(1).sqrt() for c in X2[:2]], 1)
    zero = distance(torch.zeros_like(gamma))
    first, last = distance(gamma) - zero, distance(gamma + beta) - distance(beta)
    target = ordered(first, last, options)
    return with_bias(target, distance(gamma + beta) - zero - target, zero, options)


STATISTICS += [
    case("statistic", "cumprod", lambda x: x.cumprod(1), along(lambda t: torch.stack([t[:, : i + 1].prod(1) for i in range(4)], 1))),
    case("statistic", "old norm", lambda x: torch.ops.aten.norm.ScalarOpt_dim(x, 2, [1], True), along(lambda t: (t**2).sum(1, keepdim=True).sqrt())),
    case("var_mean", "deviation", lambda x: torch.std_mean(x, 1)[0], along(lambda t: _variance(t).sqrt())),
    case("ranked", "cummax", lambda x: x[:, [0, 2]].cummax(0).values, lambda g, b, o: torch.stack(
        [ranked_twin(lambda x: x.argmax(0, keepdim=True))(g[: i + 1, [0, 2]], b[: i + 1, [0, 2]], o)[0] for i in range(6)])),
    case("ranked", "cummin", lambda x: x[:, [0, 2]].cummin(0).values, lambda g, b, o: torch.stack(
        [ranked_twin(lambda x: x.argmin(0, keepdim=True))(g[: i + 1, [0, 2]], b[: i + 1, [0, 2]], o)[0] for i in range(6)])),
    case("distance", "cdist of many rows", lambda x: torch.cdist(x, X2[:2], compute_mode="use_mm_for_euclid_dist"), cdist_twin),
    case("distance", "cdist to constants", lambda x: torch.cdist(x, X2[:2]), cdist_twin),
]  # fmt: skip

# Calls along one dimension that may or may not be kept: linear ones, and those whose target of all nodes is everything.
Along = Callable[[Tensor, int, bool], Tensor]
LINEAR_ALONG: dict[str, Along] = {
    "sum": lambda t, d, keep: t.sum(d, keepdim=keep),
    "mean": lambda t, d, keep: t.mean(d, keepdim=keep),
    "sum over a list": lambda t, d, keep: t.sum([d], keepdim=keep),
    "sum over no list": lambda t, d, keep: t.sum([], keepdim=keep),
    "cumsum": lambda t, d, keep: t.cumsum(d),
    "flip": lambda t, d, keep: t.flip(d) if keep else t.flip(()),
    "roll": lambda t, d, keep: t.roll(2, d) if keep else t.roll(2),
    "transpose": lambda t, d, keep: t.transpose(d, -1) if keep else t.movedim(d, 0),
    "squeeze": lambda t, d, keep: t.squeeze(d) if keep else t.squeeze(),
    "unsqueeze": lambda t, d, keep: t.unsqueeze(d),
    "select": lambda t, d, keep: t.select(d, -1 if keep else 0),
    "slice": lambda t, d, keep: t.narrow(d, 0, 1) if keep else t[1:],
    "split": lambda t, d, keep: t.split(2, d)[-1] if keep else t.tensor_split(2, d)[0],
    "unbind": lambda t, d, keep: t.unbind(d)[-1],
    "unfold": lambda t, d, keep: t.unfold(d, 1, 1),
    "diagonal": lambda t, d, keep: t.diagonal(d, 0, -1) if keep else t.diag_embed(d),
    "flatten": lambda t, d, keep: t.flatten(d) if keep else t.reshape(-1),
    "expand": lambda t, d, keep: t.expand(2, *t.shape) if keep else t.repeat(2, *[1] * t.dim()),
    "cat": lambda t, d, keep: torch.cat([t, 2 * t], d) if keep else torch.stack([t, 2 * t], d),
    "index_select": lambda t, d, keep: t.index_select(d, torch.tensor([0, 0])),
    "gather": lambda t, d, keep: t.gather(d, torch.zeros(t.shape, dtype=torch.long)),
    "scatter_add": lambda t, d, keep: t.scatter_add(d, torch.zeros(t.shape, dtype=torch.long), t),
    "scatter_mean": lambda t, d, keep: t.scatter_reduce(d, torch.zeros(t.shape, dtype=torch.long), t, "mean", include_self=keep),
    "index_add": lambda t, d, keep: t.index_add(d, torch.zeros(t.shape[d], dtype=torch.long), t),
    "index_fill": lambda t, d, keep: t.index_fill(d, torch.tensor([0]), 0.0),
    "index_copy": lambda t, d, keep: t.index_copy(d, torch.tensor([0]), t.narrow(d, 0, 1)),
    "repeat_interleave": lambda t, d, keep: t.repeat_interleave(2, d) if keep else t.repeat_interleave(2),
    "triangle": lambda t, d, keep: t.tril(d) if keep else t.triu(d),
}  # fmt: skip
WON_ALONG: dict[str, Along] = {
    "amax": lambda t, d, keep: t.amax(d, keepdim=keep),
    "amin of all": lambda t, d, keep: t.amin(keepdim=keep),
    "max": lambda t, d, keep: t.max(d, keepdim=keep).values,
    "min of all": lambda t, d, keep: t.min(),
    "sort": lambda t, d, keep: t.sort(d, descending=keep).values,
    "topk": lambda t, d, keep: t.topk(1, d, largest=keep).values,
    "kthvalue": lambda t, d, keep: t.kthvalue(1, d, keepdim=keep).values,
    "median": lambda t, d, keep: t.median(d, keepdim=keep).values,
    "mode": lambda t, d, keep: t.mode(d, keepdim=keep).values,
    "cummax": lambda t, d, keep: t.cummax(d).values if keep else t.cummin(d).values,
    "norm": lambda t, d, keep: torch.linalg.vector_norm(t, dim=d, keepdim=keep),
    "norm of all": lambda t, d, keep: torch.linalg.vector_norm(t, keepdim=keep),
    "prod": lambda t, d, keep: t.prod(d, keepdim=keep),
    "cumprod": lambda t, d, keep: t.cumprod(d),
}  # fmt: skip


class Sorted(nn.Module):
    """The first k rows of each of two graphs, by their last column."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.pool = SortAggregation(k)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(x, torch.tensor([0, 0, 0, 0, 1, 1]))


def sorted_twin(k: int) -> Twin:
    def twin(gamma: Tensor, beta: Tensor, _: Options) -> Tensor:
        out = torch.zeros(2, k, gamma.shape[1], dtype=gamma.dtype)
        for graph, nodes in enumerate(([0, 1, 2, 3], [4, 5])):
            order = sorted(nodes, key=lambda n: -(gamma + beta)[n, -1].item())
            for place, node in enumerate(order[:k]):
                out[graph, place] = gamma[node]
        return out.reshape(2, -1)

    return twin


SHAPE += [case("sort_aggregation", f"k = {k}", Sorted(k), sorted_twin(k)) for k in (2, 3, 7)]
RULE_CASES = [*LINEAR, *PRODUCT, *ACTIVATION, *ATTENTION, *NORMALISATION, *AGGREGATION, *STATISTICS, *GRID, *SHAPE]
WITHOUT_TWIN = {"lazy_conjugate"}  # refuse, see REFUSED in torch_cases.py
UNMET = {  # operations that no case can meet, and why
    "aten._conj": "its rule only refuses",
}
