"""What the tables of layers and models have in common: the case, the graph, the features and the ways they go in.

A case without a mark obeys all laws; the marks below say which law another case breaks, and why it must.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, features, ready
from torch import Tensor, nn
from torch_geometric.utils import degree, to_dense_adj

Build = Callable[[], Callable[..., Any]]


@dataclass(frozen=True)
class Case:
    """A layer or model with its arguments, node features first."""

    package: str
    name: str
    build: Build
    args: tuple[Any, ...] = ()
    variant: str = ""
    x: str = "nodes"
    everything: bool = True
    nothing: bool = True
    renumber: bool = True
    exact: bool = True

    @property
    def id(self) -> str:
        return f"{self.package}.{self.name}" + (f" {self.variant}" if self.variant else "")

    def model(self) -> Callable[..., Any]:
        """The model in float64 and eval mode, its parameters and running statistics seeded."""
        torch.manual_seed(0)
        model = self.build()
        return seeded(model) if isinstance(model, nn.Module) else model

    @property
    def laws(self) -> list[str]:
        """The laws that hold."""
        marks = {"total": self.exact, "nothing": self.nothing, "everything": self.everything, "renumber": self.renumber}
        return ["finite", "one_pass", *(law for law, holds in marks.items() if holds)]

    def inputs(self) -> tuple[Any, ...]:
        return (INPUTS[self.x].clone(), *self.args)


def seeded(model: nn.Module) -> nn.Module:
    model = ready(model)
    generator = torch.Generator().manual_seed(1)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(torch.randn(buffer.shape, generator=generator) / 4)
        if name.endswith("running_var"):
            buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
    return model


class With(nn.Module):
    """A module that a function calls, so that the node features come first."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x: Tensor, *args: Any) -> Any:
        return self.call(self.module, x, *args)


# Why a law does not hold, each by a rule of the paper or by the model itself.
SOFTMAX = {"everything": False}  # a softmax is shared by exp|γ| : exp|β|, so that nothing has a share too
WEIGHTS = {"everything": False, "nothing": False}  # the softmax itself is an output
OTHERS = {"everything": False}  # the nodes are not alone: edge features, positions or labels contribute
ZEROS = {"everything": False}  # a bias on zeros is background (no neighbors of a type, all units dead)
FUSED = {"exact": False}  # a fused kernel is taken apart, so that the last bits differ
ORDER = {"renumber": False}  # the model depends on the order of the nodes, or asks for a sorted one


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, o in pairwise(sizes):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def noise(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


N, E = 12, EDGES.shape[1]
ATTR = noise(E, 2)
WEIGHT = noise(E, seed=4).abs() + 0.1
UNIT = torch.rand(E, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
TYPE = torch.arange(E) % 3
PAIR_ATTR = noise(PAIR_EDGES.shape[1], 2)
POS = noise(N, 3, seed=6)
NORMAL = nn.functional.normalize(noise(N, 3, seed=7))
KIND = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 0, 1, 2, 1])
CLUSTER = torch.tensor([0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4])
INDEX = PAIR_BATCH
DEGREE = degree(degree(EDGES[1], N).long()).long()
INPUTS = {
    "nodes": features(N, 4),
    "wide": features(N, 8),
    "positive": features(N, 4).abs() + 0.1,
    "probabilities": features(N, 3).softmax(-1),
    "positions": POS,
    "one": features(N, 1),
}


# Ways in which a layer takes its node features.


def on_dense(m: Any, x: Tensor, edge_index: Tensor) -> Any:
    out = m(x.unsqueeze(0), to_dense_adj(edge_index, max_num_nodes=len(x)))
    return out.squeeze(0) if isinstance(out, Tensor) else out


def as_batch(m: Any, x: Tensor) -> Any:
    return m(x.unsqueeze(0))


def by_sign(m: Any, x: Tensor, edge_index: Tensor) -> Any:
    return m(x, edge_index[:, ::2], edge_index[:, 1::2])


def by_type(x: Tensor) -> dict[str, Tensor]:
    return {"a": x[:7], "b": x[7:]}


def edges_by_type() -> dict[tuple[str, str, str], Tensor]:
    side = EDGES >= 7
    edges = {}
    for i, source in enumerate("ab"):
        for j, target in enumerate("ab"):
            chosen = EDGES[:, (side[0] == bool(i)) & (side[1] == bool(j))]
            edges[source, "to", target] = chosen - torch.tensor([[7 * i], [7 * j]])
    return edges


TYPED = edges_by_type()
META = (["a", "b"], list(TYPED))


def hetero(m: Any, x: Tensor, *_: Any) -> Any:
    return m(by_type(x), TYPED)


def case(package: str, name: str, build: Build, *args: Any, call: Any = None, variant: str = "", **more: Any) -> Case:
    built = build if call is None else lambda: With(build(), call)
    return Case(package, name, built, args, variant, **more)
