"""Random programs against what must hold for them; $XDEGREE_FUZZ says how many times as many are tried."""

import os
from collections.abc import Iterator

import pytest
import torch
from helpers import FORMS, as_large, ready, storage
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from linear_steps import LINEAR
from node_programs import CONVS, GLOBAL, Conv, Layers, NodeModel, node_models
from other_steps import AFFINE, MIXED, OTHER
from programs import Program, groups_of, programs, spread_over
from torch import Tensor

from xdegree import Options, decompose, explain
from xdegree.testing import check_laws

TIMES = int(os.environ.get("XDEGREE_FUZZ", "0"))
EXACT = Options(bias="background", activation="target-last")


def examples(count: int) -> settings:
    """So many examples, always the same ones; or, with $XDEGREE_FUZZ, that many times as many new ones."""
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(
        max_examples=count * (TIMES or 1),
        deadline=None,
        derandomize=not TIMES,
        suppress_health_check=quiet,
        database=None,
    )


def same(got: Tensor, expected: Tensor, scale: Tensor) -> None:
    size = max([1.0, *[float(t.abs().max()) for t in (expected, scale) if t.numel()]])
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-9 * size)


def own(program: Program, x: Tensor) -> Tensor:
    """What the program gives by itself, without numbers so large that rounding hides everything."""
    out = program(x.clone(), program.edge_index)
    large = out[out.isfinite()].abs()
    assume(not large.numel() or float(large.max()) < 1e6)
    return out


def in_all_forms(program: Program, share: Tensor, options: Options) -> list[Tensor]:
    """The targets in all forms of storage, after the total was compared."""
    note(repr(program))
    found, total = [], own(program, program.x)
    for form in FORMS:
        with storage(form):
            d = decompose(program, program.x, program.edge_index, groups=share, options=options)
        assert torch.equal(d.total.nan_to_num(), total.nan_to_num())
        found.append(d.target)
    return found


@given(programs(LINEAR), st.data())
@examples(150)
def test_linear_programs_give_the_linear_contribution(program: Program, data: st.DataObject) -> None:
    share = data.draw(groups_of(program.x))
    for target in in_all_forms(program, share, Options()):
        for k, part in enumerate(spread_over(share, program.x)):
            same(target[k], own(program, program.x * part), own(program, program.x))


@given(programs(LINEAR, AFFINE), st.data())
@examples(150)
def test_affine_programs_give_the_difference_without_the_group(program: Program, data: st.DataObject) -> None:
    share = data.draw(groups_of(program.x))
    total = own(program, program.x)
    for target in in_all_forms(program, share, EXACT):
        for k, part in enumerate(spread_over(share, program.x)):
            without = own(program, program.x - program.x * part)
            same(target[k], total - without, total)


def close(got: Tensor, expected: Tensor, total: Tensor) -> None:
    """`same` wherever the model's own value is finite; elsewhere its infinities are its own business."""
    finite = total.isfinite().expand_as(expected)
    same(got[finite], expected[finite], total[total.isfinite()])


@given(programs(LINEAR, OTHER, most=4), st.data())
@examples(80)
def test_all_nodes_together_contribute_everything(program: Program, data: st.DataObject) -> None:
    options = data.draw(st.sampled_from([Options(), EXACT, Options(product="share"), Options(ties="first")]))
    every = torch.ones(1, len(program.x), dtype=torch.float64)
    total = own(program, program.x)
    for target in in_all_forms(program, every, options):
        close(target[0], total, total)


@given(programs(LINEAR, AFFINE, OTHER, MIXED, most=5), st.data())
@examples(150)
def test_any_program_obeys_the_laws(program: Program, data: st.DataObject) -> None:
    """Nothing contributes nothing; no NaN of ours; K in one pass are K passes; sparse storage is dense storage."""
    options = data.draw(st.sampled_from([Options(), Options(ties="first"), Options(activation="both-orders"), EXACT]))
    share = data.draw(groups_of(program.x))
    share = torch.cat([torch.zeros_like(share[:1]), share])
    total = own(program, program.x)
    *others, dense = in_all_forms(program, share, options)
    for other in others:
        close(other, dense, total)
    for target in (*others, dense):
        assert bool((target.isfinite() | ~total.isfinite()).all())
        assert not bool((target[0] != 0)[total.isfinite()].any())
    for k in range(len(share)):
        alone = decompose(program, program.x, program.edge_index, groups=share[k : k + 1], options=options)
        close(alone.target[0], dense[k], total)


@pytest.mark.filterwarnings("ignore:the model's output is not finite")
@pytest.mark.filterwarnings("ignore:contributions of up to:UserWarning")  # at such scales they are true
@given(programs(LINEAR, AFFINE, OTHER, MIXED, most=5), st.data())
@examples(150)
def test_no_infinities_of_our_own_at_any_scale(program: Program, data: st.DataObject) -> None:
    """Numbers near the ends of their range, zeros, equal rows: targets are finite wherever the model's own value is."""
    note(repr(program))
    scale = data.draw(st.sampled_from([1e300, 1e150, 1e20, 1e-20, 1e-160, 1e-310, 0.0]))
    factor = torch.where(torch.arange(len(program.x)) % 3 == 1, 1.0, torch.tensor(scale, dtype=torch.float64))
    x = program.x * factor.unsqueeze(1)
    x = x[:1].expand_as(x).clone() if data.draw(st.booleans()) else x
    share = data.draw(groups_of(x))
    share = torch.cat([torch.zeros_like(share[:1]), share])
    options = data.draw(
        st.sampled_from([Options(), Options(activation="both-orders"), Options(product="share"), EXACT])
    )
    for form in FORMS:
        with storage(form):
            d = decompose(program, x, program.edge_index, groups=share, options=options)
        assert bool((d.target.isfinite() | ~d.total.isfinite()).all())


@pytest.fixture(scope="module", params=["whole", "cut"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """The graphs are small; where cut, they are treated as large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cut":
            as_large(patch)
        yield request.param


def expect_explained(node_model: NodeModel, data: st.DataObject) -> None:
    """One node, some or all of them: the prediction is the model's own, the scores are those of each node by itself."""
    note(repr(node_model))
    model, x, edge_index = node_model.model, node_model.x, node_model.edge_index
    n, every = len(x), torch.eye(len(x), dtype=torch.float64)
    total = model(x.clone(), edge_index)
    assume(bool(total.isfinite().all()) and float(total.abs().max()) < 1e6)
    options = data.draw(st.sampled_from([Options(), Options(attention="whole"), EXACT]))
    target = decompose(model, x, edge_index, groups=every, options=options).target
    index = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4))
    asked = data.draw(st.sampled_from([index, "all"]))
    one, several = (explain(model, x, edge_index, index=i, options=options) for i in (index[0], asked))
    for e in (one, *several):
        same(e.prediction, total[e.index], total)
        assert e.target == int(total[e.index].argmax())
        same(e.class_scores, target[:, e.index], target)
        same(e.node_scores, target[:, e.index, e.target], target)
        assert set(e.nodes.tolist()) >= set(e.node_scores.nonzero().flatten().tolist())


@pytest.mark.filterwarnings("ignore:contributions of up to:UserWarning", "ignore:every score is exactly 0")
@given(node_models(beyond=False), st.data())
@examples(25)
def test_explain_is_decompose_for_every_node(way: str, node_model: NodeModel, data: st.DataObject) -> None:
    expect_explained(node_model, data)


@pytest.mark.filterwarnings("ignore:contributions of up to:UserWarning", "ignore:every score is exactly 0")
@given(node_models(beyond=True), st.data())
@examples(50)
def test_explain_is_decompose_for_models_that_look_at_everything(
    way: str, node_model: NodeModel, data: st.DataObject
) -> None:
    expect_explained(node_model, data)


@given(node_models(beyond=False), st.data())
@examples(25)
def test_renumbering_the_nodes_renumbers_the_answer(node_model: NodeModel, data: st.DataObject) -> None:
    note(repr(node_model))
    options = data.draw(st.sampled_from([Options(), EXACT, Options(activation="both-orders", attention="whole")]))
    laws = ("total", "nothing", "finite", "one_pass", "renumber")
    check_laws(node_model.model, node_model.x, node_model.edge_index, laws=laws, options=options)


def test_a_part_that_agrees_by_chance() -> None:
    """Equal features hide that the attention over all nodes needs edges that do not lead to the explained one."""
    x, edge_index = torch.ones(2, 1, dtype=torch.float64), torch.tensor([[0, 1, 0], [1, 0, 0]])
    layers = [ready(Conv(CONVS["GATConv"](1, 2))), GLOBAL["attention"]]
    model = Layers(["GATConv", "attention"], layers).eval().requires_grad_(False)
    target = decompose(model, x, edge_index, groups=[[0], [1]]).target
    with pytest.MonkeyPatch.context() as patch:
        as_large(patch)
        for index in (0, 1):
            same(explain(model, x, edge_index, index=index).class_scores, target[:, index], target)
