"""Training as the paper does it: Adam, and the state of minimum validation loss."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv
from tqdm import trange

from .datasets.dataset import SPLITS, Dataset


@dataclass(frozen=True)
class TrainingResult:
    """What the kept state reaches: accuracies in 0..1, and the epoch (from 1) and validation loss that chose it."""

    epoch: int
    """The one whose state was kept, from 1."""
    val_loss: float
    """Of that state."""
    train_accuracy: float
    """In 0..1, as the other two."""
    val_accuracy: float
    """On the validation split."""
    test_accuracy: float
    """On the test split, which does not affect the choice."""


def train_node(
    model: nn.Module,
    data: Data,
    *,
    epochs: int = 1000,
    lr: float = 0.005,
    weight_decay: float = 0.0,
    first_l1: float = 0.0,
    seed: int = 0,
    progress: bool = True,
) -> TrainingResult:
    """Train a node classifier from scratch and leave it, in eval mode, in its state of minimum validation loss.

    The weights are drawn anew from `seed`, so that the result does not depend on how the model was made; the global
    random state stays as it was. Test nodes do not affect which state is kept.

    Args:
        model: called as `model(x, edge_index)`, returns logits [N, classes].
        data: with `x`, `edge_index`, `y`, `train_mask`, `val_mask` and `test_mask`, as `xdegree.datasets` gives it.
        epochs: steps of Adam, each over the whole graph; 0 leaves the model with its first weights, for controls.
        lr: learning rate.
        weight_decay: of Adam; the paper has none.
        first_l1: weight of the L1 norm of the first layer's weight matrix in the loss, which turns off features that
            tell nothing; the paper has none.
        seed: draws the initial weights, and dropout if there is any.
        progress: show a progress bar.
    """
    masks = _masks(data)
    first = next(weight for weight in model.parameters() if weight.dim() == 2)

    def step(optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        loss = cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        if first_l1:
            loss = loss + first_l1 * first.abs().sum()
        loss.backward()
        optimizer.step()

    def val_loss() -> float:
        logits = model(data.x, data.edge_index)
        return float(cross_entropy(logits[masks["val"]], data.y[masks["val"]]))

    with _same_graph(model):
        best = _fit(model.eval(), step, val_loss, epochs, lr, weight_decay, seed, progress)
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(-1) == data.y
    accuracy = {f"{split}_accuracy": float(right[mask].double().mean()) for split, mask in masks.items()}
    return TrainingResult(epoch=best[0], val_loss=best[1], **accuracy)


def train_graph(
    model: nn.Module,
    dataset: Dataset,
    *,
    epochs: int = 30,
    lr: float = 0.005,
    weight_decay: float = 0.0,
    batch_size: int = 64,
    seed: int = 0,
    progress: bool = True,
) -> TrainingResult:
    """Train a graph classifier from scratch, in mini-batches, and leave it in its state of minimum validation loss.

    As `train_node` in all else.

    Args:
        model: called as `model(x, edge_index, batch)`, returns logits [graphs, classes].
        dataset: graphs and their three splits.
        epochs: passes over the training graphs (the paper: 30 for MUTAG, 10 for Graph-SST2).
        lr: learning rate.
        weight_decay: of Adam.
        batch_size: graphs in one step of Adam (the paper does not say).
        seed: draws the initial weights and the order of the graphs.
        progress: show a progress bar.
    """
    if empty := [split for split in SPLITS if not len(dataset.splits[split])]:
        raise ValueError(f"training needs graphs in each of the three splits (empty: {', '.join(empty)})")
    parts = {split: [_bare(graph) for graph in dataset.part(split)] for split in SPLITS}
    validation = _batches(parts["val"])

    def step(optimizer: torch.optim.Optimizer) -> None:
        for batch in DataLoader(parts["train"], batch_size=batch_size, shuffle=True):
            optimizer.zero_grad()
            cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()

    def val_loss() -> float:
        losses = [cross_entropy(logits, y, reduction="sum") for logits, y in _predictions(model, validation)]
        return float(torch.stack(losses).sum()) / len(parts["val"])

    best = _fit(model.eval(), step, val_loss, epochs, lr, weight_decay, seed, progress)
    accuracy = {f"{split}_accuracy": _accuracy(model, _batches(parts[split])) for split in SPLITS}
    return TrainingResult(epoch=best[0], val_loss=best[1], **accuracy)


def _fit(
    model: nn.Module,
    step: Callable[[torch.optim.Optimizer], None],
    val_loss: Callable[[], float],
    epochs: int,
    lr: float,
    weight_decay: float,
    seed: int,
    progress: bool,
) -> tuple[int, float]:
    """Train and keep the state of minimum validation loss: its epoch and its loss."""
    if epochs < 0:
        raise ValueError(f"epochs must not be negative (got {epochs})")
    best: dict[str, Tensor] = {}
    best_epoch, best_loss = 0, float("inf")
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        torch.manual_seed(seed)
        _reset(model)
        if not epochs:
            with torch.no_grad():
                return 0, val_loss()
        optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
        with trange(
            1, epochs + 1, desc="training", unit="epoch", mininterval=0.5, disable=None if progress else True
        ) as bar:
            for epoch in bar:
                model.train()
                step(optimizer)
                model.eval()
                with torch.no_grad():
                    loss = val_loss()
                if loss < best_loss:
                    best_epoch, best_loss = epoch, loss
                    best = {name: value.clone() for name, value in model.state_dict().items()}
                if epoch % 50 == 0 or epochs < 100:
                    bar.set_postfix_str(f"best validation loss {best_loss:.3f}", refresh=False)
    if not best:
        raise FloatingPointError(f"the validation loss was never finite in {epochs} epochs; try a smaller lr than {lr}")
    model.load_state_dict(best)
    return best_epoch, best_loss


@contextmanager
def _same_graph(model: nn.Module) -> Iterator[None]:
    """Let convolutions keep their normalised edges, a third of the time of a step, while there is only one graph."""
    convs = [module for module in model.modules() if isinstance(module, GCNConv) and not module.cached]
    for conv in convs:
        conv.cached = True
    try:
        yield
    finally:
        for conv in convs:
            conv.cached, conv._cached_edge_index, conv._cached_adj_t = False, None, None


def _masks(data: Data) -> dict[str, Tensor]:
    """The three masks [N] by name, none of them missing or empty."""
    masks: dict[str, Tensor] = {split: data.get(f"{split}_mask") for split in SPLITS}
    if bad := [f"{split}_mask" for split, mask in masks.items() if mask is None or not mask.any()]:
        raise ValueError(f"training needs nodes in each of the three splits (missing or empty: {', '.join(bad)})")
    return masks


def _reset(model: nn.Module) -> None:
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()


def _bare(graph: Data) -> Data:
    """Without what training does not need, such as words, which would have to be put together for each batch."""
    return Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)


def _batches(graphs: Sequence[Data], size: int = 2048) -> list[Batch]:
    return [Batch.from_data_list(list(graphs[start : start + size])) for start in range(0, len(graphs), size)]


@torch.no_grad()
def _predictions(model: nn.Module, batches: Sequence[Batch]) -> list[tuple[Tensor, Tensor]]:
    return [(model(batch.x, batch.edge_index, batch.batch), batch.y) for batch in batches]


def graph_accuracy(model: nn.Module, graphs: Sequence[Data]) -> float:
    """The share of graphs that a model in eval mode predicts right."""
    return _accuracy(model, _batches([_bare(graph) for graph in graphs]))


def _accuracy(model: nn.Module, batches: Sequence[Batch]) -> float:
    right = [logits.argmax(-1) == y for logits, y in _predictions(model, batches)]
    return float(torch.cat(right).double().mean())
