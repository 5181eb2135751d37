# ruff: noqa: E501  (tables of one-line calls)
"""The report card: calls of `explain` on models as people write them, each with the laws that it must obey.

``make coverage`` runs it and prints how many work, with the reason of each miss; the suite runs it too.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import example_models as m
import stranger_models as s
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


def tried(example: Example) -> str:
    """Why a call does not work or breaks a law; empty if all is well."""
    model = example.model()
    given = {name: value for name, value in example.ask.items() if name not in QUESTION}
    laws = [law for law in ALWAYS if law not in example.without]
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
    *(
        ex(
            f"cora {name}",
            lambda c=conv: m.Cora(c),
            X,
            SORTED,
            index=5,
            without=ZEROS if name in ("arma", "gen", "sage lstm") else (),
        )
        for name, conv in CONVS.items()
    ),
    *(
        ex(f"cora {name}, all nodes", lambda c=CONVS[name]: m.Cora(c), X, EDGES, index="all")
        for name in ("gcn", "sage", "gin")
    ),
    *(ex(f"cora {name}, Data", lambda c=CONVS[name]: m.Cora(c), DATA, index=3) for name in ("gcn", "chebnet")),
    *(
        ex(f"cora {name}, {of}s", lambda c=CONVS[name]: m.Cora(c), X, EDGES, index=3, of=of)
        for name in ("gcn", "sage")
        for of in ("edge", "feature")
    ),
    ex("cora gcn, weights", lambda: m.Cora(GCNConv), X, EDGES, noise(E).abs() + 0.1, index=3),
    ex("gat", m.GATHeads, X, EDGES, index=5),
    ex("gat, edges", m.GATHeads, X, EDGES, index=5, of="edge"),
    ex("gatv2", lambda: m.GATHeads(pyg.GATv2Conv), X, EDGES, index=5),
    ex("agnn", lambda: m.AGNN(DATA), index=5),
    ex("tagcn of a variable", lambda: m.tagcn_of(DATA), index=5),
    ex("sgc", m.SGC, X, EDGES, index=5),
    ex("sgc, warm", m.SGC, X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex("ssgc, warm", lambda: m.SGC(conv=pyg.SSGConv), X, EDGES, index=5, prepare=warm(X, EDGES)),
    ex(
        "gcn cached, warm",
        lambda: m.Cora(lambda i, o: GCNConv(i, o, cached=True)),
        X,
        EDGES,
        index=5,
        prepare=warm(X, EDGES),
    ),
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
    ex(
        "correct and smooth",
        lambda: lambda y, e: pyg.CorrectAndSmooth(3, 0.8, 3, 0.8).smooth(y, DATA.y, torch.ones(N, dtype=torch.bool), e),
        X[:, :3].softmax(1),
        EDGES,
        index=5,
        without=SOFT,
    )
    if False
    else ex("sage of ogbn", m.SAGE, X, EDGES, index=5),
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
    ex(
        "hetero conv with an embedding",
        initialised({"a": X[:7]}, TYPED)(lambda: m.HeteroGNN(META, {"b": 5}, "a")),
        {"a": X[:7]},
        TYPED,
        index=2,
        without=ZEROS,
    ),
    ex(
        "hetero conv with an embedding, named",
        initialised({"a": X[:7]}, TYPED)(lambda: m.HeteroGNN(META, {"b": 5}, "a")),
        {"a": X[:7]},
        TYPED,
        index=2,
        start={"b": "embs.b"},
        without=ZEROS,
    ),
    ex(
        "hetero conv of embeddings",
        initialised({}, TYPED)(lambda: m.HeteroGNN(META, {"a": 7, "b": 5}, "a")),
        {},
        TYPED,
        index=2,
        without=ZEROS,
    ),
    ex(
        "movielens",
        initialised(movielens())(lambda: m.MovieLens(TWO_META, USERS, MOVIES)),
        movielens(),
        index=1,
        without=SOFT,
    ),
    ex(
        "movielens, named",
        initialised(movielens())(lambda: m.MovieLens(TWO_META, USERS, MOVIES)),
        movielens(),
        index=1,
        start={"user": "user_emb", "movie": ["movie_lin", "movie_emb"]},
    ),
    ex(
        "hetero links",
        initialised({"user": features(5, 4), "movie": features(7, 4)}, TWO, RATES[:, :3])(
            lambda: m.HeteroLinks(TWO_META)
        ),
        {"user": features(5, 4), "movie": features(7, 4)},
        TWO,
        RATES[:, :3],
        index=1,
    ),
    ex("metapath2vec", lambda: m.MetaPathRows({"author": 5, "venue": 4}), "author", index=2),
    ex("node2vec", lambda: m.Node2VecRows(N), index=4),
    ex("node2vec of some", lambda: m.Node2VecRows(N), torch.tensor([3, 1]), index=1, start="embedding"),
    ex("light gcn", lambda: pyg.LightGCN(N, 8, 2), EDGES, index=3),
    ex("light gcn, links", lambda: pyg.LightGCN(N, 8, 2), EDGES, LINKS, index=3),
    ex(
        "matrix factorization",
        lambda: m.MatrixFactorization(5, 7),
        RATES[0],
        RATES[1],
        index=2,
        start={"user": ["user_emb", "user_bias"], "item": ["item_emb", "item_bias"]},
    ),
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
    *(
        ex(f"basic {name}", lambda c=cls: c(4, 8, 2, 3), X, EDGES, index=1, without=ZEROS if name == "GIN" else ())
        for name, cls in (("GCN", pyg.GCN), ("GIN", pyg.GIN), ("GAT", pyg.GAT))
    ),
    ex("diff pool", m.DiffPool, X, PAIR_EDGES, PAIR_BATCH, index=0, output=0),
    ex("min cut", m.MinCut, X, PAIR_EDGES, PAIR_BATCH, index=0, output=0),
    ex("top k pool", lambda: m.Hierarchical(lambda c: m.TopKPooling(c, ratio=0.8)), GRAPHS, index=0),
    ex("top k pool, all graphs", lambda: m.Hierarchical(lambda c: m.TopKPooling(c, ratio=0.8)), GRAPHS, index="all"),
    ex("sag pool", lambda: m.Hierarchical(lambda c: m.SAGPooling(c, ratio=0.8)), GRAPHS, index=0, without=ZEROS),
    ex("asap", m.ASAP, X, PAIR_EDGES, PAIR_BATCH, index=0),
    ex("nn conv of qm9", m.NNConvQM9, GRAPHS, index=0, without=SOFT),
    ex(
        "attentive fp",
        lambda: pyg.AttentiveFP(4, 8, 1, 2, 2, 2),
        X,
        PAIR_EDGES,
        PAIR_ATTR,
        PAIR_BATCH,
        index=0,
        without=SOFT,
    ),
    ex("schnet-like by atoms", m.MiniSchNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="embedding", without=SOFT),
    ex("schnet-like by positions", m.MiniSchNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="pos", without=SOFT),
    ex(
        "schnet-like by both",
        m.MiniSchNet,
        Z,
        POS,
        PAIR_EDGES,
        PAIR_BATCH,
        index=0,
        start=["embedding", "pos"],
        without=SOFT,
    ),
    ex(
        "energy beside forces",
        m.Forces,
        Z,
        POS,
        PAIR_EDGES,
        PAIR_BATCH,
        index=0,
        start="embedding",
        output=0,
        without=SOFT,
    ),
    ex("dimenet-like", m.AngularNet, Z, POS, PAIR_EDGES, PAIR_BATCH, index=0, start="z", without=SOFT),
    ex("pointnet++-like", m.PointNetPlus, POS, PAIR_BATCH, index=0, without=ZEROS),
    ex("point dgcnn", m.PointDGCNN, POS, PAIR_BATCH, index=0, without=ZEROS),
    ex(
        "gps",
        m.GPS,
        Z.unsqueeze(1),
        noise(N, 3),
        PAIR_EDGES,
        torch.arange(PAIR_EDGES.shape[1]) % 4,
        PAIR_BATCH,
        index=0,
        start="node_emb",
        without=SOFT + FUSED,
    ),
    ex(
        "pna of zinc",
        lambda: m.PNANet(DEGREE),
        Z.unsqueeze(1),
        PAIR_EDGES,
        torch.arange(PAIR_EDGES.shape[1]) % 4,
        PAIR_BATCH,
        index=0,
        without=SOFT,
    ),
    ex(
        "ogb molecules",
        m.OGBMol,
        Batch.from_data_list(
            [Data(x=torch.stack([Z[:5] % 5, Z[:5] % 4, Z[:5] % 3], 1), edge_index=GRAPHS[0].edge_index)]
        ),
        index=0,
    ),
    ex(
        "schnet of pyg",
        lambda: pyg.SchNet(
            8,
            8,
            2,
            5,
            interaction_graph=lambda pos, batch: (PAIR_EDGES, (pos[PAIR_EDGES[0]] - pos[PAIR_EDGES[1]]).norm(dim=-1)),
        ),
        Z,
        POS,
        PAIR_BATCH,
        index=0,
        start="embedding",
        without=SOFT,
    ),
]
TIME = [
    ex(
        "tgn",
        lambda: m.TGN(20),
        torch.arange(N) + 3,
        EDGES,
        torch.arange(E),
        ATTR,
        LINKS[0],
        LINKS[1],
        index=1,
        start="memory",
        without=SOFT,
    ),
    ex(
        "tgn by module",
        lambda: (lambda net: net)(m.TGN(20)),
        torch.arange(N) + 3,
        EDGES,
        torch.arange(E),
        ATTR,
        LINKS[0],
        LINKS[1],
        index=1,
        start="memory.memory",
        without=SOFT,
    )
    if False
    else ex(
        "tgn by table",
        lambda: m.TGN(20),
        torch.arange(N) + 3,
        EDGES,
        torch.arange(E),
        ATTR,
        LINKS[0],
        LINKS[1],
        index=1,
        start="memory.memory",
        without=SOFT,
    ),
    ex("recurrent gcn", m.GConvGRU, noise(N, 3, 4), EDGES, index=5),
    ex(
        "bipartite",
        m.BipartiteSAGE,
        {"user": features(5, 4), "item": features(7, 3)},
        {("user", "buys", "item"): RATES, ("item", "of", "user"): RATES.flip(0)},
        index=2,
    )
    if False
    else ex("recurrent gcn, all", m.GConvGRU, noise(N, 3, 4), EDGES, index="all"),
]
EXAMPLES = [*CITATION, *RELATIONS, *LINKED, *WHOLE, *TIME]


def _batch_of_loader() -> Data:
    """What a NeighborLoader gives: seeds first, their own numbers in n_id."""
    nodes = torch.tensor([5, 2, 4, 6, 3, 0, 1, 7])
    place = torch.full((N,), -1)
    place[nodes] = torch.arange(len(nodes))
    inside = (place[EDGES] >= 0).all(0)
    return Data(x=X[nodes], edge_index=place[EDGES[:, inside]], n_id=nodes, batch_size=2, input_id=torch.tensor([5, 2]))


def _dense_adj() -> Tensor:
    adj = to_torch_coo_tensor(EDGES, size=N).to_dense().double()
    return adj / adj.sum(1, keepdim=True)


MOLECULES = Batch.from_data_list(
    [Data(z=Z[:5], edge_index=GRAPHS[0].edge_index, bond=torch.arange(GRAPHS[0].num_edges) % 4),
     Data(z=Z[5:], edge_index=GRAPHS[1].edge_index, bond=torch.arange(GRAPHS[1].num_edges) % 4)]
)  # fmt: skip
JOINED = (
    torch.cat([RATES, RATES.flip(0)], 1)
    + torch.tensor([[0], [5]]).repeat(1, 16) * torch.tensor([[1] * 8 + [0] * 8, [1] * 8 + [0] * 8])
    if False
    else torch.stack([torch.cat([RATES[0], RATES[1] + 5]), torch.cat([RATES[1] + 5, RATES[0]])])
)
TEXTS = [f"node {i}" for i in range(N)]
STRANGERS = [
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
    ex("edges first", s.EdgesFirst, EDGES, X, index=5),
    ex("other names", s.OtherName, EDGES, X, index=5),
    ex(
        "other names, Data",
        lambda: (lambda net: lambda features, edge_index: net(edge_index, features))(seeded(s.OtherName())),
        DATA,
        index=5,
    ),
    ex("time first", s.WithTime, torch.tensor(0.5).double(), X, EDGES, index=5),
    ex(
        "sparse features, coo",
        s.SparseFeatures,
        X.relu().to_sparse(),
        to_torch_coo_tensor(EDGES, size=N).double(),
        index=5,
    ),
    ex(
        "sparse features, csr",
        s.SparseFeatures,
        X.relu().to_sparse_csr(),
        to_torch_csr_tensor(EDGES, size=N).double(),
        index=5,
    ),
    ex("sparse features, linear", s.SparseLinear, X.relu().to_sparse(), EDGES, index=5, without=ZEROS),
    ex("dense adjacency", s.Kipf, X, _dense_adj(), index=5),
    ex("dense adjacency, all", s.Kipf, X, _dense_adj(), index="all"),
    ex("degrees looked up", s.DegreeBuckets, EDGES, N, index=5),
    ex("ids looked up", lambda: s.IdEmbedding(30), torch.arange(N) + 7, EDGES, index=5),
    ex("ids looked up, by name", lambda: s.IdEmbedding(30), torch.arange(N) + 7, EDGES, index=5, start="emb"),
    ex("ids looked up, features", lambda: s.IdEmbedding(30), torch.arange(N) + 7, EDGES, index=5, of="feature"),
    ex("x=None and a table", lambda: s.EmbeddingTable(N), None, EDGES, index=5),
    ex("a table beside features", lambda: s.EmbeddingTable(N), X, EDGES, index=5, start="table", without=SOFT),
    ex("a table and features", lambda: s.EmbeddingTable(N), X, EDGES, index=5, start=["table", "x"]),
    ex("a parameter", lambda: s.ParameterTable(N), EDGES, index=5),
    ex("a parameter, edges", lambda: s.ParameterTable(N), EDGES, index=5, of="edge"),
    ex("a buffer", lambda: s.ParameterTable(N, trained=False), EDGES, index=5),
    ex("a buffer by name", lambda: s.ParameterTable(N, trained=False), EDGES, index=5, start="x"),
    ex("a parameter in a list", lambda: s.TableInList(N), EDGES, index="all"),
    ex(
        "users and items",
        lambda: s.UserItem(5, 7),
        JOINED,
        RATES[0],
        RATES[1],
        index=2,
        start={"user": "user_embedding", "item": "item_embedding"},
    ),
    ex(
        "users and items by weights",
        lambda: s.UserItem(5, 7),
        JOINED,
        RATES[0],
        RATES[1],
        index=2,
        start={"user": "user_embedding.weight", "item": "item_embedding.weight"},
    ),
    ex("words", s.TokenGraph, Z, PAIR_EDGES, PAIR_BATCH, index=0, start="word", without=SOFT),
    ex("words and positions", s.TokenGraph, Z, PAIR_EDGES, PAIR_BATCH, index=0, start=["word", "position"]),
    ex("atoms and bonds", s.Molecule, MOLECULES, index=0, without=SOFT),
    ex("atoms and bonds by z", s.Molecule, MOLECULES, index=0, start="z", without=SOFT),
    ex("own attention", lambda: s.Two(s.OwnAttention), X, EDGES, index=5),
    ex("scatter only", s.ScatterOnly, X, EDGES, index=5),
    ex("virtual node", s.VirtualNode, X, PAIR_EDGES, PAIR_BATCH, index=0, without=SOFT),
    ex("line graph", s.EdgePooler, X, PAIR_EDGES, PAIR_BATCH, index=0, without=ZEROS),
    ex("plain transformer", s.GraphTransformer, X, EDGES, index=5, without=SOFT + FUSED),
    ex("history by lstm", s.Seq2Graph, noise(N, 5, 4), EDGES, noise(E).abs(), index=5),
    ex("traffic", s.STGCN, noise(N, 2, 8), EDGES, index=5),
    ex("two graphs", s.Siamese, X, EDGES, features(6, 4, seed=4), EDGES[:, (EDGES < 6).all(0)], index=0, without=SOFT),
    ex(
        "two graphs, the other",
        s.Siamese,
        X,
        EDGES,
        features(6, 4, seed=4),
        EDGES[:, (EDGES < 6).all(0)],
        index=0,
        start="x_other",
        without=SOFT,
    ),
    ex("lightning-like", s.Lightning, X, EDGES, index=5),
    ex("lightning-like, Data", s.Lightning, DATA, index=5),
    ex("everything in a dict", s.GNNWithDict, {"x": X, "edge_index": EDGES}, index=5, start="x")
    if False
    else ex("named arguments only", s.KwargsOnly, index=5, features=X, edge_index=EDGES),
    ex("any arguments", s.Varargs, X, EDGES, index=5),
    ex("points with features", s.Positional, X, POS, EDGES, index=5, without=SOFT),
    ex("points with features, positions", s.Positional, X, POS, EDGES, index=5, start="pos", without=SOFT),
    ex("page rank inside", s.PPRGo, X, EDGES, index=5),
    ex("egnn", s.EGNN, X, POS, PAIR_EDGES, PAIR_BATCH, index=0, output=0, start="h", without=SOFT),
    ex("egnn, positions", s.EGNN, X, POS, PAIR_EDGES, PAIR_BATCH, index=0, output=0, start="x", without=SOFT),
    ex("xlogy", s.Entropy, X, EDGES, index=5, without=SOFT),
    ex("take", s.TakeRows, X, EDGES, index=5),
    ex("two pools", s.GraphLevelTwoPools, X, PAIR_EDGES, PAIR_BATCH, index=0),
    ex("two pools, Batch", s.GraphLevelTwoPools, GRAPHS),
    ex("loader's batch", m.BatchTaking, _batch_of_loader(), index=0),
    ex("loader's batch, tensors from it", m.SAGE, _batch_of_loader(), index=[0, 1]),
    ex("texts as ids", s.Two, X, EDGES, index="node 5", ids=TEXTS),
    ex("texts as ids, a mapping", s.Two, X, EDGES, index=["node 5", "node 1"], ids={t: i for i, t in enumerate(TEXTS)}),
    ex("scripted", s.Two, X, EDGES, index=5, prepare=lambda net: torch.jit.script(net)),
    ex("traced", s.Two, X, EDGES, index=5, prepare=lambda net: torch.jit.trace(net, (X, EDGES), check_trace=False)),
    ex("scripted, all", s.Two, X, EDGES, index="all", prepare=lambda net: torch.jit.script(net)),
    ex("scripted, graphs", lambda: s.GraphLevelTwoPools(), X, PAIR_EDGES, PAIR_BATCH, index=0),
    ex("compiled", s.Two, X, EDGES, index=5, prepare=lambda net: torch.compile(net)),
    ex(
        "exported",
        s.Two,
        X,
        EDGES,
        index=5,
        prepare=lambda net: torch.export.export(net, (X, EDGES), strict=False).module(),
    ),
    ex("data parallel", s.Two, X, EDGES, index=5, prepare=nn.DataParallel),
    ex("data parallel, Data", s.Two, DATA, index=5, prepare=nn.DataParallel),
    ex(
        "a function",
        lambda: (lambda net: lambda x, e: net(x, e).softmax(-1))(seeded(s.Two())),
        X,
        EDGES,
        index=5,
        without=SOFT,
    ),
    ex("a method", lambda: seeded(s.Two()).embed, X, EDGES, index=5),
    ex("partial", lambda: functools.partial(seeded(s.Two()), edge_index=EDGES), X, index=5),
    ex(
        "a table of a function",
        lambda: (lambda table, net: lambda e: net(table, e))(X, seeded(s.Two())),
        EDGES,
        index=5,
        start=X,
    ),
]
EXAMPLES += STRANGERS
