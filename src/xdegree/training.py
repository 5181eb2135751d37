"""Training as the paper does it: Adam, full batch, and the state of minimum validation loss."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from tqdm import trange

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class TrainingResult:
    """What the kept state reaches: accuracies in 0..1, and the epoch (from 1) and validation loss that chose it."""

    epoch: int
    val_loss: float
    train_accuracy: float
    val_accuracy: float
    test_accuracy: float


def train_node(
    model: nn.Module, data: Data, *, epochs: int = 1000, lr: float = 0.005, seed: int = 0, progress: bool = True
) -> TrainingResult:
    """Train a node classifier from scratch and leave it, in eval mode, in its state of minimum validation loss.

    The weights are drawn anew from `seed`, so that the result does not depend on how the model was made; the global
    random state stays as it was. Test nodes have no say in which state is kept.

    Args:
        model: called as `model(x, edge_index)`, returns logits [N, classes].
        data: with `x`, `edge_index`, `y`, `train_mask`, `val_mask` and `test_mask`, as `xdegree.datasets` gives it.
        epochs: steps of Adam, each over the whole graph.
        lr: learning rate.
        seed: draws the initial weights, and dropout if there is any.
        progress: show a progress bar.
    """
    if epochs < 1:
        raise ValueError(f"training takes at least one epoch (got {epochs})")
    masks = _masks(data)
    best: dict[str, Tensor] = {}
    best_epoch, best_loss = 0, float("inf")
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        torch.manual_seed(seed)
        _reset(model)
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        with trange(1, epochs + 1, desc="training", unit="epoch", mininterval=0.5, disable=not progress) as bar:
            for epoch in bar:
                _step(model, optimizer, data)
                logits = _predict(model, data)
                loss = float(cross_entropy(logits[masks["val"]], data.y[masks["val"]]))
                if loss < best_loss:
                    best_epoch, best_loss = epoch, loss
                    best = {name: value.clone() for name, value in model.state_dict().items()}
                if epoch % 50 == 0:
                    bar.set_postfix_str(f"best validation loss {best_loss:.3f}", refresh=False)
    if not best:
        raise FloatingPointError(f"the validation loss was never finite in {epochs} epochs; try a smaller lr than {lr}")
    model.load_state_dict(best)
    right = _predict(model, data).argmax(-1) == data.y
    accuracy = {f"{split}_accuracy": float(right[mask].double().mean()) for split, mask in masks.items()}
    return TrainingResult(epoch=best_epoch, val_loss=best_loss, **accuracy)


def _masks(data: Data) -> dict[str, Tensor]:
    """The three masks [N] by name, none of them missing or empty."""
    masks = {split: data.get(f"{split}_mask") for split in SPLITS}
    if bad := [f"{split}_mask" for split, mask in masks.items() if mask is None or not mask.any()]:
        raise ValueError(f"training needs nodes in each of the three splits (missing or empty: {', '.join(bad)})")
    return masks


def _reset(model: nn.Module) -> None:
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, data: Data) -> None:
    model.train()
    optimizer.zero_grad()
    loss = cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()


@torch.no_grad()
def _predict(model: nn.Module, data: Data) -> Tensor:
    model.eval()
    logits: Tensor = model(data.x, data.edge_index)
    return logits
