"""Law 8: no contribution is larger than a bound times the largest value that the model itself computes.

Every layer stands before units that are always 0 and a batch norm that scales them by 1,000.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from cases import Case
from helpers import EDGES, features, ready
from pyg_cases import CASES as PYG_CASES
from rule_cases import RULE_CASES, RuleCase
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch_cases import CASES as TORCH_CASES
from torch_geometric.nn import GCNConv, GINConv, GraphNorm, InstanceNorm, SAGEConv, global_mean_pool

from xdegree import Options, decompose, explain
from xdegree.attribution.phantoms import LIMIT
from xdegree.testing import BrokenLaw, check_laws

BOUNDED = [
    Options.paper(activation="gate"),
    Options.paper(activation="both-orders", bound="output"),
    Options.paper(activation="target-last", bias="background", bound="output"),
    Options.paper(activation="gate", bias="background", bound="output"),
    Options.paper(activation="both-orders", bias="background", product="share", bound="output"),
    Options.paper(bound="output"),
]
UNBOUNDED = [Options.paper(), Options.paper(activation="both-orders"), Options.paper(activation="target-last")]
CASES = [*PYG_CASES, *TORCH_CASES]


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(threads)


class BeforeDeadUnits(nn.Module):
    """A layer, a ReLU behind which the first half of the units is 0 in every row, a batch norm, a linear layer."""

    def __init__(self, layer: Any, inputs: tuple[Any, ...], scale: float) -> None:
        super().__init__()
        self.layer = layer
        with torch.no_grad():
            out = self._table(layer(*inputs))
        width = out.shape[1]
        self.register_buffer("shift", out.amax(0).clamp(min=0) + 0.01)
        self.shift[(width + 1) // 2 :] = 0
        self.norm = nn.BatchNorm1d(width)
        self.out = nn.Linear(width, 3)
        ready(self.norm), ready(self.out)
        nn.init.zeros_(self.norm.running_mean)
        with torch.no_grad():
            self.norm.weight[: (width + 1) // 2] = scale
        self.eval()

    def _table(self, out: Any) -> Tensor:
        first = next(t for t in tree_leaves(out) if isinstance(t, Tensor) and t.is_floating_point() and t.numel())
        return first.reshape(len(first), -1) if first.dim() > 1 else first.reshape(-1, 1)

    def forward(self, *inputs: Any) -> Tensor:
        return self.out(self.norm((self._table(self.layer(*inputs)) - self.shift).relu()))


def quietly(model: Any, *inputs: Any, **kwargs: Any) -> Tensor:
    """The contributions, with PyG's and PyTorch's own warnings ignored but not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "contributions of up to")
        return decompose(model, *inputs, **kwargs).target


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
@pytest.mark.filterwarnings("ignore:(?!contributions of up to):UserWarning", "ignore:.*:DeprecationWarning")
def test_dead_units_add_nothing_whatever_scales_them(case: Case) -> None:
    """So the bound of scale 1 is that of scale 1,000, for every layer that PyG and PyTorch export."""
    groups = torch.eye(len(case.inputs()[0])).bool()
    once, scaled = (BeforeDeadUnits(case.model(), case.inputs(), scale) for scale in (1, 1000))
    for options in BOUNDED[:2]:
        small, large = (quietly(m, *case.inputs(), groups=groups, options=options) for m in (once, scaled))
        torch.testing.assert_close(large, small, rtol=1e-9, atol=1e-9)
    check_laws(scaled, *case.inputs(), laws=["bounded"], options=BOUNDED[1])


class Network(nn.Module):
    """What a user might write: convolutions, each with ReLU and batch norm, a pool, two linear layers."""

    def __init__(self, kind: str, scale: float, level: str = "graph") -> None:
        super().__init__()
        make = {"gcn": GCNConv, "sage": SAGEConv, "gin": lambda i, o: GINConv(nn.Linear(i, o))}[kind]
        self.convs = nn.ModuleList([make(4 if i == 0 else 8, 8) for i in range(3)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(8) for _ in range(3)])
        self.lin1, self.lin2, self.level = nn.Linear(8, 8), nn.Linear(8, 2), level
        ready(self)
        x = X
        with torch.no_grad():
            for conv, norm in zip(self.convs, self.norms, strict=True):
                h = conv(x, EDGES)
                conv_bias = conv.nn.bias if kind == "gin" else conv.lin_l.bias if kind == "sage" else conv.bias
                conv_bias[:4] -= h.amax(0)[:4] + 0.01
                norm.weight[:4] = scale
                x = norm(conv(x, EDGES).relu())

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index).relu())
        x = global_mean_pool(x, None) if self.level == "graph" else x
        return self.lin2(self.lin1(x).relu())


X = features()
KINDS = ("gcn", "gin", "sage")


@pytest.mark.parametrize("options", BOUNDED, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_networks_stay_bounded_under_every_bounded_option(kind: str, options: Options) -> None:
    check_laws(
        Network(kind, 1000), X, EDGES, laws=["bounded", "total", "nothing", "finite", "one_pass"], options=options
    )


@pytest.mark.parametrize("options", UNBOUNDED, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_options_that_are_not_bounded_warn_and_name_the_module(kind: str, options: Options) -> None:
    """The first batch norm is where portions that cancel are scaled up."""
    groups = torch.eye(12).bool()
    with pytest.warns(UserWarning, match=r"in module 'norms\.0' .*batch_norm.default: target") as caught:
        d = decompose(Network(kind, 1000), X, EDGES, groups=groups, options=options)
    assert len(caught) == 1
    assert f"contributions of up to {d.target.abs().max():.3g}" in str(caught[0].message)
    with pytest.raises(BrokenLaw), pytest.warns(UserWarning, match="contributions of up to"):
        check_laws(Network(kind, 1000), X, EDGES, laws=["bounded"], options=options)


def test_explain_warns_too_and_once() -> None:
    both = Options.paper(activation="both-orders")
    for model, index in ((Network("gin", 1000), None), (Network("gin", 1000, "node"), 4)):
        with pytest.warns(UserWarning, match="contributions of up to") as caught:
            explain(model, X, EDGES, index=index, options=both)
        assert len([one for one in caught if "contributions of up to" in str(one.message)]) == 1
        explain(model, X, EDGES, index=index, options=Options.paper(activation="both-orders", bound="output"))


@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_no_rule_by_itself_makes_a_contribution_large(case: RuleCase) -> None:
    """Features of size 1 through one operation: every option stays within the bound, and none warns."""
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(3))
    x = x.abs() + 0.1 if case.positive else x
    for options in (*BOUNDED, *UNBOUNDED):
        check_laws(case.function, x, laws=["bounded"], options=options)


@pytest.mark.parametrize("activation", ["both-orders", "gate"])
@pytest.mark.parametrize("bound", ["none", "output"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_group_and_the_rest_add_up(kind: str, activation: Any, bound: Any) -> None:
    """Without offsets behind the ReLU: where both portions are 0, an offset stays with the background."""
    model, options = Network(kind, 2), Options.paper(activation=activation, bound=bound)
    for norm in model.norms:
        nn.init.zeros_(norm.bias)
    groups = torch.rand(8, 12, generator=torch.Generator().manual_seed(0)) < 0.4
    here, rest = (decompose(model, X, EDGES, groups=mask, options=options).target for mask in (groups, ~groups))
    total = model(X, EDGES).detach()
    torch.testing.assert_close(here + rest, total.expand_as(here), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_bounded_relus_have_no_order(kind: str) -> None:
    """Clipped to the output, every order of the telescoping sum gives γ clipped to 0 … T."""
    options = [
        Options.paper(activation=a, bound="output") for a in ("target-first", "target-last", "both-orders", "gate")
    ]
    model, groups = Network(kind, 1000), torch.rand(8, 12, generator=torch.Generator().manual_seed(0)) < 0.4
    first, *others = (decompose(model, X, EDGES, groups=groups, options=o).target for o in options)
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-9, atol=1e-9)


def test_behind_a_gate_single_nodes_add_up() -> None:
    """The gate is linear in the target, so whatever is no bias adds up over any partition."""
    model, options = Network("gin", 1000), Options.paper(activation="gate", bias="background")
    alone = decompose(model, X, EDGES, groups=torch.eye(12).bool(), options=options).target.sum(0)
    torch.testing.assert_close(alone, decompose(model, X, EDGES, groups=[range(12)], options=options).target[0])


@pytest.mark.parametrize("function", [torch.relu, torch.tanh, torch.sigmoid, torch.abs, nn.functional.softplus])
@pytest.mark.parametrize("bound", ["none", "output"])
def test_a_gate_passes_nothing_where_the_total_is_zero(function: Any, bound: Any) -> None:
    """±5 that cancel do not pass; f(0) stays a constant, shared by magnitude."""
    x, options = torch.tensor([[5.0], [-5.0], [0.0]]), Options.paper(activation="gate", bound=bound)
    d = decompose(lambda x: function(x.sum(0)), x, groups=[[0], [1], [2]], options=options)
    constant = float(function(torch.zeros(())))
    torch.testing.assert_close(d.target[:, 0], torch.tensor([constant / 2, constant / 2, 0.0]))


def test_a_jump_at_zero_stays_within_the_bound() -> None:
    """(f(T) − f(0))/T has no limit at 0 where f jumps: the quotient is not finite, or large and clipped."""
    x = torch.tensor([[5.0, 5.0], [-5.0, -5.0 + 1e-9], [0.0, 0.0]])
    model = lambda x: nn.functional.threshold(x.sum(0), 0, 3)
    d = decompose(model, x, groups=[[0], [1], [2]], options=Options.paper(activation="gate", bound="output"))
    assert bool((d.target.abs() <= 3 + 1e-6).all())
    with pytest.warns(UserWarning, match="in the model itself .aten.threshold"):
        assert decompose(model, x, groups=[[0], [1]], options=Options.paper(activation="gate")).target.isfinite().all()


AMPLIFIERS = {
    "batch norm by its weight": lambda: _with(nn.BatchNorm1d(6), weight=1000.0),
    "batch norm of no variance": lambda: _with(nn.BatchNorm1d(6), running_var=0.0),
    "graph norm": lambda: _with(GraphNorm(6), weight=1000.0),
    "instance norm": lambda: InstanceNorm(6, eps=1e-8),
    "linear layer": lambda: _with(nn.Linear(6, 6), weight=1000.0),
    "factor": lambda: lambda x: x * 1000,
    "divisor": lambda: lambda x: x / 1e-3,
}
DEAD = {"relu": nn.ReLU(), "gelu": nn.GELU(), "silu": nn.SiLU(), "hardtanh": nn.Hardtanh(0, 1), "elu": nn.ELU(1e-9)}


def _with(module: nn.Module, **values: float) -> nn.Module:
    with torch.no_grad():
        for name, value in values.items():
            getattr(module, name).fill_(value)
    return module.eval()


@pytest.mark.parametrize("dead", DEAD)
@pytest.mark.parametrize("amplifier", AMPLIFIERS)
def test_whatever_scales_units_that_are_nearly_zero(amplifier: str, dead: str) -> None:
    """Units far below 0 in every row: no bounded option exceeds the law, and others warn where they do."""
    scale, rows = AMPLIFIERS[amplifier](), torch.randn(4, 6, generator=torch.Generator().manual_seed(0)) * 20
    lin = nn.Linear(6, 3)
    ready(lin)

    def model(x: Tensor, edge_index: Tensor) -> Tensor:
        h = x[edge_index[0]].new_zeros(12, 4).index_add(0, edge_index[1], x[edge_index[0]]) @ rows
        return lin(scale(DEAD[dead](h - 200)))

    for options in BOUNDED:
        check_laws(model, X, EDGES, laws=["bounded", "nothing", "finite"], options=options)
    for options in UNBOUNDED:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            decompose(model, X, EDGES, groups=torch.eye(12).bool(), options=options)
        if not caught:
            check_laws(model, X, EDGES, laws=["bounded"], options=options)


def test_large_features_and_small_outputs_are_no_phantoms() -> None:
    """What the model itself computes on the way counts, not only its output."""
    x = torch.tensor([[5000.0], [-4999.0]])
    decompose(lambda x: x.sum(0), x, groups=[[0], [1]])
    assert LIMIT == 10


@pytest.mark.parametrize("scale", [1, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_group_of_all_nodes_that_misses_the_output_is_named(kind: str, scale: float) -> None:
    options = Options.paper(activation="both-orders")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        d = decompose(Network(kind, scale), X, EDGES, groups=torch.ones(1, 12).bool(), options=options)
    far = (d.total - d.target[0]).abs().max() > d.total.abs().max()
    assert far == any("the group of all rows" in str(one.message) for one in said)
    assert far or scale == 1
