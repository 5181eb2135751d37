"""Random programs against what must hold for them; $XDEGREE_FUZZ says how many times as many are tried."""

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import pytest
import torch
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from programs import AFFINE, LINEAR, MIXED, OTHER, Program, groups_of, programs, spread_over
from torch import Tensor

import xdegree.engine.portions
import xdegree.model_call.split_points
from xdegree import LostPortionsError, Options, decompose

TIMES = int(os.environ.get("XDEGREE_FUZZ", "0"))
EXACT = Options(bias="background", activation="target-last")


def examples(count: int) -> settings:
    """So many examples, always the same ones; or, with $XDEGREE_FUZZ, that many times as many new ones."""
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(
        max_examples=count * (TIMES or 1), deadline=None, derandomize=not TIMES, suppress_health_check=quiet,
        database=None,
    )


@contextmanager
def storage(limit: float) -> Iterator[None]:
    """Targets are sparse always (infinity) or never (−1)."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(xdegree.model_call.split_points, "SPARSE_BELOW", limit))
        stack.enter_context(mock.patch.object(xdegree.engine.portions, "DENSE_ABOVE", limit))
        yield


def same(got: Tensor, expected: Tensor, scale: Tensor) -> None:
    size = max([1.0, *[float(t.abs().max()) for t in (expected, scale) if t.numel()]])
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-9 * size)


def own(program: Program, x: Tensor) -> Tensor:
    """What the program gives by itself, without numbers so large that rounding hides everything."""
    out = program(x.clone(), program.edge_index)
    large = out[out.isfinite()].abs()
    assume(not large.numel() or float(large.max()) < 1e6)
    return out


def both_ways(program: Program, share: Tensor, options: Options) -> list[Tensor]:
    """The targets with sparse and with dense storage, after the total was compared."""
    note(repr(program))
    found, total = [], own(program, program.x)
    for limit in (math.inf, -1.0):
        with storage(limit):
            d = decompose(program, program.x, program.edge_index, groups=share, options=options)
        assert torch.equal(d.total.nan_to_num(), total.nan_to_num())
        found.append(d.target)
    return found


@given(programs(LINEAR), st.data())
@examples(300)
def test_linear_programs_give_the_linear_contribution(program: Program, data: st.DataObject) -> None:
    share = data.draw(groups_of(program.x))
    for target in both_ways(program, share, Options()):
        for k, part in enumerate(spread_over(share, program.x)):
            same(target[k], own(program, program.x * part), own(program, program.x))


@given(programs(LINEAR, AFFINE), st.data())
@examples(300)
def test_affine_programs_give_the_difference_without_the_group(program: Program, data: st.DataObject) -> None:
    share = data.draw(groups_of(program.x))
    total = own(program, program.x)
    for target in both_ways(program, share, EXACT):
        for k, part in enumerate(spread_over(share, program.x)):
            without = own(program, program.x - program.x * part)
            same(target[k], total - without, total)


def close(got: Tensor, expected: Tensor, total: Tensor) -> None:
    """`same` wherever the model's own value is finite; elsewhere its infinities are its own business."""
    finite = total.isfinite().expand_as(expected)
    same(got[finite], expected[finite], total[total.isfinite()])


@given(programs(LINEAR, OTHER, most=4), st.data())
@examples(150)
def test_all_nodes_together_contribute_everything(program: Program, data: st.DataObject) -> None:
    options = data.draw(st.sampled_from([Options(), EXACT, Options(product="share"), Options(ties="first")]))
    every = torch.ones(1, len(program.x), dtype=torch.float64)
    total = own(program, program.x)
    for target in both_ways(program, every, options):
        close(target[0], total, total)


@given(programs(LINEAR, AFFINE, OTHER, MIXED, most=5), st.data())
@examples(300)
def test_any_program_obeys_the_laws(program: Program, data: st.DataObject) -> None:
    """Nothing contributes nothing; no NaN of ours; K in one pass are K passes; sparse storage is dense storage."""
    options = data.draw(st.sampled_from([Options(), Options(ties="first"), Options(activation="both-orders"), EXACT]))
    share = data.draw(groups_of(program.x))
    share = torch.cat([torch.zeros_like(share[:1]), share])
    total = own(program, program.x)
    sparse, dense = both_ways(program, share, options)
    close(sparse, dense, total)
    for target in (sparse, dense):
        assert bool((target.isfinite() | ~total.isfinite()).all())
        assert not bool((target[0] != 0)[total.isfinite()].any())
    for k in range(len(share)):
        alone = decompose(program, program.x, program.edge_index, groups=share[k : k + 1], options=options)
        close(alone.target[0], dense[k], total)
