"""Each rule against its slow twin, under all options, and against the laws."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rule_cases import LINEAR_ALONG, RULE_CASES, UNMET, WITHOUT_TWIN, WON_ALONG, RuleCase
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket

from xdegree import MissingRuleError, Options, check, decompose
from xdegree.engine.registry import RULES
from xdegree.testing import check_laws

OPTIONS = [
    Options.paper(),
    Options.paper(ties="first"),
    Options.paper(bias="background"),
    Options.paper(activation="both-orders"),
    Options.paper(activation="target-last", bias="background", ties="first"),
    Options.paper(product="share"),
    Options.paper(activation="gate"),
    Options.paper(activation="gate", bias="background", bound="output"),
    Options.paper(activation="both-orders", bound="output"),
    Options.paper(activation="target-last", bias="background", bound="output"),
    Options.paper(bound="output"),
]


def features(case: RuleCase) -> torch.Tensor:
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x[2, 1] = x[3, 1]
    return x.abs() + 0.1 if case.positive else x


def shares() -> torch.Tensor:
    """Single nodes, several, all, none, and shares of single features."""
    generator = torch.Generator().manual_seed(5)
    mask = torch.zeros(6, 6, 4, dtype=torch.float64)
    mask[0, 2], mask[1, :3], mask[2] = 1, 1, 1
    mask[4] = torch.rand(6, 4, generator=generator, dtype=torch.float64)
    mask[5] = (torch.rand(6, 4, generator=generator) < 0.5).double()
    return mask


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_rule_equals_its_slow_twin(case: RuleCase, options: Options) -> None:
    x, mask = features(case), shares()
    d = decompose(case.function, x, groups=mask, options=options)
    for number in range(len(mask)):
        gamma = x * mask[number]
        expected = case.twin(gamma, x - gamma, options)
        torch.testing.assert_close(d.target[number], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [OPTIONS[0], *OPTIONS[6:9]], ids=str)
@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_rule_obeys_the_laws(case: RuleCase, options: Options) -> None:
    laws = [law for law in case.laws if law != "everything" or options.bias == "share"]
    check_laws(case.function, features(case), laws=laws, options=options)


@pytest.mark.filterwarnings("ignore:the model's output is not finite")
@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
@pytest.mark.filterwarnings("ignore:the model.s output is not finite")
def test_rule_makes_no_nan_of_zeros(case: RuleCase) -> None:
    """0/0 is where the authors' code gives NaN."""
    x = torch.zeros(6, 4, dtype=torch.float64)
    d = decompose(case.function, x, groups=[[0], [1, 2], [], range(6)], options=Options.paper())
    assert bool((d.target.isfinite() | ~d.total.isfinite()).all())


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_rule_takes_no_groups_at_all(case: RuleCase) -> None:
    """That is how `check` surveys a model."""
    assert check(case.function, features(case)).ok


W64 = torch.tensor([0.5, -1, 2, 3], dtype=torch.float64)
PROMOTED: dict[str, Callable[[Tensor], Tensor]] = {
    "constant added": lambda x: x + W64,
    "constant added to": lambda x: W64 - x,
    "factor": lambda x: x * W64,
    "factor of each message": lambda x: x.index_select(0, torch.tensor([0, 2, 1])) * W64[:3, None],
    "sum": lambda x: x + x.double(),
    "product": lambda x: x * x.double(),
    "a precise number": lambda x: x * W64[0] + x[0, 0].double() * x + x[0, 0].double(),
    "maximum": lambda x: torch.maximum(x, x.double().flip(0)),
    "batch norm": lambda x: F.batch_norm(x, W64[:4].float(), W64.abs().float()),
    "layer norm": lambda x: F.layer_norm(x, (4,), W64.float(), W64.float()),
    "mean": lambda x: x.mean(0, dtype=torch.float64),
    "prod": lambda x: x.prod(dtype=torch.float64),
    "norm": lambda x: torch.linalg.vector_norm(x, dtype=torch.float64),
    "softmax": lambda x: x.log_softmax(1, dtype=torch.float64),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", PROMOTED)
def test_targets_have_the_dtype_of_their_total(name: str, dtype: torch.dtype) -> None:
    """Wherever an operand or an argument is more precise than the features."""
    x = features(RULE_CASES[0]).to(dtype)
    d = decompose(PROMOTED[name], x, groups=[[], [1], range(6)])
    assert d.target.dtype == d.total.dtype
    assert torch.equal(d.total, PROMOTED[name](x))
    assert not d.target[0].any()
    torch.testing.assert_close(d.target[2], d.total, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_other_values_are_no_ties_in_half_precision(dtype: torch.dtype) -> None:
    x = torch.tensor([[1.0], [0.97], [1.0], [0.9]], dtype=dtype)
    d = decompose(lambda x: x.amax(0), x, groups=[[0], [1], [2], [3]])
    assert d.target.flatten().tolist() == [0.5, 0, 0.5, 0]


@given(
    st.sampled_from([*LINEAR_ALONG, *WON_ALONG]),
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(-3, 2),
    st.booleans(),
)
@settings(max_examples=600, deadline=None, derandomize=True)
def test_any_shape_along_any_dimension(name: str, shape: list[int], dim: int, keep: bool) -> None:
    """Numbers, empty tensors and dimensions from the end too: whatever PyTorch takes, the rules take."""
    assume(
        -max(1, len(shape)) <= dim < max(1, len(shape))
    )  # of empty tensors PyTorch takes dimensions that are not there
    x, size = torch.linspace(-1, 2, 28, dtype=torch.float64).sin().unsqueeze(1), math.prod(shape)
    along = (LINEAR_ALONG | WON_ALONG)[name]
    model = lambda x: along(x.flatten()[:size].reshape(shape), dim, keep)
    try:
        own = model(x)
    except (IndexError, RuntimeError, ValueError):
        assume(False)
    assume(bool(own.isfinite().all()))
    masks = torch.stack([torch.zeros(28), torch.ones(28), torch.arange(28) % 2]).double()
    d = decompose(model, x, groups=masks)
    assert torch.equal(d.total, own)
    assert not d.target[0].any()
    if not (name.endswith("prod") and not size):  # 1, which is nobody's
        torch.testing.assert_close(d.target[1], own)
    if name in LINEAR_ALONG:
        torch.testing.assert_close(d.target[2], model(x * masks[2, :, None]))
    assert check(model, x).ok


@pytest.mark.parametrize("bound", [(3, 4, 2), (2, 4, 2), (1, 1), (4, 1)], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_bounds_of_more_dimensions(bound: tuple[int, ...], options: Options) -> None:
    """As many groups as the bound has blocks must not be taken for them."""
    x = torch.tensor([[-1.0, 2], [0.5, -3], [1, 1], [-2, 0.1]], dtype=torch.float64)
    low = torch.randn(bound, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    model = lambda x: torch.clamp(x, min=low)
    d = decompose(model, x, groups=[[0], [1, 2]], options=options)
    alone = [
        decompose(lambda x, row=row: torch.clamp(x, min=row), x, groups=[[0], [1, 2]], options=options)
        for row in low.expand(torch.broadcast_shapes(low.shape, x.shape)).reshape(-1, 4, 2)
    ]
    expected = torch.stack([one.target for one in alone], 1)
    torch.testing.assert_close(d.target.reshape(expected.shape), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("order", ["target-first", "both-orders", "target-last"])
@pytest.mark.parametrize(
    "f",
    [
        F.gelu,
        F.softplus,
        torch.sigmoid,
        F.mish,
        F.elu,
        F.silu,
        F.logsigmoid,
        lambda x: x.log_softmax(1),
        lambda x: x.logsumexp(1),
        lambda x: x.var(1),
        lambda x: x.norm(dim=1),
        lambda x: x.clamp(0.1, 0.7),
    ],
)
def test_nothing_gives_exactly_nothing(f: Callable[[Tensor], Tensor], order: str, dtype: torch.dtype) -> None:
    """Kernels round by the place in memory, so f(γ + β) − f(β) was not always 0 for γ = 0."""
    x = torch.randn(37, 5, generator=torch.Generator().manual_seed(6)).to(dtype)
    d = decompose(f, x, groups=[[], [3], [], [5, 7]], options=Options.paper(activation=order))
    assert not d.target[::2].any()
    assert not d.target[1, torch.arange(37) != 3].any()


OVERFLOWS: dict[str, Callable[[Tensor], Tensor]] = {
    "clamped": lambda x: (x * x).clamp(-1, 1),
    "in the denominator": lambda x: 1 / (1 + x * x),
    "negative": lambda x: (-(x * x)).relu() + 1,
    "squashed": lambda x: torch.tanh(x**3).sum(1),
    "exponential": lambda x: torch.sigmoid(x.exp()),
    "masked": lambda x: (x * x).masked_fill((x * x).isinf(), 0.0),
    "deviation": lambda x: x.var(1).clamp(max=2.0),
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", OVERFLOWS)
def test_what_overflows_on_the_way_leaves_no_nan(name: str, options: Options) -> None:
    """The model's own output is finite, so all targets are."""
    x = torch.tensor([[1e200, -1e200, 3.0], [1.0, -2.0, 0.0], [0.0, 0.0, 1e308]], dtype=torch.float64)
    d = decompose(OVERFLOWS[name], x, groups=[[0], [1], [], [0, 1, 2]], options=options)
    assert bool(d.total.isfinite().all())
    assert bool(d.target.isfinite().all())
    assert not d.target[2].any()


@pytest.mark.parametrize("groups", [[[0]], [range(6)], torch.eye(20)[:, :6].bool()], ids=["one", "all", "sparse"])
def test_bits_are_no_portions(groups: object) -> None:
    x = features(RULE_CASES[0])
    with pytest.raises(MissingRuleError, match=r"view.dtype.*use \.to\(dtype\)"):
        decompose(lambda x: x.view(torch.int64).double() + x, x, groups=groups)


def test_every_rule_has_a_twin() -> None:
    rules = {function.__name__ for function in RULES.values() if function.__module__.startswith("xdegree.")}
    tested = {case.rule for case in RULE_CASES} | WITHOUT_TWIN
    assert not rules - tested, f"add a case with a slow twin to tests/rule_cases.py for {sorted(rules - tested)}"
    assert not tested - rules, f"tests/rule_cases.py has cases of rules that are not there: {sorted(tested - rules)}"


def test_every_operation_is_met_by_a_case() -> None:
    """A twin holds for a rule; that each operation of the rule passes it on rightly is another matter."""
    met = {row.op for case in RULE_CASES for row in check(case.function, features(case)).rows}
    met |= {op.rpartition(".")[0] for op in met}
    own = {key: f for key, f in RULES.items() if f.__module__.startswith("xdegree.")}
    operations = {str(key) for key in own if isinstance(key, OpOverload | OpOverloadPacket)}
    unmet = sorted(operations - met - set(UNMET))
    assert not unmet, f"add a case to tests/rule_cases.py that meets {unmet}, or remove the operation from its rule"
    assert not set(UNMET) & met, f"cases meet {sorted(set(UNMET) & met)}: remove them from UNMET"


@pytest.mark.parametrize("function", dict.fromkeys(RULES.values()), ids=lambda f: f.__name__)
def test_every_rule_says_what_it_does(function: object) -> None:
    said = function.__doc__ or ""
    assert len(said) > 20, f"{function.__name__} needs a docstring: what it does, and which equation of the paper it is"
