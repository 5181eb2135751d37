"""Each rule against its slow twin, under all options, and against the laws."""

import pytest
import torch
from rule_cases import RULE_CASES, UNMET, WITHOUT_TWIN, RuleCase
from torch._ops import OpOverload, OpOverloadPacket

from xdegree import Options, check, decompose
from xdegree.registry import RULES
from xdegree.testing import check_laws

OPTIONS = [
    Options(),
    Options(ties="first"),
    Options(bias="background"),
    Options(activation="both-orders"),
    Options(activation="target-last", bias="background", ties="first"),
    Options(product="share"),
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


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_rule_obeys_the_laws(case: RuleCase) -> None:
    check_laws(case.function, features(case), laws=case.laws)


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_rule_makes_no_nan_of_zeros(case: RuleCase) -> None:
    """0/0 is where the authors' code gives NaN."""
    x = torch.zeros(6, 4, dtype=torch.float64)
    d = decompose(case.function, x, groups=[[0], [1, 2], [], range(6)])
    assert bool((d.target.isfinite() | ~d.total.isfinite()).all())


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_rule_takes_no_groups_at_all(case: RuleCase) -> None:
    """That is how `check` surveys a model."""
    assert check(case.function, features(case)).ok


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


@pytest.mark.parametrize("function", set(RULES.values()), ids=lambda f: f.__name__)
def test_every_rule_says_what_it_does(function: object) -> None:
    said = function.__doc__ or ""
    assert len(said) > 20, f"{function.__name__} needs a docstring: what it does, and which equation of the paper it is"
