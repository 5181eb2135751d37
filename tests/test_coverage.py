"""Every layer and model of the installed PyG decomposes and obeys the laws, or is listed with the reason why not."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch_geometric.nn
import torch_geometric.nn as pyg
from cases import INPUTS, Case, seeded
from helpers import EDGES, PAIR_BATCH
from pyg_cases import CASES as PYG_CASES
from pyg_cases import NOT_COVERED, PACKAGES, exported
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch_cases import CASES as TORCH_CASES
from torch_cases import REFUSED, Refused
from torch_geometric.nn import EquilibriumAggregation, WLConv

from xdegree import MissingRuleError, Options, check, decompose
from xdegree.engine.run import LostPortionsError
from xdegree.testing import BrokenLaw, check_laws

CASES = [*PYG_CASES, *TORCH_CASES]
# What PyG and PyTorch say about their own code is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:.*:DeprecationWarning")


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """Equality is claimed, so constants that layers make are in float64 too; one thread, as the tensors are tiny."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_export_is_covered_or_listed(package: str) -> None:
    covered = {case.name for case in PYG_CASES if case.package == package}
    listed = set(NOT_COVERED.get(package, {}))
    assert set(exported(package)) == covered | listed
    assert not covered & listed


def test_every_activation_is_covered() -> None:
    assert set(nn.modules.activation.__all__) == {case.name for case in TORCH_CASES if case.package == "activation"}


def test_no_sub_package_is_forgotten() -> None:
    modules = [module.name for module in pkgutil.iter_modules(torch_geometric.nn.__path__)]
    public = {name for name in modules if hasattr(importlib.import_module(f"torch_geometric.nn.{name}"), "__all__")}
    assert public <= set(PACKAGES)
    assert {case.package for case in PYG_CASES} | set(NOT_COVERED) == set(PACKAGES)


def test_names_of_cases_are_unique() -> None:
    names = [case.id for case in CASES]
    assert len(names) == len(set(names))


def parameters(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case.id) for case in cases]


@pytest.mark.parametrize("case", parameters(CASES))
def test_decomposes_by_the_laws(case: Case) -> None:
    model, inputs = case.model(), case.inputs()
    d = decompose(model, *inputs, groups=[[0], [1, 2], [], range(len(inputs[0]))], options=Options.paper())
    check_laws(model, *inputs, laws=case.laws, options=Options.paper())
    with torch.no_grad():
        own = floats(model(*case.inputs()))
    for total, expected in zip(floats(d.total), own, strict=True):
        torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", parameters([case for case in CASES if not (case.everything and case.nothing)]))
def test_exceptions_are_needed(case: Case) -> None:
    for law, holds in (("everything", case.everything), ("nothing", case.nothing)):
        if not holds:
            with pytest.raises(BrokenLaw):
                check_laws(case.model(), *case.inputs(), laws=[law], options=Options.paper())


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.what)
def test_what_is_refused_is_named(refused: Refused) -> None:
    with pytest.raises(MissingRuleError) as error:
        decompose(refused.function, INPUTS["nodes"], *refused.args, groups=[[0], [1, 2]])
    assert any(missing.op.startswith(refused.op) for missing in error.value.missing)
    report = check(refused.function, INPUTS["nodes"], *refused.args)
    assert not report.ok
    assert refused.op in str(report)


@pytest.mark.parametrize("gnn", [None, pyg.GCNConv])
def test_a_pooling_by_a_sparse_matrix_of_portions_is_refused(gnn: Any) -> None:
    with pytest.raises(MissingRuleError, match="_sparse_coo_tensor"):
        decompose(seeded(pyg.ASAPooling(4, GNN=gnn)), INPUTS["nodes"], EDGES, groups=[[0]], options=Options.paper())
    d = decompose(
        seeded(pyg.ASAPooling(4, GNN=gnn)), INPUTS["nodes"], EDGES, groups=[range(12), []]
    )  # attention as given
    assert d.target[0][0].any()
    assert not d.target[0][1].any()


def test_a_gradient_inside_the_model_is_refused() -> None:
    with pytest.raises(MissingRuleError, match="takes a gradient inside of its forward pass"):
        decompose(seeded(EquilibriumAggregation(4, 5, [6])), INPUTS["nodes"], PAIR_BATCH, groups=[[0]])


def test_hashed_colours_are_refused() -> None:
    colours = torch.eye(4)[torch.arange(12) % 4]
    with pytest.raises(LostPortionsError):
        decompose(WLConv(), colours, EDGES[:, EDGES[1].argsort()], groups=[[0]])


def floats(output: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
