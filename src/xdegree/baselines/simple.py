"""Methods that need no training: those that know no model, gradients, attention, occlusion."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from .instance import Instance
from .interface import Method, Scores, of_edges, of_nodes, own_copy, with_edge_weights

IGReading = Literal["signed", "absolute", "norm"]


def random(seed: int = 0) -> Method:
    """Scores without reason; the same seed gives the same scores for the same prediction."""

    def method(one: Instance) -> Scores:
        own = int(one.nodes[one.row]) if one.nodes is not None else one.row
        generator = torch.Generator().manual_seed(seed * 1_000_003 + own)
        return Scores(
            of_nodes(one, torch.rand(len(one.x), generator=generator)).node,
            one.of_edges(torch.rand(one.edge_index.shape[1], generator=generator)),
        )

    return method


def hop_distance() -> Method:
    """The nearer to the explained node, the better, with no model at all; for predictions of nodes only."""
    return _nearness


def _nearness(one: Instance) -> Scores:
    """One over one plus the distance, so that nodes outside, with 0, come last."""
    return of_nodes(one, 1 / (1 + one.distance().double()))


def grad(of: str = "edge") -> Method:
    """GRAD: the size of the gradient of the explained output.

    Args:
        of: ``"edge"``, with respect to the adjacency: the weight of each edge's message in every layer, at 1;
            ``"node"``, with respect to the features: the sum over the features of a node.
    """
    if of not in ("edge", "node"):
        raise ValueError(f'of is "edge" or "node" (got {of!r})')
    return _grad_of_edges if of == "edge" else _grad_of_nodes


def _grad_of_edges(one: Instance) -> Scores:
    weights = torch.ones(one.edge_index.shape[1], dtype=one.x.dtype, device=one.x.device, requires_grad=True)
    return of_edges(one, _gradient(with_edge_weights(one, weights)[one.target], weights).abs())


def _grad_of_nodes(one: Instance) -> Scores:
    return of_nodes(one, _feature_gradient(one).abs().sum(1))


def grad_times_input() -> Method:
    """The gradient with respect to the features times the features, summed over those of a node; signed."""
    return lambda one: of_nodes(one, (_feature_gradient(one) * one.x).sum(1))


def _feature_gradient(one: Instance) -> Tensor:
    x = one.x.detach().clone().requires_grad_()
    return _gradient(one.output(x)[one.target], x)


def _gradient(value: Tensor, wanted: Tensor) -> Tensor:
    """Zeros where the value does not depend on what is wanted."""
    (found,) = torch.autograd.grad(value, wanted, allow_unused=True)
    return torch.zeros_like(wanted) if found is None else found


def attention() -> Method:
    """The attention coefficients of an edge, averaged over all attention layers (and heads), as the paper's GAT row."""
    return _attention


@torch.no_grad()
def _attention(one: Instance) -> Scores:
    found: list[Tensor] = []
    twin = own_copy(one.model)
    e = one.edge_index.shape[1]

    def note(_layer: MessagePassing, inputs: tuple[object, ...], _output: object) -> None:
        arguments = inputs[0]
        alpha = arguments.get("alpha") if isinstance(arguments, dict) else None
        if isinstance(alpha, Tensor):
            found.append(alpha.detach().reshape(len(alpha), -1).mean(1)[:e])  # self-loops stand at the end

    if bool((one.edge_index[0] == one.edge_index[1]).any()):
        raise ValueError("attention is read edge by edge, but this graph has self-loops, which such layers renumber")
    for module in twin.modules():
        if isinstance(module, MessagePassing):
            module.register_message_forward_hook(note)
    twin(one.x, one.edge_index, **one.kwargs)
    if not found:
        raise ValueError("attention needs a model with attention layers, such as GATConv (this one has none)")
    return of_edges(one, torch.stack(found).mean(0))


def occlusion() -> Method:
    """How much the explained output falls when a node's features are set to 0; signed."""
    return _occlusion


def _occlusion(one: Instance) -> Scores:
    places = one.local_field
    kept = torch.ones(len(places), len(one.x), dtype=torch.bool, device=one.x.device)
    kept[torch.arange(len(places)), places] = False
    scores = one.x.new_zeros(len(one.x))
    scores[places] = one.prediction[one.target] - one.masked(kept)[:, one.target]
    return of_nodes(one, scores)


def integrated_gradients(
    steps: int = 50, reading: IGReading = "signed", baseline: Literal["zero", "mean"] | Tensor = "zero"
) -> Method:
    """Integrated gradients (Captum's), summed over the features of a node.

    Args:
        steps: of the integral; signed scores then sum to the difference of the outputs up to its error.
        reading: ``"signed"``, of the explained class; ``"absolute"``, the size of that; ``"norm"``, the Euclidean norm
            over all classes of what remains after the mean over classes is taken off: how much a node matters to
            whichever class, without sign. For models with one output it is the absolute value.
        baseline: the features that the path starts from: ``"zero"``; ``"mean"``, of all nodes, but 0 in columns that
            do not vary; or a tensor ``[F]`` (or one that broadcasts to the features).
    """
    if reading not in get_args(IGReading):
        raise ValueError(f"reading must be one of {get_args(IGReading)} (got {reading!r})")
    if not isinstance(baseline, Tensor) and baseline not in ("zero", "mean"):
        raise ValueError(f'baseline is "zero", "mean" or a tensor (got {baseline!r})')
    try:
        from captum.attr import IntegratedGradients  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise ImportError('integrated gradients need Captum: pip install "xdegree[bench]"') from error

    def of_class(one: Instance, start: Tensor, target: int) -> Tensor:
        # A leading dimension of one, because Captum repeats the first dimension once per step.
        explained = IntegratedGradients(lambda xs: one.outputs(xs)[:, target])
        found: Tensor = explained.attribute(one.x.detach().unsqueeze(0), start.unsqueeze(0), n_steps=steps)
        return found[0].sum(1).to(one.x.dtype)

    def method(one: Instance) -> Scores:
        start = _start(one, baseline)
        if reading != "norm" or len(one.prediction) == 1:
            scores = of_class(one, start, one.target)
            return of_nodes(one, scores if reading == "signed" else scores.abs())
        table = torch.stack([of_class(one, start, target) for target in range(len(one.prediction))], 1)
        return of_nodes(one, torch.linalg.vector_norm(table - table.mean(1, keepdim=True), dim=1))

    return method


def _start(one: Instance, baseline: str | Tensor) -> Tensor:
    """The features ``[n, F]`` at the start of the path."""
    if isinstance(baseline, Tensor):
        return baseline.to(one.x).expand_as(one.x)
    return torch.zeros_like(one.x) if baseline == "zero" else one.mean.expand_as(one.x)
