"""Which rule is met: keys, precedence, and the operations that carry nothing."""

import pytest
import torch
from helpers import features, ready
from torch import nn

from xdegree import Call, check, decompose, rule
from xdegree.engine.registry import CARRY_NOTHING, FACTORIES, FUNCTIONS, ROW_WISE, RULES, unregister

X = features()
aten = torch.ops.aten


@pytest.fixture
def register():
    """Register rules for one test only; a rule that was there comes back to its place."""
    added, rules, row_wise, functions = [], dict(RULES), dict(ROW_WISE), list(FUNCTIONS)

    def add(*keys):
        for key in keys:
            if key in RULES:
                unregister(key)
            added.append(key)
        return rule(*keys)

    yield add
    for key in added:
        unregister(key)
    for registry, before in ((RULES, rules), (ROW_WISE, row_wise)):
        registry.clear()
        registry.update(before)
    FUNCTIONS[:] = functions


def tripled(x):
    return torch.special.i0(x) * 3


class Outer(nn.Module):
    def forward(self, x):
        return tripled(x)


class Derived(Outer):
    pass


def constant(value):
    def answer(call, x, *args, **kwargs):
        return torch.full_like(x.target, value)

    return answer


def test_module_before_function_before_operation(register):
    def first(model):
        return decompose(model, X, groups=[[0]]).target.unique().tolist()

    register(aten.i0)(constant(1.0))
    assert first(Outer()) == [3.0]  # the rest of the function is decomposed as ever
    register(tripled)(constant(20.0))
    assert first(Outer()) == [20.0]
    assert first(tripled) == [20.0]
    register(Outer)(constant(300.0))
    assert first(Outer()) == [300.0]
    assert first(Derived()) == [300.0]  # a base class counts
    register(Derived)(constant(4000.0))
    assert first(Derived()) == [4000.0]  # the nearer one more
    assert first(Outer()) == [300.0]
    assert first(tripled) == [20.0]


def test_an_overload_before_the_operation(register):
    register(aten.special_zeta)(constant(1.0))
    register(aten.special_zeta.other_scalar)(constant(2.0))
    assert decompose(lambda x: torch.special.zeta(x.abs() + 2, 3.0), X, groups=[[0]]).target.unique().tolist() == [2.0]
    assert decompose(
        lambda x: torch.special.zeta(x.abs() + 2, torch.tensor(3.0).double()), X, groups=[[0]]
    ).target.unique().tolist() == [1.0]


def test_a_rule_of_an_operation_serves_its_in_place_form(register):
    register(aten.sinc)(lambda call, x: x.target * call.total)
    for model in (torch.sinc, lambda x: x.sinc_()):
        d = decompose(model, X, groups=[[0], [3, 4]])
        assert torch.equal(d.total, torch.sinc(X))
        assert torch.equal(d.target[0, 0], X[0] * torch.sinc(X)[0])
        assert not d.target[0, 1:].any()


def test_a_rule_sees_call_and_arguments(register):
    seen = []

    @register(tripled)
    def note(call, x):
        seen.append((call, x))
        return x.target * 0

    total = decompose(lambda x: tripled(x=x), X, groups=[[0], [1]]).total
    call, x = seen[0]
    assert isinstance(call, Call)
    assert (call.op, call.groups, call.options.ties) == (tripled, 2, "share")
    assert torch.equal(call.total, total)
    assert torch.equal(x.total, X)
    assert x.target.shape == (2, 12, 4)
    assert torch.equal(x.background, X - x.target)


def test_a_module_rule_finds_the_module(register):
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.tensor(2.0))

        def forward(self, x, power=1):
            return torch.special.i0(x) * self.factor**power

    @register(Scale)
    def scale(call, x, power=1):
        return x.target * call.op.factor**power

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.lin = Scale(), nn.Linear(4, 2, bias=False)

        def forward(self, x):
            return self.lin(self.scale(x, power=2))

    model = ready(Model())
    d = decompose(model, X, groups=[[0]], probes=["scale"])
    assert torch.equal(d.total, model(X))
    factor = model.scale.factor.detach() ** 2
    torch.testing.assert_close(d.probes["scale"].target[0, 0], X[0] * factor, rtol=0, atol=1e-12)
    assert "forward" not in vars(model.scale)


def test_a_rule_may_return_several_targets(register):
    def both(x):
        return torch.special.i0(x), x.argmax(0)

    @register(both)
    def of_both(call, x):
        return x.target * 2, None

    d = decompose(both, X, groups=[[0]])
    assert torch.equal(d.target[0][0, 0], X[0] * 2)
    assert torch.equal(d.total[1], X.argmax(0))


def test_check_names_the_rules_in_use(register):
    register(aten.i0)(constant(1.0))
    report = check(Outer(), X)
    assert report.ok
    assert {(row.op, row.rule) for row in report.rows} == {
        ("aten.i0.default", "answer"),
        ("aten.mul.Tensor", "mul"),
    }
    unregister(aten.i0)
    assert not check(Outer(), X).ok
    rule(aten.i0)(constant(1.0))


def test_a_target_of_the_wrong_shape_is_refused(register):
    @register(aten.i0)
    def wrong(call, x):
        return x.target.sum(-1)

    with pytest.raises(ValueError, match=r"target of shape \(1, 12\)"):
        decompose(torch.special.i0, X, groups=[[0]])


@pytest.mark.parametrize("key", [aten.relu, torch.nn.Linear, tripled])
def test_registering_twice_raises(register, key):
    if key not in RULES:
        register(key)(constant(1.0))
    owner = RULES[key].__name__
    with pytest.raises(ValueError, match=owner) as error:
        rule(key)(constant(2.0))
    assert "already" in str(error.value)
    assert RULES[key].__name__ == owner


def test_registering_several_keys_is_all_or_nothing():
    with pytest.raises(ValueError, match="already"):
        rule(aten.special_i1, aten.relu)(constant(1.0))
    assert aten.special_i1 not in RULES


@pytest.mark.parametrize(
    "key", ["aten.relu", 5, None, aten.relu_, aten.relu_.default, int, torch.Tensor, torch.relu, len]
)
def test_bad_keys_raise(key):
    with pytest.raises(TypeError, match="key") as error:
        rule(key)(constant(1.0))
    assert repr(key) in str(error.value)
    assert key not in RULES


def test_no_key_and_a_closure():
    with pytest.raises(ValueError, match="at least one key"):
        rule()
    with pytest.raises(TypeError, match="key"):
        rule(constant(1.0))(constant(2.0))
    with pytest.raises(KeyError, match="no rule"):
        unregister(aten.special_i1)


def test_the_lists_do_not_overlap():
    def packets(keys):
        return {getattr(key, "overloadpacket", key) for key in keys}

    assert not packets(CARRY_NOTHING) & packets(RULES)
    assert not packets(CARRY_NOTHING) & packets(FACTORIES)
    assert not packets(FACTORIES) & packets(RULES)


def test_every_rule_says_what_it_does():
    assert all((function.__doc__ or "").strip() for function in RULES.values())
