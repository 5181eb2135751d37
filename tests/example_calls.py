# ruff: noqa: E501  (tables of one-line calls)
"""The report card: calls of `explain` on models as people write them, each with the laws that it must obey.

``make coverage`` runs it and prints how many work, with the reason of each miss; the suite runs it too.
"""

import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import example_graph_models as g
import example_models as m
import stranger_habits as t
import stranger_inputs as i
import stranger_models as s
import torch
import torch_geometric.nn as pyg
from cases import DEGREE, META, PAIR_ATTR, TYPED, noise, seeded
from helpers import EDGES, PAIR_BATCH, PAIR_EDGES, features
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from xdegree import explain
from xdegree.testing import ALWAYS, check_laws

N, E = 12, EDGES.shape[1]
X, POS, Z = features(), noise(N, 3, seed=6), torch.arange(N) * 5 % 7
SORTED = EDGES[:, EDGES[1].argsort(stable=True)]
TYPE, ATTR = torch.arange(E) % 3, noise(E, 2)
LINKS = torch.tensor([[0, 3, 9, 5], [2, 6, 11, 1]])
DATA = Data(x=X, edge_index=EDGES, y=torch.arange(N) % 3)


def _pair(**values: Tensor) -> Batch:
    """Two graphs as a batch, from what their nodes and edges have."""
    graphs = []
    for low, high in ((0, 5), (5, N)):
        inside = ((PAIR_EDGES >= low) & (PAIR_EDGES < high)).all(0)
        own = {name: value[low:high] if len(value) == N else value[inside] for name, value in values.items()}
        graphs.append(Data(edge_index=PAIR_EDGES[:, inside] - low, num_nodes=high - low, **own))
    return Batch.from_data_list(graphs)


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


def ex(
    name: str,
    build: Callable[[], Any],
    *args: Any,
    without: tuple[str, ...] = (),
    prepare: Any = lambda m: m,
    **ask: Any,
) -> Example:
    return Example(name, build, args, ask, without, prepare)


QUESTION = ("index", "target", "of", "ids", "level")


def tried(example: Example, laws: Iterable[str] = ALWAYS) -> str:
    """Why a call does not work or breaks a law; empty if all is well."""
    model = example.model()
    given = {name: value for name, value in example.ask.items() if name not in QUESTION}
    laws = [law for law in laws if law not in example.without]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = explain(model, *example.args, **example.ask)
            one = found[0] if isinstance(found, Sequence) else found
            if not all(bool(t.isfinite().all()) for t in _tensors(one.scores)):
                return "scores are not finite"
            if not any(bool(t.any()) for t in _tensors(one.scores)):
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
GRAPHS = _pair(x=X, edge_attr=PAIR_ATTR)
BONDS = torch.arange(PAIR_EDGES.shape[1]) % 4
MOLECULES = _pair(z=Z, bond=BONDS)
COO, CSR = to_torch_coo_tensor(EDGES, size=N).double(), to_torch_csr_tensor(EDGES, size=N).double()
ADJ = COO.to_dense() / COO.to_dense().sum(1, keepdim=True)
POWERS = [X, COO @ X, COO @ (COO @ X)]
ADJS = [
    (torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 2, 3, 3]]), None, (7, 4)),
    (torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]]), None, (4, 2)),
]
JOINED = torch.stack([torch.cat([RATES[0], RATES[1] + 5]), torch.cat([RATES[1] + 5, RATES[0]])])
TEXTS = [f"node {number}" for number in range(N)]
USER, MOVIE = features(5, 4), features(7, 4)
RATED = {"user": USER, "movie": MOVIE}


def _movielens(**more: Any) -> HeteroData:
    data = HeteroData()
    for kind, values in more.items():
        data[kind].update(values)
    for kind, edges in TWO.items():
        data[kind].edge_index = edges
    return data


def _with_links() -> HeteroData:
    data = _movielens(user={"node_id": torch.arange(USERS)}, movie={"node_id": torch.arange(MOVIES), "x": MOVIE})
    data["user", "rates", "movie"].edge_label_index = RATES[:, :3]
    return data


def _loaded() -> Data:
    """What a NeighborLoader gives: seeds first, their own numbers in n_id."""
    nodes = torch.tensor([5, 2, 4, 6, 3, 0, 1, 7])
    place = torch.full((N,), -1)
    place[nodes] = torch.arange(len(nodes))
    inside = (place[EDGES] >= 0).all(0)
    return Data(x=X[nodes], edge_index=place[EDGES[:, inside]], n_id=nodes, batch_size=2, input_id=torch.tensor([5, 2]))


CONVS = {
    "gcn": GCNConv,
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
    "gated": pyg.ResGatedGraphConv,
    "gen": lambda i, o: pyg.GENConv(i, o, aggr="softmax", learn_t=True),
    "general": lambda i, o: pyg.GeneralConv(i, o, attention=False),
    "supergat": lambda i, o: pyg.SuperGATConv(i, o, heads=2, concat=False),
    "transformer": lambda i, o: pyg.TransformerConv(i, o, heads=2, concat=False),
    "egc": lambda i, o: pyg.EGConv(i, o, num_heads=1 if o == 3 else 2, num_bases=2),
    "cluster": pyg.ClusterGCNConv,
    "sage projected": lambda i, o: pyg.SAGEConv(i, o, project=True),
    "gcn improved": lambda i, o: pyg.GCNConv(i, o, improved=True),
    "dirgnn": lambda i, o: pyg.DirGNNConv(pyg.SAGEConv(i, o)),
    "mixhop": lambda i, o: pyg.MixHopConv(i, o, powers=[1]),
    "graph_conv mean": lambda i, o: pyg.GraphConv(i, o, aggr="mean"),
}
CITATION = [
    *(ex(f"cora {name}", lambda c=conv: m.Cora(c), X, SORTED, index=5, without=ZEROS if name in ("arma", "gen", "sage lstm") else ()) for name, conv in CONVS.items()),
    *(ex(f"cora {name}, all nodes", lambda c=CONVS[name]: m.Cora(c), X, EDGES, index="all") for name in ("gcn", "sage", "gin")),
    *(ex(f"cora {name}, Data", lambda c=CONVS[name]: m.Cora(c), DATA, index=3) for name in ("gcn", "chebnet")),
    *(ex(f"cora {name}, {of}s", lambda c=CONVS[name]: m.Cora(c), X, EDGES, index=3, of=of) for name in ("gcn", "sage") for of in ("edge", "feature")),
    *(ex(f"basic {name}", lambda c=name: getattr(pyg, c)(4, 8, 2, 3), X, EDGES, index=1, without=ZEROS if name == "GIN" else ()) for name in ("GCN", "GIN", "GAT", "GraphSAGE")),
    ex("cora gcn, weights", lambda: m.Cora(GCNConv), X, EDGES, noise(E).abs() + 0.1, index=3),
    ex("gat", m.GATHeads, X, EDGES, index=5),
    ex("gat, edges", m.GATHeads, X, EDGES, index=5, of="edge"),
    ex("gatv2", lambda: m.GATHeads(pyg.GATv2Conv), X, EDGES, index=5),
    ex("agnn, data of the model", lambda: m.AGNN(DATA), index=5),
    ex("tagcn, data of a variable", lambda: m.tagcn_of(DATA), index=5),
    ex("sgc", m.SGC, X, EDGES, index=5),
    ex("sgc, warm", m.SGC, X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("ssgc, warm", lambda: m.SGC(conv=pyg.SSGConv), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("gcn cached, warm", lambda: m.Cora(lambda i, o: GCNConv(i, o, cached=True)), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("sign", m.SIGN, POWERS, index=5),
    ex("appnp", m.APPNPNet, X, EDGES, index=5),
    ex("appnp, warm", lambda: m.APPNPNet(cached=True), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("gcn2", m.GCN2, X, EDGES, index=5),
    ex("gcn2, warm", lambda: m.GCN2(cached=True), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("dna", m.DNA, X, EDGES, index=5, without=SOFT),
    ex("film", m.FiLM, X, EDGES, index=5, without=ZEROS),
    ex("unimp", m.UniMP, X, DATA.y, EDGES, torch.arange(N) % 2 == 0, index=5, without=SOFT),
    ex("cluster gcn", m.ClusterGCN, X, EDGES, index=5),
    ex("graph u-net", lambda: g.GraphUNetNet(N), X, EDGES, index=5),
    ex("label propagation", m.LabelProp, torch.eye(3).double()[DATA.y], EDGES, index=5),
    ex("sage of ogbn", m.SAGE, X, EDGES, index=5),
    ex("adjacency coo", lambda: m.Cora(GCNConv), X, COO, index=5),
    ex("adjacency csr", m.SAGE, X, CSR, index=5),
    ex("geniepath", t.GeniePath, X, EDGES, index=5, without=ZEROS),
    ex("rev gnn", t.RevGNN, X, EDGES, index=5),
    ex("graph saint, weights", t.Saint, X, EDGES, noise(E).abs(), index=5),
    ex("sparse matrices, mean and max", t.SparseMax, X, CSR, index=5),
    ex("a system of equations", t.Propagation, X, EDGES, index=5),
    ex("as many rounds as it takes", t.FixedPoint, X, EDGES, index=5, without=ZEROS),
    ex("sequential", lambda: pyg.Sequential("x, edge_index", [(nn.Dropout(0.5), "x -> x"), (GCNConv(4, 8), "x, edge_index -> x1"), nn.ReLU(inplace=True), (GCNConv(8, 8), "x1, edge_index -> x2"), (lambda x1, x2: [x1, x2], "x1, x2 -> xs"), (pyg.JumpingKnowledge("cat", 8, 2), "xs -> x"), nn.Linear(16, 3)]), X, EDGES, index=5),
    ex("linkx", lambda: pyg.LINKX(N, 4, 8, 3, 2), X, EDGES, index=5, without=SOFT),
]  # fmt: skip
RELATIONS = [
    ex("rgcn of x=None", lambda: m.RGCN(N), EDGES, TYPE, index=5),
    ex("rgcn of x=None, bases", lambda: m.RGCN(N, bases=2), EDGES, TYPE, index=5),
    ex("fast rgcn of x=None", lambda: m.RGCN(N, pyg.FastRGCNConv), EDGES, TYPE, index=5),
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
    ex("movielens", initialised(_with_links())(lambda: m.MovieLens(TWO_META, USERS, MOVIES)), _with_links(), index=1, without=SOFT),
    ex("movielens, named", initialised(_with_links())(lambda: m.MovieLens(TWO_META, USERS, MOVIES)), _with_links(), index=1, start={"user": "user_emb", "movie": ["movie_lin", "movie_emb"]}),
    ex("hetero links", initialised(RATED, TWO, RATES[:, :3])(lambda: m.HeteroLinks(TWO_META)), RATED, TWO, RATES[:, :3], index=1),
    ex("metapath2vec-like", lambda: m.MetaPathRows({"author": 5, "venue": 4}), "author", index=2),
    ex("metapath2vec", lambda: pyg.MetaPath2Vec({("a", "to", "b"): RATES, ("b", "to", "a"): RATES.flip(0)}, 8, [("a", "to", "b"), ("b", "to", "a")], 2, 2, num_nodes_dict={"a": 5, "b": 7}), "a", index=1),
    ex("node2vec-like", lambda: m.Node2VecRows(N), index=4),
    ex("node2vec-like, some", lambda: m.Node2VecRows(N), torch.tensor([3, 1]), index=1, start="embedding"),
    ex("light gcn", lambda: pyg.LightGCN(N, 8, 2), EDGES, index=3),
    ex("light gcn, links", lambda: pyg.LightGCN(N, 8, 2), EDGES, LINKS, index=3),
    ex("light gcn by weight", lambda: pyg.LightGCN(N, 8, 2), EDGES, index=3, start="embedding.weight"),
    ex("matrix factorization", lambda: m.MatrixFactorization(5, 7), RATES[0], RATES[1], index=2, start={"user": ["user_emb", "user_bias"], "item": ["item_emb", "item_bias"]}),
    ex("ncf", lambda: m.NCF(5, 7), RATES[0], RATES[1], index=2, start={"user": "user", "item": "item"}),
    ex("translations", lambda: pyg.TransE(N, 3, 8), torch.tensor([0, 1]), torch.tensor([0, 2]), torch.tensor([3, 4]), index=0, start="node_emb", without=SOFT),
    ex("triples", lambda: pyg.DistMult(N, 3, 8), torch.tensor([0, 1]), torch.tensor([0, 2]), torch.tensor([3, 4]), index=0, start="node_emb"),
    *(ex(f"hetero {kind}", lambda k=kind: i.HeteroTables(TWO, k), {"movie": MOVIE, **({"user": torch.arange(5)} if kind == "ids" else {})}, TWO, index=2, without=ZEROS) for kind in ("embedding", "parameter", "ids")),
    ex("hetero None", lambda: i.HeteroTables(TWO, target="user"), {"user": None, "movie": MOVIE}, TWO, index=2, without=ZEROS),
    ex("hetero embedding, Data", lambda: i.HeteroTables(TWO), _movielens(user={"num_nodes": 5}, movie={"x": MOVIE}), index=2, without=ZEROS),
    ex("hetero data taken", lambda: i.HeteroTaking(TWO), _movielens(user={"x": USER}, movie={"x": MOVIE}), index=2, without=ZEROS),
    ex("hetero data taken, edges", lambda: i.HeteroTaking(TWO), _movielens(user={"x": USER}, movie={"x": MOVIE}), index=2, of="edge"),
    ex("hetero data collected", lambda: i.HeteroTaking(TWO, "user", collect=True), _movielens(user={"x": USER}, movie={"x": MOVIE}), index=2, without=ZEROS),
]  # fmt: skip
LINKED = [
    ex("link prediction", m.LinkNet, X, EDGES, LINKS, index=1),
    ex("link prediction, all", lambda: m.LinkNet(SAGEConv), X, EDGES, LINKS, index="all"),
    ex("links by mlp", m.MLPLinks, X, EDGES, LINKS, index=1),
    ex("edge classes", m.EdgeClassifier, X, EDGES, ATTR, index=1, without=SOFT),
    ex("encode and decode", t.LinkMethods, X, EDGES, LINKS, index=1, prepare=lambda net: lambda x, e, pairs: net.decode(net.encode(x, e), pairs)),
    ex("encode and decode, the level named", t.LinkMethods, X, EDGES, index=1, level="link", prepare=lambda net: lambda x, e: net.decode(net.encode(x, e), LINKS).sigmoid(), without=SOFT),
    ex("encode", t.LinkMethods, X, EDGES, index=1, prepare=lambda net: net.encode),
    ex("encode, edges", t.LinkMethods, X, EDGES, index=1, of="edge", prepare=lambda net: net.encode),
    ex("vgae", m.VGAE, X, EDGES, LINKS, index=1, output=0),
    ex("gae", lambda: pyg.GAE(GCNConv(4, 8)), X, EDGES, index=1),
    ex("dgi", m.DGIEncoder, X, EDGES, index=1),
    ex("seal dgcnn", g.SortPoolDGCNN, X, PAIR_EDGES, PAIR_BATCH, index=0, without=ZEROS),
    ex("seal", g.SEAL, Z, X, PAIR_EDGES, PAIR_BATCH, index=0, without=SOFT),
    ex("seal by labels", g.SEAL, Z, X, PAIR_EDGES, PAIR_BATCH, index=0, start="z_embedding", without=SOFT),
    ex("seal by both", g.SEAL, Z, X, PAIR_EDGES, PAIR_BATCH, index=0, start=["z_embedding", "x"], without=ZEROS),
    ex("bipartite, one side", i.TwoSides, USER, features(7, 3), RATES, index=2, without=SOFT),
    ex("bipartite, both sides", i.TwoSides, USER, features(7, 3), RATES, index=2, start={"user": "x_src", "item": "x_dst"}),
    ex("bipartite, a pair", lambda: i.TwoSides(pair=True), (USER, features(7, 3)), RATES, index=2),
]  # fmt: skip
WHOLE = [
    ex("diff pool", g.DiffPool, X, PAIR_EDGES, PAIR_BATCH, index=0, output=0),
    ex("min cut", g.MinCut, X, PAIR_EDGES, PAIR_BATCH, index=0, output=0),
    ex("top k pool", lambda: g.Hierarchical(lambda c: pyg.TopKPooling(c, ratio=0.8)), GRAPHS, index=0),
    ex("top k pool, all graphs", lambda: g.Hierarchical(lambda c: pyg.TopKPooling(c, ratio=0.8)), GRAPHS, index="all"),
    ex("sag pool", lambda: g.Hierarchical(lambda c: pyg.SAGPooling(c, ratio=0.8)), GRAPHS, index=0, without=ZEROS),
    ex("asap", g.ASAP, X, PAIR_EDGES, PAIR_BATCH, index=0),
    ex("nn conv of qm9", g.NNConvQM9, GRAPHS, index=0, without=SOFT),
    ex("attentive fp", lambda: pyg.AttentiveFP(4, 8, 1, 2, 2, 2), X, PAIR_EDGES, PAIR_ATTR, PAIR_BATCH, index=0, without=SOFT),
    *(ex(f"schnet-like by {start}", g.MiniSchNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start=start, without=SOFT) for start in ("embedding", "pos", "z")),
    ex("schnet-like by both", g.MiniSchNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start=["embedding", "pos"], without=SOFT),
    ex("energy beside forces", g.Forces, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="embedding", output=0, without=SOFT),
    ex("dimenet-like", g.AngularNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="z", without=SOFT),
    ex("pointnet++-like", g.PointNetPlus, POS, PAIR_BATCH, index=0, without=ZEROS),
    ex("point dgcnn", g.PointDGCNN, POS, PAIR_BATCH, index=0, without=ZEROS),
    ex("points in Data", i.Points, Data(pos=POS, batch=PAIR_BATCH, y=noise(2, 1)), index=0, without=ZEROS),
    ex("gps", g.GPS, Z.unsqueeze(1), noise(N, 3), PAIR_EDGES, BONDS, PAIR_BATCH, index=0, start="node_emb", without=SOFT + FUSED),
    ex("pna of zinc", lambda: g.PNANet(DEGREE), Z.unsqueeze(1), PAIR_EDGES, BONDS, PAIR_BATCH, index=0, without=SOFT),
    ex("ogb molecules", g.OGBMol, _pair(x=torch.stack([Z % 5, Z % 4, Z % 3], 1)), index=0),
    ex("schnet", lambda: pyg.SchNet(8, 8, 2, 5, interaction_graph=lambda pos, _: (PAIR_EDGES, (pos[PAIR_EDGES[0]] - pos[PAIR_EDGES[1]]).norm(dim=-1))), Z, POS, PAIR_BATCH, index=0, start="embedding", without=SOFT),
    ex("stack of one graph", i.DenseNet, X.unsqueeze(0), ADJ.unsqueeze(0), index=5),
    ex("stack of one graph, one matrix", i.DenseNet, X.unsqueeze(0), ADJ, index=5),
    ex("stack of graphs", i.DenseGraphs, X.view(2, 6, 4), torch.stack([ADJ[:6, :6]] * 2), index=1),
    ex("stack of graphs, nodes", i.DenseNet, X.view(2, 6, 4), torch.stack([ADJ[:6, :6]] * 2), index=7),
    ex("stack with attention", i.DenseAttention, X.unsqueeze(0), (ADJ > 0).double().unsqueeze(0), index=5, without=SOFT),
    ex("two pools", s.GraphLevelTwoPools, X, PAIR_EDGES, PAIR_BATCH, index=0),
    ex("two pools, Batch", s.GraphLevelTwoPools, GRAPHS),
    ex("shadow", t.Shadow, X, PAIR_EDGES, PAIR_BATCH, torch.tensor([0, 5]), index=1),
    ex("randla", t.RandLA, X, POS, EDGES, index=5, without=SOFT),
    ex("a scan over nodes", t.Scan, X, PAIR_BATCH, index=0),
    ex("ogb molecules, a sum of embeddings", t.SumOfEmbeddings, _pair(x=torch.stack([Z % 5, Z % 4, Z % 3], 1)), index=0),
    ex("ogb molecules, all columns by name", t.SumOfEmbeddings, _pair(x=torch.stack([Z % 5, Z % 4, Z % 3], 1)), index=0, start="x"),
    ex("loop over graphs", i.LoopOverGraphs, X, PAIR_EDGES, PAIR_BATCH, index=0),
]  # fmt: skip
TIME = [
    ex("tgn", lambda: g.TGN(20), torch.arange(N) + 3, EDGES, torch.arange(E), ATTR, LINKS[0], LINKS[1], index=1, start="memory", without=SOFT),
    ex("tgn by table", lambda: g.TGN(20), torch.arange(N) + 3, EDGES, torch.arange(E), ATTR, LINKS[0], LINKS[1], index=1, start="memory.memory", without=SOFT),
    ex("tgn of pyg", i.TGNOfPyG, torch.arange(N) + 2, EDGES, index=5, start="memory", without=SOFT),
    ex("recurrent gcn", g.GConvGRU, noise(N, 3, 4), EDGES, index=5),
    ex("recurrent gcn, all", g.GConvGRU, noise(N, 3, 4), EDGES, index="all"),
    ex("history by lstm", s.Seq2Graph, noise(N, 5, 4), EDGES, noise(E).abs(), index=5),
    ex("traffic", s.STGCN, noise(N, 2, 8), EDGES, index=5),
    ex("one moment", i.Static, X.unsqueeze(0), EDGES, index=5),
    ex("three moments", i.Static, noise(3, N, 4), EDGES, index=17),
]  # fmt: skip
OUTPUTS = [
    ex("named tuple", s.Named, X, EDGES, index=5, output="logits"),
    ex("named tuple by position", s.Named, X, EDGES, index=5, output=0),
    ex("typed named tuple", s.TypedResult, X, EDGES, index=5, output="pred"),
    ex("nested lists", s.Nested, X, EDGES, index=5, output=("heads", 0)),
    ex("nested lists, deeper", s.Nested, X, EDGES, index=5, output=("heads", 1, 0)),
    ex("dataclass", s.AsDataclass, X, EDGES, index=5, output="logits"),
    ex("dataclass, hidden", s.AsDataclass, X, EDGES, index=5, output="embeddings"),
    ex("namespace", s.AsNamespace, X, EDGES, index=5, output="out"),
    ex("side loss", s.SideLoss, X, EDGES, index=5, output=0),
    ex("side loss, edges", s.SideLoss, X, EDGES, index=5, output=0, of="edge"),
    ex("experts", s.MoE, X, EDGES, index=5, output=0, without=SOFT),
    ex("several tasks", s.MultiTask, X, EDGES, index=5, output="toxic"),
    ex("all layers", i.AllLayers, X, EDGES, index=5, output=-1),
    ex("into the data", i.IntoData, DATA, index=5, output="pred"),
    ex("a categorical distribution", t.Categorical, X, EDGES, index=5),
    ex("with labels", i.WithLabels, DATA, index=5),
    ex("a distribution", i.Density, X, EDGES, index=5, output="loc"),
    ex("by a flag", i.Flags, X, EDGES, index=5, return_hidden=True, output=0),
]  # fmt: skip
INPUTS = [
    ex("edges first", s.EdgesFirst, EDGES, X, index=5),
    ex("other names", s.OtherName, EDGES, X, index=5),
    ex("time first", s.WithTime, torch.tensor(0.5).double(), X, EDGES, index=5),
    ex("named arguments only", s.KwargsOnly, index=5, features=X, edge_index=EDGES),
    ex("keywords of any name", t.OpenEnded, index=5, x=X, edge_index=EDGES),
    ex("keywords of any name, Data", t.OpenEnded, DATA, index=5),
    ex("a namespace", t.OfRecord, t.record(X, EDGES), index=5),
    ex("two graphs as Data", t.TwoGraphs, Data(x=X, edge_index=EDGES), Data(x=X.flip(0), edge_index=EDGES), without=SOFT),
    ex("edge features only", t.EdgesOnly, EDGES, ATTR, N, index=5, of="edge_feature"),
    ex("edge features only, nodes", t.EdgesOnly, EDGES, ATTR, N, index=5, start="conv:input"),
    ex("any arguments", s.Varargs, X, EDGES, index=5),
    ex("all in a dict", i.DictTaking, {"x": X, "edge_index": EDGES}, index=5),
    ex("all in a tuple", i.TupleTaking, (X, EDGES), index=5),
    ex("one feature", i.OneFeature, X[:, 0], EDGES, index=5),
    ex("sparse features, coo", s.SparseFeatures, X.relu().to_sparse(), COO, index=5),
    ex("sparse features, csr", s.SparseFeatures, X.relu().to_sparse_csr(), CSR, index=5),
    ex("sparse features, linear", s.SparseLinear, X.relu().to_sparse(), EDGES, index=5, without=ZEROS),
    ex("dense adjacency", s.Kipf, X, ADJ, index=5),
    ex("dense adjacency, all", s.Kipf, X, ADJ, index="all"),
    ex("one-hot", i.OneHot, Z, EDGES, index=5),
    ex("one-hot by name", i.OneHot, Z, EDGES, index=5, start="conv:input"),
    ex("bags of words", i.Bags, torch.stack([Z, (Z + 1) % 7], 1), EDGES, index=5),
    ex("degrees looked up", s.DegreeBuckets, EDGES, N, index=5),
    ex("ids looked up", lambda: s.IdEmbedding(30), torch.arange(N) + 7, EDGES, index=5),
    ex("ids looked up, by name", lambda: s.IdEmbedding(30), torch.arange(N) + 7, EDGES, index=5, start="emb"),
    ex("ids looked up, features", lambda: s.IdEmbedding(30), torch.arange(N) + 7, EDGES, index=5, of="feature"),
    ex("x=None and a table", lambda: s.EmbeddingTable(N), None, EDGES, index=5),
    ex("a table beside features", lambda: s.EmbeddingTable(N), X, EDGES, index=5, start="table", without=SOFT),
    ex("a table and features", lambda: s.EmbeddingTable(N), X, EDGES, index=5, start=["table", "x"]),
    ex("a parameter", lambda: s.ParameterTable(N), EDGES, index=5),
    ex("a parameter, edges", lambda: s.ParameterTable(N), EDGES, index=5, of="edge"),
    ex("a parameter, deep", lambda: i.DeepTable(N), EDGES, index=5),
    ex("a parameter in a list", lambda: s.TableInList(N), EDGES, index="all"),
    ex("a buffer", lambda: s.ParameterTable(N, trained=False), EDGES, index=5),
    ex("a buffer by name", lambda: s.ParameterTable(N, trained=False), EDGES, index=5, start="x"),
    ex("a pretrained table", lambda: i.Pretrained(X.clone()), EDGES, index=5),
    ex("users and items", lambda: s.UserItem(5, 7), JOINED, RATES[0], RATES[1], index=2, start={"user": "user_embedding", "item": "item_embedding"}),
    ex("users and items by weights", lambda: s.UserItem(5, 7), JOINED, RATES[0], RATES[1], index=2, start={"user": "user_embedding.weight", "item": "item_embedding.weight"}),
    ex("words", s.TokenGraph, Z, PAIR_EDGES, PAIR_BATCH, index=0, start="word", without=SOFT),
    ex("words and positions", s.TokenGraph, Z, PAIR_EDGES, PAIR_BATCH, index=0, start=["word", "position"]),
    ex("atoms and bonds", s.Molecule, MOLECULES, index=0, without=SOFT),
    ex("atoms and bonds by z", s.Molecule, MOLECULES, index=0, start="z", without=SOFT),
    ex("points with features", s.Positional, X, POS, EDGES, index=5, without=SOFT),
    ex("points with features, positions", s.Positional, X, POS, EDGES, index=5, start="pos", without=SOFT),
    ex("egnn", s.EGNN, X, POS, PAIR_EDGES, PAIR_BATCH, index=0, output=0, start="h", without=SOFT),
    ex("egnn, positions", s.EGNN, X, POS, PAIR_EDGES, PAIR_BATCH, index=0, output=0, start="x", without=SOFT),
    ex("two graphs", s.Siamese, X, EDGES, features(6, 4, seed=4), EDGES[:, (EDGES < 6).all(0)], index=0, without=SOFT),
    ex("two graphs, the other", s.Siamese, X, EDGES, features(6, 4, seed=4), EDGES[:, (EDGES < 6).all(0)], index=0, start="x_other", without=SOFT),
    ex("loader's batch", m.BatchTaking, _loaded(), index=0),
    ex("loader's batch, tensors from it", m.SAGE, _loaded(), index=[0, 1]),
    ex("loader's batch, seeds only", i.Seeds, _loaded(), index=1),
    ex("sampled layers", i.SampledSAGE, X[:7], ADJS, index=1),
    ex("texts as ids", s.Two, X, EDGES, index="node 5", ids=TEXTS),
    ex("texts as ids, a mapping", s.Two, X, EDGES, index=["node 5", "node 1"], ids={text: row for row, text in enumerate(TEXTS)}),
]  # fmt: skip
HABITS = [
    ex("own attention", lambda: s.Two(s.OwnAttention), X, EDGES, index=5),
    ex("einsum attention", i.EinsumAttention, X, EDGES, index=5),
    ex("scatter only", s.ScatterOnly, X, EDGES, index=5),
    ex("virtual node", s.VirtualNode, X, PAIR_EDGES, PAIR_BATCH, index=0, without=SOFT),
    ex("line graph", s.EdgePooler, X, PAIR_EDGES, PAIR_BATCH, index=0, without=ZEROS),
    ex("plain transformer", s.GraphTransformer, X, EDGES, index=5, without=SOFT + FUSED),
    ex("page rank inside", s.PPRGo, X, EDGES, index=5),
    ex("xlogy", s.Entropy, X, EDGES, index=5, without=SOFT),
    ex("take", s.TakeRows, X, EDGES, index=5),
    ex("standardised", i.Standardised, X, EDGES, index=5, without=ZEROS),
    ex("unit length", i.UnitLength, X, EDGES, index=5),
    ex("self-gated", i.SelfGated, X, EDGES, index=5),
    ex("ensemble", i.Ensemble, X, EDGES, index=5),
    ex("numpy of edges", i.NumpyInside, X, EDGES, index=5),
    ex("keeps what it computed", i.Keeps, X, EDGES, index=5),
    ex("logs", t.Logs, X, EDGES, index=5),
    ex("hooks that keep", t.Hooked, X, EDGES, index=5),
    ex("median of all", t.MedianScaled, X, EDGES, index=5),
    ex("masked nodes", t.Masked, X, EDGES, torch.arange(N) % 4 == 0, index=5, without=SOFT),
    ex("written in place", t.InPlace, X, EDGES, index=5, without=ZEROS),
    ex("straight through", t.StraightThrough, X, EDGES, index=5),
    ex("complex phases", t.Phases, X, EDGES, index=5),
    ex("weight norm", t.Parametrised, X, EDGES, index=5),
    ex("stacked weights", t.Ensemble, X, EDGES, index=5),
    ex("averaged weights", s.Two, X, EDGES, index=5, prepare=torch.optim.swa_utils.AveragedModel),
    ex("averaged weights, Data", s.Two, DATA, index=5, prepare=torch.optim.swa_utils.AveragedModel),
    ex("functional call", s.Two, X, EDGES, index=5, prepare=lambda net: lambda x, e: torch.func.functional_call(net, dict(net.named_parameters()), (x, e))),
    ex("checkpointed", i.Checkpointed, X, EDGES, index=5),
    ex("checkpointed, reentrant", lambda: i.Checkpointed(reentrant=True), X, EDGES, index=5),
    ex("reversed gradient", i.Adversarial, X, EDGES, index=5),
    ex("no gradient", i.NoGradient, X, EDGES, index=5),
    ex("inference mode", i.Inference, X, EDGES, index=5),
    ex("lightning-like", s.Lightning, X, EDGES, index=5),
    ex("lightning-like, Data", s.Lightning, DATA, index=5),
    ex("scripted", s.Two, X, EDGES, index=5, prepare=torch.jit.script),
    ex("scripted, all", s.Two, X, EDGES, index="all", prepare=torch.jit.script),
    ex("scripted, graphs", s.GraphLevelTwoPools, X, PAIR_EDGES, PAIR_BATCH, index=0, prepare=torch.jit.script),
    ex("traced", s.Two, X, EDGES, index=5, prepare=lambda net: torch.jit.trace(net, (X, EDGES), check_trace=False)),
    ex("compiled", s.Two, X, EDGES, index=5, prepare=torch.compile),
    ex("exported", s.Two, X, EDGES, index=5, prepare=lambda net: torch.export.export(net, (X, EDGES), strict=False).module()),
    ex("data parallel", s.Two, X, EDGES, index=5, prepare=nn.DataParallel),
    ex("data parallel, Data", s.Two, DATA, index=5, prepare=nn.DataParallel),
    ex("a function", s.Two, X, EDGES, index=5, prepare=lambda net: lambda x, e: net(x, e).softmax(-1), without=("everything", "nothing")),
    ex("a function of Data", s.OtherName, DATA, index=5, prepare=lambda net: lambda features, edge_index: net(edge_index, features)),
    ex("a method", s.Two, X, EDGES, index=5, prepare=lambda net: net.embed),
    ex("a partial call", s.Two, X, index=5, prepare=lambda net: functools.partial(net, edge_index=EDGES)),
    ex("a table of a function", s.Two, EDGES, index=5, start=X, prepare=lambda net: lambda edges: net(X, edges)),
]  # fmt: skip
KINDS = {
    "classes of nodes": CITATION,
    "relations, types and tables": RELATIONS,
    "links": LINKED,
    "graphs, molecules, points": WHOLE,
    "time": TIME,
    "other outputs": OUTPUTS,
    "other inputs": INPUTS,
    "habits, wrappers, scripts": HABITS,
}
EXAMPLES = [example for kind in KINDS.values() for example in kind]
MISSES: dict[str, str] = {}
"""The calls that are known not to work, and why."""
