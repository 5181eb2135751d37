"""Which rule decomposes which operation, the operations that carry nothing, and what PyTorch's schemas say of each."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from .options import Options
from .portions import Messages
from .sparse_rows import SparseRows
from .torch_private import OpOverload, OpOverloadPacket, is_composite, overload_name, schema_of

aten = torch.ops.aten
Target = Tensor | Messages | SparseRows | tuple[Tensor | None, ...] | None
Rule = Callable[..., Target]
R = TypeVar("R", bound=Rule)


@dataclass(frozen=True)
class Call:
    """What a rule knows beside its arguments."""

    op: Any
    """The operation, Python function or module that is being decomposed."""
    total: Any
    """What it returned for the totals: the model's own value."""
    groups: int
    """K, the number of groups in this pass."""
    options: Options


RULES: dict[Any, Rule] = {}
FUNCTIONS: list[Any] = []
"""The Python functions among the keys, which a run has to intercept."""


REFUSED: dict[Any, str] = {
    torch.autograd.grad: (
        "the model takes a gradient inside of its forward pass (torch.autograd.grad), as for forces; what portions"
        " contribute to a gradient has no rule. Explain the output that the gradient is taken of"
    ),
    torch.autograd.backward: (
        "the model takes a gradient inside of its forward pass (backward()); what portions contribute to a gradient has"
        " no rule. Explain the output that the gradient is taken of"
    ),
}
"""Python functions that are no operations on portions, and why."""

RowWise = Literal["elements", "columns", "weights", "shape"]
ROW_WISE: dict[Any, RowWise] = {}
"""Operations that treat each row of their operands by itself, and how; the same rule then holds for single rows."""


def rule(*keys: Any, rows: RowWise | None = None) -> Callable[[R], R]:
    """Register the decorated function as the rule of one or more keys.

    A key is an ATen operation (``torch.ops.aten.relu``: all its overloads, in-place forms and aliases; or one
    overload, ``torch.ops.aten.add.Tensor``), a Python function (``torch_geometric.utils.softmax``) or a module
    type. Where several fit, the module type wins over the function and the function over the operation: they
    are called in this order.

    The rule is called as ``rule(call, *args, **kwargs)`` with the arguments of the operation, portions among
    them, and returns the target of the output, ``[K, *output]`` (a tuple for several outputs; None if it carries
    nothing). The total needs no rule: the model's own operation computes it.

    Args:
        *keys: what the rule decomposes.
        rows: how the operation treats each row by itself, if it does, so that the rule is asked only for rows that can
            carry something: ``"elements"``, every operand broadcasts against the rows; ``"columns"``, it works along a
            dimension other than that of the rows; ``"weights"``, the first operand with portions has the rows, the
            others are a layer's own; ``"shape"``, it gives rows another shape.
    """
    if not keys:
        raise ValueError("rule() needs at least one key: an ATen operation, a Python function or a module type")

    def register(function: R) -> R:
        for key in keys:
            if not _is_key(key):
                raise TypeError(
                    f"a rule's key is an ATen operation, a Python function or a module type (got {key!r});"
                    " in-place forms follow from the operation they belong to"
                )
            if key in RULES:
                raise ValueError(f"{key} has a rule already: {RULES[key].__module__}.{RULES[key].__name__}")
        RULES.update(dict.fromkeys(keys, function))
        if rows is not None:
            ROW_WISE.update(dict.fromkeys(keys, rows))
        FUNCTIONS.extend(key for key in keys if isinstance(key, FunctionType))
        return function

    return register


def unregister(key: Any) -> None:
    """Forget the rule of a key, for example to put another one in its place."""
    if key not in RULES:
        raise KeyError(f"{key} has no rule")
    del RULES[key]
    ROW_WISE.pop(key, None)
    if key in FUNCTIONS:
        FUNCTIONS.remove(key)


def _is_key(key: Any) -> bool:
    if isinstance(key, OpOverload | OpOverloadPacket):
        name = key.__name__.split(".")[0]
        return name.startswith("__") or not name.endswith("_")
    if isinstance(key, type):
        return issubclass(key, torch.nn.Module)
    return isinstance(key, FunctionType) and not key.__code__.co_freevars


def operation_rule(op: OpOverload) -> Rule | None:
    """The rule of an overload, else of the operation as a whole."""
    return RULES.get(op) or RULES.get(op.overloadpacket)


def module_rule(module: torch.nn.Module) -> Rule | None:
    """The rule of a module's type or of the nearest base class that has one."""
    return next((RULES[base] for base in type(module).__mro__ if base in RULES), None)


# Truth values, positions, shapes and constants. They are taken from the totals: which branch the model took
# and which row won is the model's own decision, not a contribution. This list is the only place that says so.
CARRY_NOTHING = frozenset(
    {
        *(aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge, aten.isnan, aten.isinf, aten.isfinite, aten.equal),
        *(aten.isposinf, aten.isneginf, aten.is_nonzero, aten.sign, aten.sgn, aten.signbit, aten.allclose),
        *(aten.logical_and, aten.logical_or, aten.logical_not, aten.logical_xor, aten.any, aten.all, aten.isclose),
        *(aten.argmax, aten.argmin, aten.argsort, aten.nonzero, aten.bucketize, aten.searchsorted, aten.unique_dim),
        *(aten.floor, aten.ceil, aten.round, aten.trunc, aten.count_nonzero, aten._assert_async, aten.heaviside),
        *(aten.sym_size, aten.sym_numel, aten.sym_stride, aten.is_same_size, aten._nested_tensor_size),
    }
)

SQUASHING = frozenset({aten._softmax, aten._safe_softmax, aten._log_softmax, aten.sigmoid, aten.sigmoid_})
SQUASHING |= {aten.log_sigmoid_forward}
INCREASING = frozenset({aten.log, aten.log2, aten.log10, aten.log1p, aten.exp, aten.clamp, aten.clamp_min})
INCREASING |= {aten.clamp_max, aten.nan_to_num, aten._to_copy, aten.logit}
MOVING = frozenset({aten.clone, aten.index, aten.index_select, aten._unsafe_view, aten.gather, aten.masked_select})
MOVING |= {aten.flip, aten.roll, aten.repeat}
PRODUCTS = frozenset({aten.mul, aten.mm, aten.bmm, aten.addmm, aten.baddbmm, aten.mv, aten.dot, aten.addcmul, aten.div})
PRODUCTS |= {aten.prod, aten.scatter_reduce, aten.index_reduce, aten.segment_reduce}
SCORING = frozenset({aten.mul, aten.add, aten.sub, aten.div, aten.sum, aten.index_select, aten.leaky_relu, aten.tanh})
"""What attention weights are made by, before the softmax."""

# Operations that only take a shape from their argument.
FACTORIES = frozenset(
    {
        *(aten.empty_like, aten.zeros_like, aten.ones_like, aten.full_like),
        *(aten.new_empty, aten.new_zeros, aten.new_ones, aten.new_full, aten.new_empty_strided),
        *(aten.rand_like, aten.randn_like),
    }
)


@dataclass(frozen=True, slots=True)
class OpSchema:
    """What the engine asks at every operation, found once."""

    draws: bool
    """Whether it draws random numbers."""
    is_view: bool
    mutable: bool
    writes_first: bool
    """In-place forms write into their first argument; a few operations only note something in another one."""
    carries_nothing: bool
    makes_memory: bool
    composite: bool
    """Whether PyTorch takes it apart before a run sees it."""
    outs: tuple[str, ...]
    """The arguments that ``out=`` becomes."""
    squashes: bool
    """Whether it turns logits into probabilities, as the last step of many models does."""
    moves: bool
    """Whether it only moves or copies entries of its first argument."""
    increases: bool
    """Whether it changes probabilities entry by entry without changing their order, as a logarithm does."""
    multiplies: bool
    """Whether it is a product, which may be one of two portions."""
    scores: bool
    """Whether it is one of those that attention weights are made by."""
    by_onednn: bool
    """Whether its last bits are other ones without oneDNN, which is off during a run."""


_SCHEMAS: dict[int, OpSchema] = {}
"""By the identity of an operation, which lives as long as the process; its own hash is computed in Python."""


def op_schema(func: OpOverload) -> OpSchema:
    """What is known of an operation."""
    return _SCHEMAS.get(id(func)) or _learn(func)


def _learn(func: OpOverload) -> OpSchema:
    schema = schema_of(func)
    first = schema.arguments[0].alias_info if schema.arguments else None
    is_view = any(r.alias_info is not None for r in schema.returns) and not schema.is_mutable
    found = OpSchema(
        draws=torch.Tag.nondeterministic_seeded in func.tags,
        is_view=is_view,
        mutable=schema.is_mutable,
        writes_first=first is not None and first.is_write,
        carries_nothing=func.overloadpacket in FACTORIES | CARRY_NOTHING,
        makes_memory=not is_view and not schema.is_mutable,
        composite=is_composite(func),
        outs=tuple(argument.name for argument in schema.arguments if argument.is_out),
        squashes=func.overloadpacket in SQUASHING,
        moves=is_view or func.overloadpacket in MOVING,
        increases=func.overloadpacket in INCREASING,
        multiplies=func.overloadpacket in PRODUCTS,
        scores=func.overloadpacket in SCORING,
        by_onednn=func.overloadpacket in (aten.gelu, aten.convolution),
    )
    _SCHEMAS[id(func)] = found
    return found


@functools.cache
def out_of_place(func: OpOverload) -> OpOverload | None:
    """The out-of-place form of an in-place operation: ``aten.relu_.default`` → ``aten.relu.default``."""
    namespace, name = schema_of(func).name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None) if name.endswith("_") else None
    if packet is None:
        return None
    return _overload(packet, _signature(func), overload_name(func))


def without_out(func: OpOverload) -> OpOverload | None:
    """The form that returns its result of one that writes it into ``out=``."""
    return _overload(func.overloadpacket, _signature(func), "")


@functools.cache
def with_generator(func: OpOverload) -> Callable[..., Any] | None:
    """The form of an operation that draws random numbers from a generator; None if there is none."""
    if any(argument.name == "generator" for argument in schema_of(func).arguments):
        return func
    wanted = sorted([*_signature(func), ("generator", "Optional[Generator]")])
    for overload in func.overloadpacket.overloads():
        other = getattr(func.overloadpacket, overload)
        if sorted(_signature(other)) == wanted:
            return other
    fill = {aten.rand_like: Tensor.uniform_, aten.randn_like: Tensor.normal_}.get(func.overloadpacket)
    return (
        None
        if fill is None
        else lambda x, *, generator, **kwargs: fill(aten.empty_like(x, **kwargs), generator=generator)
    )


def _signature(func: OpOverload) -> list[tuple[str, str]]:
    """Names and types: ``pow_.Scalar`` takes a tensor and a number, ``pow.Scalar`` a number and a tensor."""
    return [(argument.name, str(argument.real_type)) for argument in schema_of(func).arguments if not argument.is_out]


def _overload(packet: Any, arguments: list[tuple[str, str]], preferred: str) -> OpOverload | None:
    """The overload of an operation that takes these arguments and no ``out``."""
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    fitting = [o for o in overloads if _signature(o) == arguments and not any(a.is_out for a in schema_of(o).arguments)]
    return next((o for o in fitting if overload_name(o) == preferred), fitting[0] if fitting else None)


@dataclass(frozen=True)
class Missing:
    """An operation without a rule, where it was met and on what."""

    op: str
    """Its name, as ``@rule`` takes it."""
    module: str
    """The path of the module that called it; empty for the model itself."""
    shapes: str
    """What it was called with."""
    reason: str = ""
    """Why a rule that exists does not apply here, in its own words."""

    def __str__(self) -> str:
        where = f"in {self.module!r}" if self.module else "in the model itself"
        return f"{self.op}  {where}  on {self.shapes}" + (f": {self.reason}" if self.reason else "")


class MissingRuleError(NotImplementedError):
    """Operations of the model that portions meet and that no rule decomposes; all of them at once."""

    def __init__(self, missing: Iterable[Missing]) -> None:
        self.missing = tuple(dict.fromkeys(missing))
        lines = [f"  {missing}" for missing in self.missing]
        said = f"no rule for {len(self.missing)} operation(s) that portions pass through:\n" + "\n".join(lines)
        open_to_rules = [missing for missing in self.missing if missing.reason not in REFUSED.values()]
        if open_to_rules:
            namespace, name = open_to_rules[0].op.split(".")[:2]
            said += (
                "\nAdd a rule, for example:\n"
                f"  @xdegree.rule(torch.ops.{namespace}.{name})\n"
                f"  def {name}(call, x, *args):\n"
                "      return ...  # the target of the output, [K, *output]; x.total, x.target, x.background are given"
                "\nor replace the operation in the model. xdegree.check(model, ...) lists all operations."
            )
        super().__init__(said)
