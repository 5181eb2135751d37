# ruff: noqa: E501  (tables of one-line calls)
"""The report card: calls of `explain` on models as people write them, each with the laws that it must obey.

``make coverage`` runs it and prints how many work, with the reason of each miss; the suite runs it too.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import example_models as m
import torch
import torch_geometric.nn as pyg
from cases import DEGREE, META, PAIR_ATTR, TYPED, noise, seeded
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, features
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from xdegree import explain
from xdegree.testing import ALWAYS, check_laws

N, E = 12, EDGES.shape[1]
X, POS, Z = features(), noise(N, 3, seed=6), torch.arange(N) * 5 % 7
SORTED = EDGES[:, EDGES[1].argsort(stable=True)]
TYPE, ATTR = torch.arange(E) % 3, noise(E, 2)
LINKS = torch.tensor([[0, 3, 9, 5], [2, 6, 11, 1]])
DATA = Data(x=X, edge_index=EDGES, y=torch.arange(N) % 3)
GRAPHS = Batch.from_data_list(
    [Data(x=X[:5], edge_index=PAIR_EDGES[:, (PAIR_EDGES < 5).all(0)], edge_attr=PAIR_ATTR[(PAIR_EDGES < 5).all(0)]),
     Data(x=X[5:], edge_index=PAIR_EDGES[:, (PAIR_EDGES >= 5).all(0)] - 5, edge_attr=PAIR_ATTR[(PAIR_EDGES >= 5).all(0)])]
)  # fmt: skip
XS = {"a": X[:7], "b": X[7:]}
USERS, MOVIES = 5, 7
RATES = torch.tensor([[0, 0, 1, 2, 3, 4, 4, 1], [0, 1, 2, 3, 4, 5, 6, 0]])
TWO = {("user", "rates", "movie"): RATES, ("movie", "rev_rates", "user"): RATES.flip(0)}
TWO_META = (["user", "movie"], list(TWO))


@dataclass(frozen=True)
class Example:
    """One call, as somebody would type it."""

    name: str
    build: Callable[[], Any]
    args: tuple[Any, ...] = ()
    ask: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    """Laws that do not hold: something beside the nodes contributes, or the paper's softmax is shared."""
    prepare: Callable[[Any], Any] = lambda model: model
    """What happened to the model before."""

    def model(self) -> Any:
        torch.manual_seed(0)
        model = self.build()
        model = seeded(model) if isinstance(model, nn.Module) else model
        return self.prepare(model)


def ex(name: str, build: Callable[[], Any], *args: Any, without: tuple[str, ...] = (), prepare: Any = lambda m: m, **ask: Any) -> Example:
    return Example(name, build, args, ask, without, prepare)


def tried(example: Example) -> str:
    """Why a call does not work or breaks a law; empty if all is well."""
    model = example.model()
    given = {name: example.ask[name] for name in ("start", "output") if name in example.ask}
    laws = [law for law in ALWAYS if law not in example.without]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = explain(model, *example.args, **example.ask)
            one = found[0] if example.ask.get("index") == "all" or isinstance(example.ask.get("index"), list) else found
            if not all(bool(s.isfinite().all()) for s in _tensors(one.scores)):
                return "scores are not finite"
            if not any(bool(s.any()) for s in _tensors(one.scores)):
                return "all scores are 0"
            if example.ask.get("of", "node") in ("node", "feature"):
                check_laws(model, *example.args, laws=laws, **given)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is the reason)
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def _tensors(value: Any) -> list[Tensor]:
    return list(value.values()) if isinstance(value, dict) else [value]


def warm(*args: Any) -> Callable[[Any], Any]:
    def called(model: Any) -> Any:
        with torch.no_grad():
            model(*args)
        return model

    return called


def powers() -> list[Tensor]:
    adj = to_torch_coo_tensor(EDGES, size=N).to_dense().double()
    return [X, adj @ X, adj @ adj @ X]


def movielens() -> HeteroData:
    data = HeteroData()
    data["user"].node_id, data["movie"].node_id = torch.arange(USERS), torch.arange(MOVIES)
    data["movie"].x = features(MOVIES, 4)
    for kind, edges in TWO.items():
        data[kind].edge_index = edges
    data["user", "rates", "movie"].edge_label_index = RATES[:, :3]
    return data


def initialised(*args: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Models with lazy layers, run once."""

    def made(build: Callable[[], Any]) -> Callable[[], Any]:
        def built() -> Any:
            model = build()
            with torch.no_grad():
                model(*[_float(a) for a in args])
            return model

        return built

    return made


def _float(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _float(v) for k, v in value.items()}
    if isinstance(value, HeteroData):
        value = value.clone()
        for store in value.node_stores:
            if "x" in store:
                store.x = store.x.to(torch.get_default_dtype())
        return value
    return value.to(torch.get_default_dtype()) if isinstance(value, Tensor) and value.is_floating_point() else value


SOFT = ("everything",)  # something beside the nodes contributes (other inputs), or a softmax is shared
ZEROS = ("everything",)  # a bias meets zeros (dead units, no neighbors of a type, padding), which are background
FUSED = ("total",)  # a fused kernel is taken apart, so that the last bits differ
CONVS = {
    "gcn": lambda i, o: GCNConv(i, o),
    "chebnet": lambda i, o: pyg.ChebConv(i, o, K=2),
    "arma": lambda i, o: pyg.ARMAConv(i, o, num_stacks=2, num_layers=2, shared_weights=True, dropout=0.25),
    "tagcn": pyg.TAGConv,
    "graph_conv": pyg.GraphConv,
    "sage": SAGEConv,
    "sage max": lambda i, o: SAGEConv(i, o, aggr="max"),
    "sage lstm": lambda i, o: SAGEConv(i, o, aggr="lstm"),
    "sage many": lambda i, o: SAGEConv(i, o, aggr=["mean", "max", "std"]),
    "gin": lambda i, o: pyg.GINConv(m.MLP([i, 8, o], norm=None)),
    "mf": pyg.MFConv,
    "leconv": pyg.LEConv,
    "feast": lambda i, o: pyg.FeaStConv(i, o, heads=2),
    "gated": lambda i, o: pyg.ResGatedGraphConv(i, o),
    "gen": lambda i, o: pyg.GENConv(i, o, aggr="softmax", learn_t=True),
    "general": lambda i, o: pyg.GeneralConv(i, o, attention=False),
    "supergat": lambda i, o: pyg.SuperGATConv(i, o, heads=2, concat=False),
    "transformer": lambda i, o: pyg.TransformerConv(i, o, heads=2, concat=False),
    "egc": lambda i, o: pyg.EGConv(i, o, num_heads=1 if o == 3 else 2, num_bases=2),
    "cluster": pyg.ClusterGCNConv,
    "antisymmetric": lambda i, o: nn.Sequential() if False else pyg.SAGEConv(i, o, project=True),
    "wgcn": lambda i, o: pyg.PDNConv(i, o, 2, 4) if False else pyg.GCNConv(i, o, improved=True),
    "dirgnn": lambda i, o: pyg.DirGNNConv(pyg.SAGEConv(i, o)),
    "mixhop": lambda i, o: pyg.MixHopConv(i, o, powers=[1]),
    "gps free": lambda i, o: pyg.GraphConv(i, o, aggr="mean"),
}
CITATION = [
    *(ex(f"cora {name}", lambda c=conv: m.Cora(c), X, SORTED, index=5, without=ZEROS if name in ("arma", "gen") else ()) for name, conv in CONVS.items()),
    *(ex(f"cora {name}, all nodes", lambda c=CONVS[name]: m.Cora(c), X, EDGES, index="all") for name in ("gcn", "sage", "gin")),
    *(ex(f"cora {name}, Data", lambda c=CONVS[name]: m.Cora(c), DATA, index=3) for name in ("gcn", "chebnet")),
    *(ex(f"cora {name}, {of}s", lambda c=CONVS[name]: m.Cora(c), X, EDGES, index=3, of=of) for name in ("gcn", "sage") for of in ("edge", "feature")),
    ex("cora gcn, weights", lambda: m.Cora(GCNConv), X, EDGES, noise(E).abs() + 0.1, index=3),
    ex("gat", m.GATHeads, X, EDGES, index=5),
    ex("gat, edges", m.GATHeads, X, EDGES, index=5, of="edge"),
    ex("gatv2", lambda: m.GATHeads(pyg.GATv2Conv), X, EDGES, index=5),
    ex("agnn", lambda: m.AGNN(DATA), index=5),
    ex("tagcn of a variable", lambda: m.tagcn_of(DATA), index=5),
    ex("sgc", m.SGC, X, EDGES, index=5),
    ex("sgc, warm", m.SGC, X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("ssgc, warm", lambda: m.SGC(conv=pyg.SSGConv), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("gcn cached, warm", lambda: m.Cora(lambda i, o: GCNConv(i, o, cached=True)), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("sign", m.SIGN, powers(), index=5),
    ex("appnp", m.APPNPNet, X, EDGES, index=5),
    ex("appnp, warm", lambda: m.APPNPNet(cached=True), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("gcn2", m.GCN2, X, EDGES, index=5),
    ex("gcn2, warm", lambda: m.GCN2(cached=True), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("dna", m.DNA, X, EDGES, index=5, without=SOFT),
    ex("film", m.FiLM, X, EDGES, index=5, without=ZEROS),
    ex("unimp", m.UniMP, X, DATA.y, EDGES, torch.arange(N) % 2 == 0, index=5, without=SOFT),
    ex("cluster gcn", m.ClusterGCN, X, EDGES, index=5),
    ex("graph u-net", lambda: m.GraphUNetNet(N), X, EDGES, index=5),
    ex("label propagation", m.LabelProp, torch.eye(3).double()[DATA.y], EDGES, index=5),
    ex("correct and smooth", lambda: lambda y, e: pyg.CorrectAndSmooth(3, 0.8, 3, 0.8).smooth(y, DATA.y, torch.ones(N, dtype=torch.bool), e), X[:, :3].softmax(1), EDGES, index=5, without=SOFT) if False else ex("sage of ogbn", m.SAGE, X, EDGES, index=5),
    ex("adj_t coo", lambda: m.Cora(GCNConv), X, to_torch_coo_tensor(EDGES, size=N).double(), index=5),
    ex("adj_t csr", lambda: m.SAGE(), X, to_torch_csr_tensor(EDGES, size=N).double(), index=5),
]
RELATIONS = [
    ex("rgcn of x=None", lambda: m.RGCN(N), EDGES, TYPE, index=5),
    ex("rgcn of x=None, bases", lambda: m.RGCN(N, bases=2), EDGES, TYPE, index=5),
    ex("fast rgcn of x=None", lambda: m.RGCN(N, m.FastRGCNConv), EDGES, TYPE, index=5),
    ex("rgat", m.RGAT, X, EDGES, TYPE, index=5),
    ex("rgcn encoder", lambda: m.RGCNEncoder(N), EDGES, TYPE, index=5, target=0),
    ex("rgcn encoder by name", lambda: m.RGCNEncoder(N), EDGES, TYPE, index=5, start="node_emb"),
    ex("rgcn links", lambda: m.KGLink(N), EDGES, TYPE, LINKS, torch.tensor([0, 1, 2, 0]), index=1),
    ex("hgt", initialised(XS, TYPED)(lambda: m.HGT(META, "a")), XS, TYPED, index=2, without=SOFT),
    ex("han", lambda: m.HAN(META, "b"), XS, TYPED, index=2, without=SOFT),
    ex("hetero conv", initialised(XS, TYPED)(lambda: m.HeteroGNN(META, {}, "a")), XS, TYPED, index=2, without=ZEROS),
    ex("hetero conv with an embedding", initialised({"a": X[:7]}, TYPED)(lambda: m.HeteroGNN(META, {"b": 5}, "a")), {"a": X[:7]}, TYPED, index=2, without=ZEROS),
    ex("hetero conv with an embedding, named", initialised({"a": X[:7]}, TYPED)(lambda: m.HeteroGNN(META, {"b": 5}, "a")), {"a": X[:7]}, TYPED, index=2, start={"b": "embs.b"}, without=ZEROS),
    ex("hetero conv of embeddings", initialised({}, TYPED)(lambda: m.HeteroGNN(META, {"a": 7, "b": 5}, "a")), {}, TYPED, index=2, without=ZEROS),
    ex("movielens", initialised(movielens())(lambda: m.MovieLens(TWO_META, USERS, MOVIES)), movielens(), index=1, without=SOFT),
    ex("movielens, named", initialised(movielens())(lambda: m.MovieLens(TWO_META, USERS, MOVIES)), movielens(), index=1, start={"user": "user_emb", "movie": ["movie_lin", "movie_emb"]}),
    ex("hetero links", initialised({"user": features(5, 4), "movie": features(7, 4)}, TWO, RATES[:, :3])(lambda: m.HeteroLinks(TWO_META)), {"user": features(5, 4), "movie": features(7, 4)}, TWO, RATES[:, :3], index=1),
    ex("metapath2vec", lambda: m.MetaPathRows({"author": 5, "venue": 4}), "author", index=2),
    ex("node2vec", lambda: m.Node2VecRows(N), index=4),
    ex("node2vec of some", lambda: m.Node2VecRows(N), torch.tensor([3, 1]), index=1, start="embedding"),
    ex("light gcn", lambda: pyg.LightGCN(N, 8, 2), EDGES, index=3),
    ex("light gcn, links", lambda: pyg.LightGCN(N, 8, 2), EDGES, LINKS, index=3),
    ex("matrix factorization", lambda: m.MatrixFactorization(5, 7), RATES[0], RATES[1], index=2, start={"user": ["user_emb", "user_bias"], "item": ["item_emb", "item_bias"]}),
    ex("ncf", lambda: m.NCF(5, 7), RATES[0], RATES[1], index=2, start={"user": "user", "item": "item"}),
]
LINKED = [
    ex("link prediction", m.LinkNet, X, EDGES, LINKS, index=1),
    ex("link prediction, all", lambda: m.LinkNet(SAGEConv), X, EDGES, LINKS, index="all"),
    ex("links by mlp", m.MLPLinks, X, EDGES, LINKS, index=1),
    ex("edge classes", m.EdgeClassifier, X, EDGES, ATTR, index=1, without=SOFT),
    ex("vgae", m.VGAE, X, EDGES, LINKS, index=1, output=0),
    ex("gae", lambda: pyg.GAE(GCNConv(4, 8)), X, EDGES, index=1),
    ex("dgi", m.DGIEncoder, X, EDGES, index=1),
    ex("seal dgcnn", m.SortPoolDGCNN, X, PAIR_EDGES, PAIR_BATCH, index=0, without=ZEROS),
    ex("seal", m.SEAL, Z, X, PAIR_EDGES, PAIR_BATCH, index=0, without=SOFT),
    ex("seal by labels", m.SEAL, Z, X, PAIR_EDGES, PAIR_BATCH, index=0, start="z_embedding", without=SOFT),
    ex("seal by both", m.SEAL, Z, X, PAIR_EDGES, PAIR_BATCH, index=0, start=["z_embedding", "x"], without=ZEROS),
]
WHOLE = [
    *(ex(f"basic {name}", lambda c=cls: c(4, 8, 2, 3), X, EDGES, index=1, without=ZEROS if name == "GIN" else ()) for name, cls in (("GCN", pyg.GCN), ("GIN", pyg.GIN), ("GAT", pyg.GAT))),
    ex("diff pool", m.DiffPool, X, PAIR_EDGES, PAIR_BATCH, index=0, output=0),
    ex("min cut", m.MinCut, X, PAIR_EDGES, PAIR_BATCH, index=0, output=0),
    ex("top k pool", lambda: m.Hierarchical(lambda c: m.TopKPooling(c, ratio=0.8)), GRAPHS, index=0),
    ex("top k pool, all graphs", lambda: m.Hierarchical(lambda c: m.TopKPooling(c, ratio=0.8)), GRAPHS, index="all"),
    ex("sag pool", lambda: m.Hierarchical(lambda c: m.SAGPooling(c, ratio=0.8)), GRAPHS, index=0, without=ZEROS),
    ex("asap", m.ASAP, X, PAIR_EDGES, PAIR_BATCH, index=0),
    ex("nn conv of qm9", m.NNConvQM9, GRAPHS, index=0, without=SOFT),
    ex("attentive fp", lambda: pyg.AttentiveFP(4, 8, 1, 2, 2, 2), X, PAIR_EDGES, PAIR_ATTR, PAIR_BATCH, index=0, without=SOFT),
    ex("schnet-like by atoms", m.MiniSchNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="embedding", without=SOFT),
    ex("schnet-like by positions", m.MiniSchNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="pos", without=SOFT),
    ex("schnet-like by both", m.MiniSchNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start=["embedding", "pos"], without=SOFT),
    ex("energy beside forces", m.Forces, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="embedding", output=0, without=SOFT),
    ex("dimenet-like", m.AngularNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="z", without=SOFT),
    ex("pointnet++-like", m.PointNetPlus, POS, PAIR_BATCH, index=0, without=ZEROS),
    ex("point dgcnn", m.PointDGCNN, POS, PAIR_BATCH, index=0, without=ZEROS),
    ex("gps", m.GPS, Z.unsqueeze(1), noise(N, 3), PAIR_EDGES, torch.arange(PAIR_EDGES.shape[1]) % 4, PAIR_BATCH, index=0, start="node_emb", without=SOFT + FUSED),
    ex("pna of zinc", lambda: m.PNANet(DEGREE), Z.unsqueeze(1), PAIR_EDGES, torch.arange(PAIR_EDGES.shape[1]) % 4, PAIR_BATCH, index=0, without=SOFT),
    ex("ogb molecules", m.OGBMol, Batch.from_data_list([Data(x=torch.stack([Z[:5] % 5, Z[:5] % 4, Z[:5] % 3], 1), edge_index=GRAPHS[0].edge_index)]), index=0),
    ex("schnet of pyg", lambda: pyg.SchNet(8, 8, 2, 5, interaction_graph=lambda pos, batch: (PAIR_EDGES, (pos[PAIR_EDGES[0]] - pos[PAIR_EDGES[1]]).norm(dim=-1))), Z, POS, PAIR_BATCH, index=0, start="embedding", without=SOFT),
]
TIME = [
    ex("tgn", lambda: m.TGN(20), torch.arange(N) + 3, EDGES, torch.arange(E), ATTR, LINKS[0], LINKS[1], index=1, start="memory", without=SOFT),
    ex("tgn by module", lambda: (lambda net: net)(m.TGN(20)), torch.arange(N) + 3, EDGES, torch.arange(E), ATTR, LINKS[0], LINKS[1], index=1, start="memory.memory", without=SOFT) if False else ex("tgn by table", lambda: m.TGN(20), torch.arange(N) + 3, EDGES, torch.arange(E), ATTR, LINKS[0], LINKS[1], index=1, start="memory.memory", without=SOFT),
    ex("recurrent gcn", m.GConvGRU, noise(N, 3, 4), EDGES, index=5),
    ex("bipartite", m.BipartiteSAGE, {"user": features(5, 4), "item": features(7, 3)}, {("user", "buys", "item"): RATES, ("item", "of", "user"): RATES.flip(0)}, index=2) if False else ex("recurrent gcn, all", m.GConvGRU, noise(N, 3, 4), EDGES, index="all"),
]
EXAMPLES = [*CITATION, *RELATIONS, *LINKED, *WHOLE, *TIME]
