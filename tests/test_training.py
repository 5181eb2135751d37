import dataclasses
import sys

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from xdegree.models import GCN
from xdegree.training import train_node


def two_rings(noise: float = 0.3) -> Data:
    """Two rings of ten nodes; the class is the ring, and the features nearly tell it."""
    generator = torch.Generator().manual_seed(0)
    ring = torch.arange(10)
    one = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    y = torch.tensor([0] * 10 + [1] * 10)
    part = torch.arange(20) % 5
    return Data(
        x=torch.stack([y, 1 - y], 1) + noise * torch.randn(20, 2, generator=generator),
        edge_index=torch.cat([one, one + 10], 1),
        y=y,
        train_mask=part < 3,
        val_mask=part == 3,
        test_mask=part == 4,
    )


class Recorder(nn.Module):
    """A model that notes the validation loss of each evaluation."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        self.gcn = GCN(2, 2, hidden=4)
        self.data, self.losses = data, []

    def forward(self, x, edge_index):
        logits = self.gcn(x, edge_index)
        if not self.training:
            mask = self.data.val_mask
            self.losses.append(float(cross_entropy(logits[mask], self.data.y[mask])))
        return logits


def test_training_learns_and_leaves_the_model_in_eval_mode():
    data, model = two_rings(), GCN(2, 2)
    result = train_node(model, data, epochs=60, progress=False)
    assert not model.training
    assert (result.train_accuracy, result.val_accuracy, result.test_accuracy) == (1, 1, 1)
    assert (model(data.x, data.edge_index).argmax(-1) == data.y).all()


def test_training_keeps_the_state_of_minimum_validation_loss():
    data = two_rings()
    data.y[data.val_mask] = 1 - data.y[data.val_mask]  # the better it learns, the worse it does here
    model = Recorder(data)
    result = train_node(model, data, epochs=80, lr=0.05, progress=False)
    *history, kept = model.losses
    assert len(history) == 80
    assert kept == min(history) == result.val_loss
    assert result.epoch == history.index(kept) + 1
    assert kept < history[-1]  # so the last state is not the best


def test_accuracies_are_those_of_the_kept_state():
    data, model = two_rings(noise=3), GCN(2, 2)
    result = train_node(model, data, epochs=5, progress=False)
    right = model(data.x, data.edge_index).argmax(-1) == data.y
    for split in ("train", "val", "test"):
        assert getattr(result, f"{split}_accuracy") == float(right[data[f"{split}_mask"]].double().mean())


def test_same_seed_same_model_and_the_random_state_stays():
    data, models = two_rings(), [GCN(2, 2) for _ in range(3)]
    before = torch.get_rng_state()
    results = [
        train_node(model, data, epochs=3, seed=seed, progress=False)
        for model, seed in zip(models, (1, 1, 2), strict=True)
    ]
    assert torch.equal(torch.get_rng_state(), before)
    first, again, other = (model.convs[0].lin.weight for model in models)
    assert torch.equal(first, again)
    assert results[0] == results[1]
    assert not torch.equal(first, other)


def test_the_result_is_frozen():
    result = train_node(GCN(2, 2), two_rings(), epochs=1, progress=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.epoch = 7


def test_the_progress_bar_can_be_seen_and_hidden(capsys, monkeypatch):
    train_node(GCN(2, 2), two_rings(), epochs=2, progress=False)
    assert capsys.readouterr().err == ""
    train_node(GCN(2, 2), two_rings(), epochs=2)
    assert capsys.readouterr().err == "", "no bars in logs"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    train_node(GCN(2, 2), two_rings(), epochs=2)
    assert "2/2" in capsys.readouterr().err


def test_bad_input_is_refused():
    data = two_rings()
    with pytest.raises(ValueError, match=r"epochs must not be negative \(got -1\)"):
        train_node(GCN(2, 2), data, epochs=-1)
    data.val_mask = torch.zeros(20, dtype=torch.bool)
    del data.test_mask
    with pytest.raises(ValueError, match=r"missing or empty: val_mask, test_mask"):
        train_node(GCN(2, 2), data)


def test_a_loss_that_is_never_finite_is_an_error():
    data = two_rings()
    data.x = data.x * float("nan")
    with pytest.raises(FloatingPointError, match="never finite in 2 epochs"):
        train_node(GCN(2, 2), data, epochs=2, progress=False)


def test_weight_decay_and_a_sparse_first_layer_take_part():
    data = two_rings()
    results = [
        train_node(GCN(2, 2), data, epochs=10, progress=False, **settings)
        for settings in ({}, {"first_l1": 0.1}, {"weight_decay": 0.1}, {"first_l1": 0.1})
    ]
    assert len({result.val_loss for result in results}) == 3
    assert results[1] == results[3]
    plain, sparse = GCN(2, 2), GCN(2, 2)
    train_node(plain, data, epochs=50, progress=False)
    train_node(sparse, data, epochs=50, first_l1=0.1, progress=False)
    assert sparse.convs[0].lin.weight.abs().sum() < plain.convs[0].lin.weight.abs().sum()
