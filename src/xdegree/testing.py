"""The laws that every rule obeys, as functions to run on a rule, an operation or a whole model.

>>> import torch
>>> from xdegree.testing import check_laws
>>> check_laws(torch.relu, torch.randn(5, 3, dtype=torch.float64))

A law takes the model with its arguments, node features first, and raises `BrokenLaw` with what it found.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .attribution.decompose import decompose_source
from .attribution.phantoms import LIMIT, SCALES, largest_of
from .engine.options import Options
from .engine.portions import leaves
from .engine.torch_private import TorchDispatchMode, tree_flatten, tree_map
from .locality.message_flow import watched_pass
from .model_call.call import ModelCall, as_table, find_edge_index, mapped_tensors, model_call
from .model_call.callables import as_module
from .model_call.groups import number_of, some
from .model_call.shadow_model import run_plain
from .model_call.split_points import find_source, located

TOLERANCE = 1e-9
BOUND = LIMIT
"""How many times the largest value of the model a contribution may be, by the law ``"bounded"``."""


class BrokenLaw(AssertionError):
    """A law does not hold."""


@dataclass(frozen=True)
class Case:
    """A model with its arguments, on which laws are checked."""

    model: Callable[..., Any]
    call: ModelCall
    options: Options
    seed: int

    def targets(self, groups: Any, call: ModelCall | None = None) -> list[Tensor]:
        """The targets of all float tensors in the output."""
        return [t for t in tree_flatten(self.decompose(groups, call).target)[0] if t is not None]

    def decompose(self, groups: Any, call: ModelCall | None = None) -> Any:
        """The decomposition for some groups, of these arguments or of others."""
        call = call or self.call
        source = find_source(call)
        return decompose_source(self.model, call, source, groups, (), self.options, None)

    def plain(self, x: Any) -> list[Tensor]:
        """What the model itself gives."""
        found = tree_flatten(run_plain(self.model, self.call, (self.call.x, mapped_tensors(Tensor.clone, x))))[0]
        return [leaf for leaf in found if isinstance(leaf, Tensor) and leaf.is_floating_point()]

    def groups(self, count: int = 5) -> Any:
        """Some groups of random nodes, a mask or a dict of them by type."""
        generator = torch.Generator().manual_seed(self.seed)
        return mapped_tensors(
            lambda x: torch.rand(count, len(x), generator=generator).lt(0.4).to(x.device), self.call.x
        )

    def one_group(self, nodes: bool) -> Any:
        """The group of all nodes, or that of none."""
        return mapped_tensors(lambda x: torch.full((1, len(x)), nodes, device=x.device), self.call.x)


def law_total(case: Case) -> None:
    """The total is the model's own output, bit for bit."""
    total = [t for t in tree_flatten(case.decompose(case.groups()).total)[0] if isinstance(t, Tensor)]
    for got, expected in zip([t for t in total if t.is_floating_point()], case.plain(case.call.x), strict=True):
        if not torch.equal(torch.nan_to_num(got), torch.nan_to_num(expected)):
            raise BrokenLaw(f"the total differs from the model's output by {(got - expected).abs().max():.3g}")


def law_nothing(case: Case) -> None:
    """The empty group contributes 0."""
    for target in case.targets(case.one_group(False)):
        if bool((target != 0).any()):
            raise BrokenLaw(f"the empty group contributes up to {target.abs().max():.3g} instead of 0")


def law_everything(case: Case) -> None:
    """The group of all nodes contributes everything (rules without softmax)."""
    d = case.decompose(case.one_group(True))
    for total, target in zip(tree_flatten(d.total)[0], tree_flatten(d.target)[0], strict=True):
        if target is not None:
            _expect_close(target[0], total, "the group of all nodes does not contribute everything")


def law_finite(case: Case) -> None:
    """No NaN and no infinity that the model itself does not have."""
    d = case.decompose(case.groups())
    for total, target in zip(tree_flatten(d.total)[0], tree_flatten(d.target)[0], strict=True):
        if target is not None and bool((~target.isfinite() & total.isfinite()).any()):
            raise BrokenLaw("the target has NaN or infinity where the model's own value is finite")


def law_one_pass(case: Case) -> None:
    """K answers of one pass equal K single passes."""
    groups = case.groups()
    together = case.targets(groups)
    for number in range(number_of(groups)):
        for target, alone in zip(together, case.targets(some(groups, slice(number, number + 1))), strict=True):
            _expect_close(target[number], alone[0], f"group {number} of one pass differs from a pass of its own")


def law_renumber(case: Case) -> None:
    """Renumbering the nodes renumbers the answer."""
    if not isinstance(case.call.x, Tensor):
        raise BrokenLaw("the law of numbering is about graphs with one type of nodes")
    n, edge_index = len(case.call.x), find_edge_index(case.call)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(case.seed)).to(case.call.x.device)
    place = torch.empty_like(order)
    place[order] = torch.arange(n, device=order.device)

    def renumber(value: Any) -> Any:
        if edge_index is not None and value is edge_index:
            return place[value]
        return value[order] if isinstance(value, Tensor) and value.dim() and len(value) == n else value

    args, kwargs = tree_map(renumber, case.call.args), tree_map(renumber, dict(case.call.kwargs))
    call = replace(case.call, args=args, kwargs=kwargs).of_nodes(order)
    groups = case.groups()
    for target, moved in zip(case.targets(groups), case.targets(groups[:, order], call), strict=True):
        per_node = target.dim() > 1 and target.shape[1] == n
        _expect_close(moved, target[:, order] if per_node else target, "renumbering the nodes changes the answer")


def law_reach(case: Case) -> None:
    """A node outside the receptive field contributes exactly 0."""
    (output, flow), n = watched_pass(case.model, case.call), len(case.call.x)
    edge_index = find_edge_index(case.call)
    if edge_index is None or as_table(output, case.call).level != "node":
        raise BrokenLaw("the law of reach is about models that predict nodes and take an edge_index")
    near = torch.eye(n, dtype=torch.bool, device=edge_index.device)
    sources, targets = edge_index if flow.direction != "target_to_source" else edge_index.flip(0)
    for _ in range(flow.rounds):
        near = _step(near, sources, targets)
    [target] = case.targets([[node] for node in range(n)])
    table = as_table(output, case.call).of(target)
    outside = ~near.t()  # [contributing, explained]
    if bool((table.abs().amax(-1)[outside] != 0).any()):
        raise BrokenLaw("a node outside the receptive field contributes")


def _step(near: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
    """One hop further: a node receives what its sources have received."""
    further = near.clone()
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        further[target] |= near[source]
    return further


def law_linear(case: Case) -> None:
    """A linear model without bias gives exactly the linear contribution, f(diag(m) X)."""
    groups = case.groups()
    for number, target in enumerate(zip(*case.targets(groups), strict=True)):
        share = groups[number].to(case.call.x.dtype)
        masked = case.call.x * share.reshape(-1, *[1] * (case.call.x.dim() - 1))
        for got, expected in zip(target, case.plain(masked), strict=True):
            _expect_close(got, expected, "a linear model does not give the linear contribution")


def law_bounded(case: Case) -> None:
    """No contribution is larger than `BOUND` times the largest value that the model itself computes.

    A property of a model and its options, not of every rule: linear maps may scale what cancels in the total. With
    ``bound="output"`` or ``activation="gate"`` it holds whatever scales the output of units that are 0.
    """
    with _Largest() as own:  # type: ignore[no-untyped-call]
        case.plain(case.call.x)
    groups = torch.cat([torch.eye(len(case.call.x), device=case.call.x.device).bool(), case.groups()])
    size = max(largest_of(target) for target in case.targets(groups))
    largest = max(own.size, largest_of(case.call.x))
    if size > BOUND * largest:
        raise BrokenLaw(f"a contribution of {size:.3g}, but the largest value of the model is {largest:.3g}")


class _Largest(TorchDispatchMode):
    """Notes the largest number that a model computes; what it is given beside the features does not count."""

    size = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in [] if str(func).startswith(SCALES) else tree_flatten(out)[0][:1]:  # norms return scales behind it
            if isinstance(value, Tensor) and value.is_floating_point() and value.layout == torch.strided:
                self.size = max(self.size, largest_of(value))
        return out


Law = Callable[[Case], None]
LAWS: dict[str, Law] = {
    "total": law_total,
    "nothing": law_nothing,
    "everything": law_everything,
    "finite": law_finite,
    "one_pass": law_one_pass,
    "renumber": law_renumber,
    "reach": law_reach,
    "linear": law_linear,
    "bounded": law_bounded,
}
ALWAYS = ("total", "nothing", "everything", "finite", "one_pass")
"""The laws for every operation; the others are about graphs or about linear models and are asked for by name."""


def check_laws(
    model: Callable[..., Any],
    *args: Any,
    laws: Iterable[str] = ALWAYS,
    options: Options | None = None,
    seed: int = 0,
    start: Any = None,
    output: Any = None,
    **kwargs: Any,
) -> None:
    """Check laws on a model or an operation; node features in float64, as equality is claimed.

    Args:
        model: called as ``model(*args, **kwargs)``.
        *args: the model's arguments, node features first.
        laws: names from `LAWS`. A softmax breaks ``"everything"`` by the paper's own rule, and as an output of
            its own ``"nothing"`` too.
        options: the choices among rules that are checked.
        seed: of the random groups.
        start: where the rows of nodes are, as in `explain`.
        output: which part of the output is meant, as in `explain`.
        **kwargs: further arguments of the model.
    """
    own, model = model, as_module(model)
    call = located(model, replace(model_call(own, args, kwargs), part=output), start)
    dtypes = {x.dtype for x in leaves(call.x)}
    if dtypes != {torch.float64}:
        raise TypeError(f"laws claim equality, so they are checked in float64 (got features of {dtypes})")
    case = Case(model, call, Options.of(options), seed)
    for name in laws:
        if name not in LAWS:
            raise ValueError(f"there is no law {name!r}; the laws are {sorted(LAWS)}")
        try:
            LAWS[name](case)
        except BrokenLaw as broken:
            raise BrokenLaw(f"law {name!r}: {broken}") from None


def _expect_close(got: Tensor, expected: Tensor, what: str) -> None:
    """Equal up to rounding, relative to the size of the numbers; infinities of the model are its own business."""
    finite = expected.isfinite()
    off = (got - expected)[finite].abs()
    scale = expected[finite].abs().max().clamp(min=1) if off.numel() else 1
    if off.numel() and not bool((off <= TOLERANCE * scale).all()):
        raise BrokenLaw(f"{what} (off by {off.max():.3g})")
