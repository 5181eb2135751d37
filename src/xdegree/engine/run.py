"""Runs operations on portions: totals by the operation itself, targets by its rule.

A run is a dispatch mode, so it sees every ATen operation of the thread that entered it, below all Python
aliases and C++ composites. It adopts freshly made buffers, because a model may write portions into them later.
"""

import functools
import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.utils import softmax

from .by_pairs import by_pairs
from .options import Options
from .portions import (
    Alias,
    Later,
    LostPortionsError,
    Messages,
    Portions,
    all_without_buffers,
    carries,
    copy_of,
    finite_target,
    is_buffer,
    is_float,
    leaves,
    mapped,
    place_of,
    portions_in,
    settle,
    share_memory,
    together,
    total_of,
    totals,
    without_buffers,
    zeros,
)
from .process_state import FUSED_KERNELS, OwnDraws, RandomStates, patched
from .registry import (
    FACTORIES,
    FUNCTIONS,
    REFUSED,
    RULES,
    Call,
    Missing,
    MissingRuleError,
    OpSchema,
    Rule,
    aten,
    op_schema,
    operation_rule,
    out_of_place,
    without_out,
)
from .sparse_rows import ActiveRows, SparseRows
from .torch_private import DispatchMode, OpOverload, no_dispatch, without_modes

Watch = Callable[[str, str, Any, Any, Any], None]
"""Sees every rule at work: the module's path, the operation, its arguments, its totals and the targets."""


DEEP = 32
"""Operations that may wait for each other."""


class NeedsDense(Exception):
    """A model writes in place where a sparse target cannot follow; the run must be made again without them."""


class Run(DispatchMode):
    """One pass of a model over K groups.

    A number that overflowed on the way, as in a model that clamps afterwards, can leave NaN in a target. With
    ``careful=True`` what is not finite although the total is goes to the background, operation by operation.

    What an operation without a rule gives has a total but no known target, and so has all that is computed from it;
    only the output that is asked for must not come from one (`check`): side losses and choices need no rules.

    Python numbers, lists and arrays that the model takes from portions are its own, as branches are, and carry nothing.
    With a ``nudge`` they are changed by so much, which shows whether the output depends on them.

    With ``collect=True`` all operations are noted in ``seen``: with K = 0 groups that surveys a model at the price of
    a plain forward pass.
    """

    def __init__(
        self,
        groups: int,
        options: Options,
        collect: bool = False,
        sparse: bool = True,
        active_rows: ActiveRows | None = None,
        careful: bool = False,
        states: RandomStates | None = None,
        watch: Watch | None = None,
        nudge: float = 0.0,
    ) -> None:
        super().__init__()
        self.nudge = nudge
        self.numbers: dict[str, None] = {}
        """The lines of the model that take Python numbers or arrays from portions."""
        self.careful = careful
        self.watch = watch
        self.active_rows = active_rows
        self.sparse = sparse
        self.groups = groups
        self.options = options
        self.collect = collect
        self.missing: list[Missing] = []
        self.escaped: list[Missing] = []
        """Those whose results left tensors, so that what comes from them is not known."""
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.module = ""
        self.largest = 0
        self.products: set[str] = set()
        """The modules that multiply one portion by another."""
        self.attending: set[str] = set()
        """The modules that take a softmax: their products are attention × value."""
        self._aside = False
        self._draws = OwnDraws(states)
        self._pending: weakref.WeakSet[Messages] = weakref.WeakSet()
        self._waiting: weakref.WeakSet[Later] = weakref.WeakSet()
        self._waits = options.attention == "whole" and not (collect or careful or watch)

    @contextmanager
    def active(self) -> Iterator[Self]:
        """Make this thread's operations go through the run; afterwards everything is as before."""
        # Fused kernels of transformers and recurrent layers hide their operations from the dispatcher.
        redirected = patched([*FUNCTIONS, *REFUSED], self.call_function)
        with torch.no_grad(), FUSED_KERNELS.off(), redirected, self:
            yield self

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For operations that are not the model's own: of rules and of those who watch."""
        outer, self._aside = self._aside, True
        try:
            yield
        finally:
            self._aside = outer

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._aside:
            return func(*args, **kwargs)
        if self.in_place_of:
            args, kwargs = self.stand_in(args), self.stand_in(kwargs)
            types = [type(x) for x in leaves((args, kwargs))]
        schema = op_schema(func)
        if schema.composite and operation_rule(func) is None:  # in inference mode they arrive in one piece
            with self:
                return func.decompose(*args, **kwargs)
        if schema.draws and operation_rule(func) is None:
            self._refuse_dropout(func, args)
        if schema.mutable and self._waiting:
            self._settle_readers(schema, args, kwargs)
        if Portions not in types:
            return self._adopt(schema, self._computed(func, args, kwargs))
        buffers = portions_in(args)
        if kwargs:
            buffers += portions_in(kwargs.values())
        if not any(x.alias.touched for x in buffers):
            return self._plain(func, schema, args, kwargs)
        if schema.carries_nothing:
            return self._adopt(schema, self._computed(func, totals(args), totals(kwargs)))
        return self._on_portions(func, schema, args, kwargs, _missing_in(buffers))

    def as_numbers(self, total: Tensor) -> Tensor:
        """What the model gets where it takes numbers out of a tensor that carries portions."""
        self.numbers.setdefault(_line_of_the_model())
        return total * (1 + self.nudge) + self.nudge if self.nudge and is_float(total) else total

    def _on_portions(
        self, func: OpOverload, schema: OpSchema, args: Any, kwargs: Any, missing: tuple[Missing, ...]
    ) -> Any:
        if func is aten._local_scalar_dense.default:
            return func(self.as_numbers(args[0].total))
        if missing:
            found = operation_rule(out_of_place(func) or func)
            self._note(func, args, kwargs, found)
            if found is None:  # all that is missing is named at once
                missing = (*missing, self._no_rule(func, args, kwargs).missing)
        else:
            try:
                if schema.outs:
                    return self._into_outs(func, schema.outs, args, kwargs)
                if schema.writes_first:
                    return self._in_place(func, args, kwargs)
                return self._out_of_place(func, args, kwargs)
            except _NoRule as found:
                missing = (found.missing,)
        return self._without_target(func, schema, args, kwargs, missing)

    def _without_target(
        self, func: OpOverload, schema: OpSchema, args: Any, kwargs: Any, missing: tuple[Missing, ...]
    ) -> Any:
        """The model's own value of an operation that has no rule, or whose operands come from one that has none."""
        into = [kwargs[name] for name in schema.outs] or ([args[0]] if schema.writes_first else [])
        out = self._computed(func, totals(args), totals(kwargs))
        if (
            not into
            and operation_rule(func) is None
            and all(isinstance(x, Tensor) and not is_float(x) for x in leaves(out))
        ):
            return out  # positions and truth values carry nothing, whatever operator gives them
        if not into:
            return self._unknown_parts(out, missing, args[0] if schema.is_view else None)
        if torch.Tag.inplace_view in func.tags:
            with no_dispatch():
                func(*args, **kwargs)
        for x in into:
            if not isinstance(x, Portions):
                raise MissingRuleError(missing)
            x.alias.touched, x.alias.missing = True, tuple(dict.fromkeys((*x.alias.missing, *missing)))
        return into[0] if len(into) == 1 else tuple(into)

    def _unknown_parts(self, out: Any, missing: tuple[Missing, ...], base: Any = None) -> Any:
        """Mark float tensors as coming from operations without a rule; Python numbers and sparse tensors cannot be."""
        floats = [x for x in leaves(out) if is_float(x)]
        if not floats or any(x.layout != torch.strided for x in floats):
            self.escaped += missing
            if not self.collect:
                raise MissingRuleError(missing)
        own = base.alias if isinstance(base, Portions) and base.alias.missing else None

        def marked(x: Any) -> Any:
            if not is_float(x) or x.layout != torch.strided:
                return x
            alias = own or Alias()
            alias.missing = missing
            return Portions(x, None, self.groups, alias)

        return mapped(marked, out)

    def reaching(self, output: Any) -> list[Missing]:
        """The operations without a rule that an output comes from, in the order in which they were met."""
        found = {*_missing_in(x for x in leaves(output) if isinstance(x, Portions)), *self.escaped}
        return [missing for missing in dict.fromkeys(self.missing) if missing in found]

    def check(self, output: Any) -> None:
        """Raise for operations without a rule that an output comes from."""
        settle(output)
        if found := self.reaching(output):
            raise MissingRuleError(found)

    def _plain(self, func: OpOverload, schema: OpSchema, args: Any, kwargs: Any) -> Any:
        """No portion takes part; views of buffers stay buffers, in-place forms return the buffer itself."""
        out = self._computed(func, totals(args), totals(kwargs))
        if schema.mutable:
            if torch.Tag.inplace_view in func.tags:
                args[0].target = zeros(out, self.groups)
                with no_dispatch():
                    func(*args, **kwargs)
            return args[0] if isinstance(out, Tensor) else out
        made = self._view(func, out, args, kwargs) if schema.is_view else self._adopt(schema, out)
        return self._moved(func, schema, made, args, kwargs)

    def _adopt(self, schema: OpSchema, out: Any) -> Any:
        """Freshly made memory becomes a buffer: the model may write portions into it later.

        Not only ``zeros`` and the like make buffers. An LSTM adds portions in place to what it computed from its
        initial state, which carries none.
        """
        if not schema.makes_memory:
            return out
        if type(out) is Tensor:
            return Portions(out, None, self.groups) if is_buffer(out) else out
        return mapped(lambda x: Portions(x, None, self.groups) if is_buffer(x) else x, out)

    def _view(self, func: OpOverload, out: Any, args: Any, kwargs: Any) -> Any:
        base: Portions = args[0]
        if (
            self.active_rows is not None and not base.alias.touched
        ):  # zeros of all groups and rows are better not written out
            base.alias.loose = True
            return mapped(lambda x: Portions(x, None, self.groups, base.alias) if is_float(x) else x, out)
        target = self._rule(func, out, args, kwargs)
        if any(isinstance(part, SparseRows) for part in leaves(target)):
            base.alias.loose = True
            return together(out, target, base)
        if not base.alias.shared and not share_memory(target, base.target):
            # Rows first is the faster order, groups first the one in which every view of the total is possible.
            base.target = base.target.contiguous()
            target = self._rule(func, out, args, kwargs)
        base.alias.shared = True
        return together(out, target, base)

    def _out_of_place(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        out = self._computed(func, totals(args), totals(kwargs))
        schema = op_schema(func)
        if schema.is_view and isinstance(args[0], Portions):
            made = self._view(func, out, args, kwargs)
        elif schema.scores and self._waits and not kwargs and is_float(out):
            made = Portions(out, self._later(func, out, all_without_buffers(args)))
        else:
            made = self._keep(together(out, self._rule(func, out, args, kwargs), None))
        if schema.squashes:
            return self._squashed(made, args[0])
        return self._moved(func, schema, made, args, kwargs)

    def _later(self, func: OpOverload, out: Tensor, args: Any) -> Later:
        """The target of what may only become attention weights, which are taken as given: made when asked for."""
        module = self.module

        def make() -> Any:
            outer, self.module = self.module, module
            try:
                return self._keep(together(out, self._rule(func, out, args, {}), None)).held
            finally:
                self.module = outer

        later = Later(self.groups, out, (*args, out), make)
        if later.depth > DEEP:
            settle(args)
        self._waiting.add(later)
        return later

    def _settle_readers(self, schema: OpSchema, args: Any, kwargs: Any) -> None:
        """Make the targets that would be made from memory that is about to change."""
        written = [kwargs[name] for name in schema.outs] if schema.outs else args
        places = {place_of(x) for x in leaves(written) if isinstance(x, Tensor)}
        for later in list(self._waiting):
            if later.reads(places):
                later.made()

    def _moved(self, func: OpOverload, schema: OpSchema, made: Any, args: Any, kwargs: Any) -> Any:
        """Move what a softmax was applied to as its result was moved, also behind a logarithm or the like."""
        if not isinstance(made, Portions) or not args:
            return made
        if func.overloadpacket in (aten.cat, aten.stack):
            before = [x.before if isinstance(x, Portions) else None for x in args[0]]
            if all(x is not None for x in before):
                made.before = self._out_of_place(func, (before, *args[1:]), kwargs)
        elif isinstance(args[0], Portions) and args[0].before is not None:
            if schema.moves:
                made.before = self._out_of_place(func, (args[0].before, *args[1:]), kwargs)
            elif func is aten.rsub.Scalar and args[1] == 1:  # 1 − σ(z) is σ(−z)
                made.before = self._out_of_place(aten.neg.default, (args[0].before,), {})
            elif schema.increases or (not carries(made) and _shifts_or_scales(func, *args[1:])):
                made.before = args[0].before
        elif func.overloadpacket is aten.exp:
            made.exponent = args[0].unshifted if isinstance(args[0], Portions) else None
        elif func.overloadpacket in (aten.sub, aten.div) and _is_one_per_row(*args[:2]):
            self._written_out(func, made, args[0])
        return made

    def _written_out(self, func: OpOverload, made: Portions, x: Portions) -> None:
        """Find z − log Σ exp z and exp z / Σ exp z, written by hand: whatever one number per row made add up to 1."""
        logarithms = func.overloadpacket is aten.sub
        if logarithms:
            made.unshifted = x.unshifted
        with self.aside():
            gap = made.total.logsumexp(-1) if logarithms else made.total.sum(-1) - 1
            rounding = 64 * torch.finfo(gap.dtype).eps * x.total.abs().amax().clamp(min=1)
            if bool((gap.abs() <= rounding).all()):
                made.before = made.unshifted if logarithms else x.exponent

    def _squashed(self, made: Any, before: Any) -> Any:
        """Remember what a softmax or sigmoid was applied to: it may be the last step of the model."""
        first = made[0] if isinstance(made, tuple) else made
        if not isinstance(first, Portions):  # taken as a whole it carries nothing
            first = Portions(first, None, self.groups)
        first.before = before
        return (first, *made[1:]) if isinstance(made, tuple) else first

    def split_softmax(self, out: Any) -> Any:
        """A softmax that is the output, and so no weight, by the paper's rule; attention may be taken as given."""
        found = operation_rule(aten._softmax.default)
        if not isinstance(out, Portions) or out.before is None or carries(out) or found is None:
            return out
        call = Call(aten._softmax.default, out.total, self.groups, replace(self.options, attention="split"))
        with self.aside():
            return together(out.total, found(call, out.before), None)

    def _keep(self, out: Any) -> Any:
        """Remember messages that are not written out, for as long as they live."""
        if isinstance(out, Portions) and out.messages is not None:
            self._pending.add(out.messages)
        return out

    def _into_outs(self, func: OpOverload, outs: tuple[str, ...], args: Any, kwargs: Any) -> Any:
        """``out=``: the operation without it, then a copy; ``sort`` and others have a name for each result."""
        functional, given = without_out(func), [kwargs[name] for name in outs]
        if functional is None:
            raise self._no_rule(func, args, kwargs)
        value = self._out_of_place(functional, args, {k: v for k, v in kwargs.items() if k not in outs})
        values = value if isinstance(value, tuple) else (value,)
        done = [self._copied(into, part) for into, part in zip(given, values, strict=True)]
        return done[0] if len(done) == 1 else tuple(done)

    def _copied(self, into: Any, value: Any) -> Any:
        if isinstance(value, Portions):
            return self._in_place(aten.copy_.default, (into, value), {})
        total_of(into).copy_(value)
        return into

    def _in_place(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """Compute out of place, then copy into both halves, so that views go on sharing memory."""
        functional, into = out_of_place(func), args[0]
        if functional is None:
            raise self._no_rule(func, args, kwargs)
        if not isinstance(into, Portions):
            raise LostPortionsError(
                f"{func} writes portions into a plain tensor of shape {tuple(into.shape)} {self._where()}; it was not"
                " made during the forward pass (a parameter, a buffer of the model, an argument). Clone it first, or"
                " put the model into eval mode if this is a running statistic."
            )
        total = self._computed(functional, totals(args), totals(kwargs))
        target = self._rule(functional, total, args, kwargs)
        if torch.Tag.inplace_view in func.tags:
            return self._reshape(func, args, kwargs, target)
        before = copy_of(into) if op_schema(functional).squashes else None
        self._write(into, target)
        into.total.copy_(total)
        into.before = before
        return into

    def _reshape(self, func: OpOverload, args: Any, kwargs: Any, target: Tensor) -> Any:
        """``transpose_`` and the like write nothing: they give the tensor itself another shape, and so its wrapper."""
        into: Portions = args[0]
        func(into.total, *args[1:], **kwargs)
        into.target = target
        with no_dispatch():
            func(*args, **kwargs)
        return into

    def _write(self, into: Portions, target: Tensor | SparseRows) -> None:
        if into.alias.loose:
            raise NeedsDense
        if into.alias.broken:
            raise LostPortionsError(
                f"a view of shape {tuple(into.shape)} is written in place {self._where()}, but its memory could not be"
                " shared with its base; write into the base or out of place"
            )
        if into.alias.shared:
            for messages in list(self._pending):  # they may read from the memory that is about to change
                messages.dense()
            into.target.copy_(target.dense() if isinstance(target, SparseRows) else target)
        else:
            into.target = target.to(into.dtype)
        into.alias.touched = True

    def _rule(self, func: OpOverload, total: Any, args: Any, kwargs: Any) -> Any:
        """The targets of an operation's outputs, by its rule."""
        found = operation_rule(func)
        self._note(func, args, kwargs, found)
        if found is None:
            raise self._no_rule(func, args, kwargs)
        return self._apply(found, func, total, args, kwargs)

    def _apply(self, found: Rule, op: Any, total: Any, args: Any, kwargs: Any) -> Any:
        target = self._asked(found, op, total, args, kwargs)
        if self.watch is not None:
            with self.aside():
                self.watch(self.module, _name(op), (args, kwargs), total, target)
        return target

    def _asked(self, found: Rule, op: Any, total: Any, args: Any, kwargs: Any) -> Any:
        is_view = isinstance(op, OpOverload) and op_schema(op).is_view
        if not is_view:  # views of buffers are buffers
            args = all_without_buffers(args)
            kwargs = mapped(without_buffers, kwargs) if kwargs else kwargs
        call = Call(op, total, self.groups, self.options)
        if isinstance(op, OpOverload) and op_schema(op).multiplies and _is_of_portions(op, args):
            self.products.add(self.module)
        if (isinstance(op, OpOverload) and op_schema(op).squashes) or op is softmax:
            self.attending.add(self.module)
        try:
            with self.aside():
                if isinstance(op, OpOverload) and _any_by_pairs(args, kwargs):
                    target = by_pairs(found, call, args, kwargs)
                    if target is not None:
                        return target
                target = found(call, *args, **kwargs)
                return finite_target(target, total) if self.careful and not is_view else target
        except NotImplementedError as error:
            raise self._no_rule(op, args, kwargs, str(error)) from None

    def _no_rule(self, func: Any, args: Any, kwargs: Any, reason: str = "") -> "_NoRule":
        self.missing.append(Missing(_name(func), self.module, _shapes(args, kwargs), reason))
        return _NoRule(self.missing[-1])

    def call_function(self, function: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """A Python function that has a rule, or is refused."""
        if function not in REFUSED:
            return self._call_python(RULES[function], function, original, args, kwargs)
        if self._aside or not any(carries(x) for x in leaves((args, kwargs))):
            return self._call_plain(original, args, kwargs)
        missing = (self._no_rule(function, args, kwargs, REFUSED[function]).missing,)
        wanted = args[1] if len(args) > 1 else kwargs.get("inputs", ())
        with self.aside():  # this part of the output must not be asked for, so its values do not matter
            made = tuple(torch.zeros_like(total_of(x)) for x in leaves([wanted]) if isinstance(x, Tensor))
        return self._unknown_parts(made, missing)

    def call_module(self, found: Rule, module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        """A module whose type has a rule; the rule finds the module as ``call.op``."""
        forward = functools.partial(type(module).forward, module)
        return self._call_python(found, module, forward, args, kwargs)

    def _call_python(self, found: Rule, op: Any, original: Any, args: Any, kwargs: Any) -> Any:
        if self.in_place_of and not self._aside:
            args, kwargs = self.stand_in(args), self.stand_in(kwargs)
        values = list(leaves((args, kwargs)))
        if self._aside or not any(isinstance(x, Portions) for x in values):
            return self._call_plain(original, args, kwargs)
        if not any(carries(x) for x in values):
            return original(*args, **kwargs)
        self._note(_name(op), args, kwargs, found)
        with self.aside():
            total = original(*totals(args), **totals(kwargs))
        missing = _missing_in(x for x in values if isinstance(x, Portions))
        if not missing:
            try:
                return together(total, self._apply(found, op, total, args, kwargs), None)
            except _NoRule as none:
                missing = (none.missing,)
        return self._unknown_parts(total, missing)

    def _call_plain(self, original: Any, args: Any, kwargs: Any) -> Any:
        """A function that meets no portions, without a look at its operations; what it makes are buffers."""
        with without_modes():
            out = original(*args, **kwargs)
        if self._aside:
            return out
        own = {id(x) for x in leaves((args, kwargs))}
        return mapped(lambda x: Portions(x, None, self.groups) if is_buffer(x) and id(x) not in own else x, out)

    def _note(self, op: Any, args: Any, kwargs: Any, found: Rule | None) -> None:
        if self.collect:
            self.seen[str(op), self.module, found.__name__ if found else ""] += 1
            sizes = (total_of(x).numel() * x.element_size() for x in leaves((args, kwargs)) if carries(x))
            self.largest = max(self.largest, *sizes, 0)

    def _refuse_dropout(self, func: OpOverload, args: Any) -> None:
        """Entries dropped at random make every pass another model."""
        of_portions = any(carries(x) for x in leaves(args)) and func.overloadpacket not in FACTORIES
        if of_portions or (func.overloadpacket is aten.bernoulli_ and isinstance(args[0], Portions)):
            raise LostPortionsError(
                f"{func} draws random numbers on portions {self._where()}: the model is in training mode or drops"
                " entries always. Call model.eval() first; explanations of a random pass mean nothing."
            )

    def _computed(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """The model's own value of an operation, to the last bit."""
        schema = op_schema(func)
        if schema.draws:
            return self._draws(func, args, kwargs)
        if not schema.by_onednn:
            return func(*args, **kwargs)
        with FUSED_KERNELS.as_before():
            return func(*args, **kwargs)

    def _where(self) -> str:
        return f"in module {self.module!r}" if self.module else "in the model itself"


class _NoRule(Exception):
    """An operation has no rule, or none that applies; what it gives has a total, but no known target."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(str(missing))
        self.missing = missing


def _missing_in(portions: Iterable[Portions]) -> tuple[Missing, ...]:
    """The operations without a rule that some portions come from."""
    return tuple(dict.fromkeys([missing for x in portions for missing in x.alias.missing]))


def _line_of_the_model() -> str:
    """Where the code that is at work stands, below PyTorch and this package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("torch", __name__.split(".")[0]):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _shifts_or_scales(func: OpOverload, other: Any = 0.0, *_: Any) -> bool:
    """Whether an operation adds numbers or multiplies by positive ones, which keeps the order of probabilities.

    Of numbers that depend on the features only those that are the same for all classes: no other probabilities.
    """
    if isinstance(other, Portions) and other.shape[-1:] != (1,):
        return False
    if func.overloadpacket in (aten.add, aten.sub):
        return True
    return func.overloadpacket in (aten.mul, aten.div) and bool(torch.as_tensor(total_of(other)).gt(0).all())


def _is_of_portions(op: OpOverload, args: Any) -> bool:
    """Whether a product has several portions as its factors, or the entries of one."""
    reduced = [one for one in args if isinstance(one, str)]
    return "prod" in reduced or op.overloadpacket is aten.prod or (not reduced and len(portions_in(args)) > 1)


def _is_one_per_row(x: Any, other: Any) -> bool:
    both = isinstance(x, Portions) and isinstance(other, Portions) and carries(other)
    return both and x.dim() == other.dim() > 1 and other.shape[-1] == 1 < x.shape[-1]


def _any_by_pairs(args: Any, kwargs: Any) -> bool:
    return any(x.is_by_pairs for x in portions_in((args, *kwargs.values())))


def _name(op: Any) -> str:
    """An operation as `@rule` takes it; of a Python function or a module type where it is found."""
    if isinstance(op, OpOverload):
        return str(op)
    named = type(op) if isinstance(op, torch.nn.Module) else op
    return f"{named.__module__}.{named.__qualname__}"


def _shapes(args: Any, kwargs: Any) -> str:
    tensors = (x for x in leaves((args, kwargs)) if isinstance(x, Tensor))
    return ", ".join(str(list(x.shape)) for x in tensors)
