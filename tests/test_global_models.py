"""Models that look beyond the messages that reach a node: right numbers on every way to an answer."""

import pytest
import torch
import torch.nn.functional as F
from helpers import as_large, assert_close, both_ways, features, ready
from torch import nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer
from torch_geometric.nn import GCNConv, GINConv, SAGEConv

from xdegree import DegreeExplainer, agglomerate, contextual_scores, decompose, explain, interaction, prepare

# Two rings with a bridge, and a chain that leads away from them: far enough for two hops to leave most of it out.
RINGS = [*[(i, (i + 1) % 20) for i in range(20)], *[(20 + i, 20 + (i + 1) % 20) for i in range(20)], (3, 23)]
EDGES = both_ways([*RINGS, *[(i, i + 1) for i in range(39, 89)]])
N = 90
X = features(N)
X[77] = torch.tensor([300.0, -280.0, 90.0, 150.0], dtype=torch.float64)  # an outlier far away
WEIGHT = torch.rand(EDGES.shape[1], generator=torch.Generator().manual_seed(3)).double() + 0.5
WEIGHT[-7] = 40.0


class Two(nn.Module):
    """Two convolutions, and something that looks at everything before, between or behind them."""

    def __init__(self, conv=SAGEConv):
        super().__init__()
        self.first, self.second = conv(4, 5), conv(5, 3)

    def before(self, x, edge_index):
        return x

    def between(self, h, edge_index):
        return h

    def forward(self, x, edge_index):
        x = self.before(x, edge_index)
        h = self.between(self.first(x, edge_index).relu(), edge_index)
        return self.second(h, edge_index)


class BranchOnMax(Two):
    def before(self, x, edge_index):
        return x / 255 if x.max() > 50 else x


class BranchOnItem(Two):
    def before(self, x, edge_index):
        return x / 255 if bool((x.detach().amax() > 50).any()) else x


class WhereOnMax(Two):
    def before(self, x, edge_index):
        return torch.where(x.amax() > 50, x / 255, x)


class ClampOutliers(Two):
    def before(self, x, edge_index):
        return x.clamp(-0.5, 0.5) if (x.abs() > 100).any() else x


class BranchOnNodes(Two):
    def between(self, h, edge_index):
        return h * 3 if len(h) > 60 else h


class BranchOnEdges(Two):
    def between(self, h, edge_index):
        return h.clamp(max=0.7) if edge_index.size(1) > 100 else h


class EveryOtherEdge(Two):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index[:, ::2])


class MinusMean(Two):
    def before(self, x, edge_index):
        return x - x.mean(0)


class MinusMedian(Two):
    def before(self, x, edge_index):
        return x - x.median(0).values


class Standardised(Two):
    def before(self, x, edge_index):
        return (x - x.mean(0)) / x.std(0)


class MinMax(Two):
    def before(self, x, edge_index):
        return (x - x.amin(0)) / (x.amax(0) - x.amin(0))


class GlobalToken(Two):
    def between(self, h, edge_index):
        return h + h.softmax(0).sum(0)


class Ranked(Two):
    def between(self, h, edge_index):
        return h + h.sort(0).values[-3:].sum(0)


class FirstNode(Two):
    def between(self, h, edge_index):
        return h - h[:1]


class ByNodeCount(Two):
    def before(self, x, edge_index):
        return x / x.shape[0]


class DegreeShare(Two):
    def between(self, h, edge_index):
        counts = torch.bincount(edge_index[1], minlength=len(h)).to(h)
        return h * (counts / counts.max()).unsqueeze(1)


class NodeTable(Two):
    def __init__(self, conv=SAGEConv):
        super().__init__(conv)
        self.table = nn.Parameter(torch.zeros(N, 5))

    def between(self, h, edge_index):
        return h + self.table


class EdgeTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.weight = GCNConv(4, 3), nn.Parameter(torch.zeros(EDGES.shape[1]))

    def forward(self, x, edge_index):
        return self.conv(x, edge_index, self.weight.sigmoid())


class Saturated(Two):
    """What differs between a part and the whole is squashed until it looks the same."""

    def between(self, h, edge_index):
        return h * (100 if len(h) == N else 5000)


class SaturatedSoftmax(Saturated):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).softmax(-1)


class SaturatedSigmoid(Saturated):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).sigmoid()


class SaturatedClamp(Saturated):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).clamp(-1, 1)


class SaturatedInside(Saturated):
    def between(self, h, edge_index):
        return super().between(h, edge_index).tanh()


class Quantiles(Two):
    def before(self, x, edge_index):
        return (x - x.quantile(0.5, 0)) / (x.quantile(0.9, 0) - x.quantile(0.1, 0))


class RankOfSize(Two):
    def between(self, h, edge_index):
        return h * (h.norm(dim=1).argsort().argsort().to(h) / len(h)).unsqueeze(1)


class Eigenvectors(Two):
    """Positions from the Laplacian, as graph transformers take them."""

    def between(self, h, edge_index):
        a = torch.zeros(len(h), len(h), dtype=h.dtype)
        a[edge_index[0], edge_index[1]] = 1
        return h + torch.linalg.eigh(torch.diag(a.sum(1)) - a)[1][:, 1:6].abs()


class OtherEdges(Two):
    """Messages along edges that nobody gave it."""

    def between(self, h, edge_index):
        near = torch.cdist(h, h).topk(3, largest=False).indices
        return torch.zeros_like(h).index_add(0, torch.arange(len(h)).repeat_interleave(3), h[near.flatten()])


class HeldFeatures(Two):
    """Looks at features that it holds itself."""

    def before(self, x, edge_index):
        self.kept = X.mean() if not hasattr(self, "kept") else self.kept
        return x * self.kept + len(x)


GLOBAL = [
    *(BranchOnMax, WhereOnMax, ClampOutliers, BranchOnNodes, BranchOnEdges, EveryOtherEdge, MinusMean, MinusMedian),
    *(
        Standardised,
        MinMax,
        GlobalToken,
        Ranked,
        FirstNode,
        ByNodeCount,
        DegreeShare,
        NodeTable,
        EdgeTable,
        HeldFeatures,
    ),
    BranchOnItem,
    *(SaturatedSoftmax, SaturatedSigmoid, SaturatedClamp, SaturatedInside),
    *(Quantiles, RankOfSize, Eigenvectors, OtherEdges),
]


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch) -> str:
    """Graphs that are worked on whole, and graphs that parts are cut out of first."""
    if request.param == "large":
        as_large(monkeypatch)
    return request.param


def directly(model, x=X, edge_index=EDGES, **kwargs):
    """Every node as a group, on the user's own call: ``[explained, contributing, class]``."""
    d = decompose(model, x, edge_index, groups=[[node] for node in range(len(x))], **kwargs)
    return d.total, (d.logits or d).target.movedim(0, 1)


@pytest.mark.parametrize("kind", GLOBAL)
def test_explain(kind, size):
    model = ready(kind())
    with torch.no_grad():
        own = model(X, EDGES)
    total, expected = directly(model)
    assert torch.equal(total, own)
    for index in (5, 30, 0):
        e = explain(model, X, EDGES, index=index)
        assert_close(e.prediction, own[index])
        assert_close(e.class_scores, expected[index], atol=1e-9)
    for found in (
        explain(model, X, EDGES, index=[5, 30, 5]),
        explain(model, X, EDGES, index="all"),
        [prepare(model, X, EDGES).explain(index=index) for index in (60, 2)],
        [explain(model, Data(x=X, edge_index=EDGES), index=41)],
    ):
        for e in found:
            assert_close(e.class_scores, expected[e.index], atol=1e-9)


@pytest.mark.parametrize("kind", GLOBAL[:20:3])
def test_edges_and_features(kind, size):
    """By groups that are asked about on the whole graph: what a part says must be the same."""
    model = ready(kind())
    e = explain(model, X, EDGES, index=5, of="feature")
    mask = torch.zeros(4, N, 4, dtype=torch.bool)
    for group, (node, feature) in zip(mask, [(5, 0), (6, 2), (77, 1), (4, 3)], strict=True):
        group[node, feature] = True
    d = decompose(model, X, EDGES, groups=mask)
    got = torch.stack([e.feature_scores[5, 0], e.feature_scores[6, 2], e.feature_scores[77, 1], e.feature_scores[4, 3]])
    assert_close(got, d.target[:, 5, e.target])
    e = explain(model, X, EDGES, index=5, of="edge")
    edges = [4, 5, 24, 70]
    d = decompose(model, X, EDGES, groups=[[edge] for edge in edges], of="edge")
    assert_close(e.edge_scores[edges], d.target[:, 5, e.target])


@pytest.mark.parametrize("kind", GLOBAL[:20:3])
def test_groups(kind, size):
    model = ready(kind())
    d = decompose(model, X, EDGES, groups=[[5], [77, 4], [5, 77, 4]])
    c = int(d.total[5].argmax())
    f = d.target[:, 5, c]
    assert interaction(model, X, EDGES, index=5, a=[5], b=[77, 4]) == pytest.approx(float(f[2] - f[0] - f[1]), abs=1e-9)
    tree = agglomerate(model, X, EDGES, index=5, max_levels=1)
    for nodes, score in tree.leaves:
        [node] = nodes
        assert score == pytest.approx(float(directly_one(model, node)[5, c]), abs=1e-9)
        if node > 8:
            break
    assert contextual_scores(model, X, EDGES, index=5, groups=[[77]]).isfinite().all()


def directly_one(model, node):
    return decompose(model, X, EDGES, groups=[[node]]).target[0]


@pytest.mark.parametrize("kind", GLOBAL[::3])
def test_pyg_explainer(kind, size):
    model = ready(kind())
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explainer = Explainer(
        model, DegreeExplainer(), explanation_type="model", node_mask_type="object", model_config=config
    )
    _, expected = directly(model)
    c = int(model(X, EDGES)[5].argmax())
    assert_close(explainer(X, EDGES, index=5).node_mask[:, 0], expected[5, :, c])


class Weighted(nn.Module):
    """Looks at all edge weights."""

    def __init__(self, how):
        super().__init__()
        self.first, self.second, self.how = GCNConv(4, 5), GCNConv(5, 3), how

    def forward(self, x, edge_index, edge_weight):
        ways = {
            "max": lambda w: w / w.max(),
            "min-max": lambda w: (w - w.min()) / (w.max() - w.min()),
            "mean": lambda w: w - w.mean() + 1,
            "rank": lambda w: w.argsort().argsort().to(w) / len(w),
            "softmax": lambda w: w.softmax(0) * len(w),
            "length": lambda w: w * len(w) / 100,
        }
        w = ways[self.how](edge_weight)
        return self.second(self.first(x, edge_index, w).relu(), edge_index, w)


@pytest.mark.parametrize("how", ["max", "min-max", "mean", "rank", "softmax", "length"])
@pytest.mark.parametrize("named", [True, False])
def test_edge_weights(how, named, size):
    model = ready(Weighted(how))
    args, kwargs = ((), {"edge_weight": WEIGHT}) if named else ((WEIGHT,), {})
    d = decompose(model, X, EDGES, *args, groups=[[node] for node in range(N)], **kwargs)
    for index in (5, 41):
        e = explain(model, X, EDGES, *args, index=index, **kwargs)
        assert_close(e.prediction, d.total[index])
        assert_close(e.class_scores, d.target[:, index])
    for e in explain(model, X, EDGES, *args, index="all", **kwargs):
        assert_close(e.class_scores, d.target[:, e.index])


def test_as_many_edges_as_nodes(size):
    """What has a row per node and what has one per edge is told by names; a wrong guess is noticed."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(4, 3)

        def forward(self, x, edge_index, weights, shift):
            return self.conv(x, edge_index, weights) + shift

    ring = torch.stack([torch.arange(N), torch.arange(N).roll(-1)])
    weight, shift = WEIGHT[:N], features(N, 3, seed=5)
    model = ready(Net())
    d = decompose(model, X, ring, weight, shift, groups=[[node] for node in range(N)])
    for index in (5, 60):
        assert_close(explain(model, X, ring, weight, shift, index=index).class_scores, d.target[:, index])
    named = ready(Weighted("length"))
    d = decompose(named, X, ring, edge_weight=weight, groups=[[node] for node in range(N)])
    assert_close(explain(named, X, ring, edge_weight=weight, index=9).class_scores, d.target[:, 9])


@pytest.mark.parametrize("warm", [True, False])
def test_cached_convolutions(warm, size):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = GCNConv(4, 5, cached=True), GCNConv(5, 3, cached=True)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    model = ready(Net())
    if warm:
        with torch.no_grad():
            model(X, EDGES)
    _, expected = directly(model)
    for index in (5, 60):
        assert_close(explain(model, X, EDGES, index=index).class_scores, expected[index])
    assert_close(explain(model, X, EDGES, index="all")[7].class_scores, expected[7])


def test_edges_made_in_inference_mode(size):
    with torch.inference_mode():
        x, edge_index = X.clone(), EDGES.clone()
    model = ready(Two())
    assert_close(explain(model, x, edge_index, index=5).class_scores, directly(model)[1][5])
    assert_close(prepare(model, x, edge_index).explain(index=5).class_scores, directly(model)[1][5])


def test_constant_features_hide_nothing(size):
    """Where all nodes are alike a mean over them is the same on a part: outputs agree, contributions must too."""
    x = torch.ones(N, 4, dtype=torch.float64)
    for kind in (MinusMean, GlobalToken):
        model = ready(kind())
        _, expected = directly(model, x)
        assert_close(explain(model, x, EDGES, index=5).class_scores, expected[5])
        assert_close(explain(model, x, EDGES, index=5, edge_scores="mean").class_scores, expected[5])


def test_a_normalisation_over_the_graph(size):
    from torch_geometric.nn import GraphNorm, PairNorm

    class Net(nn.Module):
        def __init__(self, norm):
            super().__init__()
            self.conv, self.norm = GINConv(nn.Linear(4, 3)), norm

        def forward(self, x, edge_index):
            return F.elu(self.norm(self.conv(x, edge_index)))

    for norm in (GraphNorm(3), PairNorm()):
        model = ready(Net(norm))
        _, expected = directly(model)
        assert_close(explain(model, X, EDGES, index=5).class_scores, expected[5], atol=1e-9)
