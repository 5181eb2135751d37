"""Targets give the same numbers in all forms that they are stored in, whatever the model does with them."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from helpers import CONVS, EDGES, FORMS, features, net, storage
from pyg_cases import CASES as PYG_CASES
from rule_cases import RULE_CASES
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from xdegree import Options, decompose
from xdegree.engine.by_pairs import by_pairs
from xdegree.engine.masked_rows import MaskedRows
from xdegree.engine.portions import Portions, leaves
from xdegree.engine.sparse_rows import SparseRows, coalesced, sparse_share, union

X = features()


def in_all_forms(model, *inputs, groups, options=None):
    for form in FORMS:
        with storage(form):
            yield decompose(model, *inputs, groups=groups, options=options)


def expect_same(found) -> None:
    *others, dense = found
    for other in others:
        for got, expected in zip(leaves(other.target), leaves(dense.target), strict=True):
            if expected is not None:
                torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the group of all rows:UserWarning")
@pytest.mark.parametrize("case", RULE_CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_every_rule_in_all_forms(case) -> None:
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x = x.abs() + 0.1 if case.positive else x
    expect_same(in_all_forms(case.function, x, groups=[[0], [], [1, 5], range(6)], options=Options.paper()))


@pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:.*:DeprecationWarning")
@pytest.mark.parametrize("case", [case for case in PYG_CASES if case.id.startswith("conv.")], ids=lambda case: case.id)
def test_every_convolution_in_all_forms(case) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        model, inputs = case.model(), case.inputs()
        expect_same(in_all_forms(model, *inputs, groups=[[0], [], [1, 5]]))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", CONVS)
def test_models_stay_sparse_to_the_last_row_by_row_layer(kind, monkeypatch) -> None:
    """The point of it: a network that treats rows one by one never writes everything out."""
    written = []
    monkeypatch.setattr(SparseRows, "dense", _watched(SparseRows.dense, written))
    monkeypatch.setattr(MaskedRows, "dense", _watched(MaskedRows.dense, written))
    with storage("pairs"):
        decompose(net(kind), X, EDGES, groups=[[0], [3]])
    limit = {"gcn": 1, "sage": 1, "gin": 1}.get(kind)
    if limit is not None:
        assert len(written) <= limit  # the output itself


def _watched(dense, written):
    def watched(self: SparseRows) -> Tensor:
        written.append(self.shape)
        return dense(self)

    return watched


class InPlaceOnAView(nn.Module):
    """Writes into a view and reads the base, and the other way round."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.conv(x, edge_index)
        h.view(-1, 2, 2).relu_()
        part = h[:, :2]
        h.add_(1)
        return h + F.pad(part, (0, 2))


def test_in_place_writes_are_done_again_with_dense_targets() -> None:
    model = InPlaceOnAView().double().eval()
    expect_same(in_all_forms(model, X, EDGES, groups=[[0], [3, 4]]))


SQUARE = torch.randn(6, 6, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
WITH_ROWS: dict[str, Callable[[Tensor], Tensor]] = {
    "a matrix on top": lambda h: torch.addmm(SQUARE, h, SQUARE),  # the same one as weight
    "scaled": lambda h: torch.addmm(SQUARE.t(), h, SQUARE, beta=0.5, alpha=-2),
    "a column on top": lambda h: torch.addmm(SQUARE[:, :1], h, SQUARE),
    "a row on top": lambda h: torch.addmm(SQUARE[:1], h, SQUARE),
    "a vector on top": lambda h: torch.addmm(SQUARE[0], h, SQUARE),
    "where": lambda h: torch.where(SQUARE > 0, h, SQUARE),
    "where by a vector": lambda h: torch.where(SQUARE[0] > 0, h, SQUARE[:, :1]),
    "masked_fill": lambda h: h.masked_fill(SQUARE > 0, 2.0),
    "addcmul": lambda h: torch.addcmul(SQUARE, h, SQUARE[0]),
    "addcmul onto it": lambda h: torch.addcmul(h, SQUARE, SQUARE[:, :1]),
    "mul": lambda h: h * SQUARE[0] * SQUARE[:, :1],
    "div": lambda h: h / (SQUARE.abs() + 1),
    "sub": lambda h: SQUARE[0] - (SQUARE - h),
    "clamp": lambda h: h.clamp(SQUARE, SQUARE.abs() + 1),
    "cat": lambda h: torch.cat([SQUARE, h, SQUARE[:, :2]], 1),
    "batch norm": lambda h: F.batch_norm(h, SQUARE[0], SQUARE[1].abs(), SQUARE[2], SQUARE[3]),
    "layer norm": lambda h: F.layer_norm(h, (6,), SQUARE[0], SQUARE[1]),
    "prelu": lambda h: F.prelu(h, SQUARE[0]),
    "pow": lambda h: h.abs().pow(SQUARE),
}


@pytest.mark.parametrize("name", WITH_ROWS)
def test_plain_operands_with_as_many_rows_as_columns_as_pairs(name) -> None:
    """Every node by itself: as many pairs as nodes as features, so that size does not tell what has rows."""
    expect_same(in_all_forms(WITH_ROWS[name], SQUARE.flip(0), groups=torch.eye(6)))
    expect_same(in_all_forms(WITH_ROWS[name], SQUARE.flip(0), groups=[[1], [4, 2]]))


def test_operations_that_mix_rows_are_left_to_the_dense_form() -> None:
    from xdegree import Options
    from xdegree.engine.registry import Call, aten
    from xdegree.rules.shape import reduce_linear

    x = Portions(X, sparse_share(X, torch.eye(12, dtype=torch.float64)))
    call = Call(aten.sum.dim_IntList, X.sum(0), 12, Options())
    assert by_pairs(reduce_linear, call, (x, [0]), {}) is None
    call = Call(aten.sum.dim_IntList, X.sum(1), 12, Options())
    assert isinstance(by_pairs(reduce_linear, call, (x, [1]), {}), SparseRows)


def test_pairs() -> None:
    share = torch.tensor([[1.0, 0, 0.5], [0, 0, 1]], dtype=torch.float64)
    x = torch.arange(6.0, dtype=torch.float64).reshape(3, 2)
    pairs = sparse_share(x, share)
    dense = share.unsqueeze(-1) * x
    assert torch.equal(pairs.dense(), dense)
    index = torch.tensor([2, 2, 0, 1])
    assert pairs.reach(index) == 5
    assert torch.equal(pairs.gathered(index).dense(), dense[:, index])
    summed = pairs.gathered(index).summed(torch.tensor([1, 0, 1, 0]), 2)
    assert torch.equal(summed.dense()[:, 1], dense[:, 2] + dense[:, 0])
    assert torch.equal(summed.dense()[:, 0], dense[:, 2] + dense[:, 1])
    for size in (3, 1000):  # by a table, and by sorting
        code = torch.tensor([4, 1, 4])
        added = coalesced(2, size, code, torch.tensor([[1.0], [2.0], [3.0]]))
        assert added.code.tolist() == [1, 4]
        assert added.values.flatten().tolist() == [2.0, 4.0]
    other = coalesced(2, 3, torch.tensor([5]), torch.ones(1, 2, dtype=torch.float64))
    every = union([pairs, other])
    assert every.tolist() == [0, 4, 5]
    assert torch.equal(other.at(every)[:2], torch.zeros(2, 2, dtype=torch.float64))
