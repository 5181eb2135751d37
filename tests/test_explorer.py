"""The page's answers, without a browser: what is computed, what is read strictly, what is refused."""

import json
import sys
from pathlib import Path

import networkx as nx
import pytest
import torch
from helpers import assert_close
from matplotlib.text import Text
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GINEConv, global_add_pool
from torch_geometric.utils import barabasi_albert_graph, from_smiles

from xdegree import agglomerate, decompose, explain, interaction

pytest.importorskip("dash", reason='no Dash: pip install "xdegree[explorer]"')
pytest.importorskip("rdkit", reason='no RDKit: pip install "xdegree[chem]"')

from xdegree.canvas import neighborhood
from xdegree.cli import main
from xdegree.datasets import molecule_of, toy_sentences
from xdegree.explorer import cytoscape, examples, make_app, panels, parse, picture
from xdegree.explorer.answers import Answers, agreement
from xdegree.explorer.catalogue import Catalogue
from xdegree.explorer.downloads import picture_of
from xdegree.explorer.parse import Reference
from xdegree.explorer.problem import MAX_NODES, MAX_UPLOAD, Problem
from xdegree.explorer.server_state import Desk
from xdegree.explorer.subject import Example, Item, not_drawn
from xdegree.explorer.user_model import own_example
from xdegree.factories import UsageError
from xdegree.models import GCN
from xdegree.recipes import Recipe

ATOMS = ("C", "O", "H", "N")
NITRO = "c1ccccc1[N+](=O)[O-]"


def a_molecule_model() -> Example:
    torch.manual_seed(0)
    model = GCN(len(ATOMS), 3, level="graph").double().eval()
    items = [Item(smiles, in_double(molecule_of(smiles, ATOMS))) for smiles in (NITRO, "CCO")]
    return Example("molecules", "Molecules", "untrained", "molecule", model, items, ("a", "b"), ATOMS)


def a_node_model() -> Example:
    torch.manual_seed(1)
    ring = torch.arange(12)
    edges = torch.stack([ring, (ring + 1) % 12])
    data = Data(x=torch.randn(12, 2, dtype=torch.double), edge_index=torch.cat([edges, edges.flip(0)], 1))
    model = GCN(2, 2, layers=2).double().eval()
    return Example("nodes", "Nodes", "untrained", "graph", model, [Item("node 5", data, 5)])


def in_double(data: Data) -> Data:
    data.x = data.x.double()
    return data


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue([a_molecule_model(), a_node_model()])


def test_groups_are_what_decompose_says(catalogue: Catalogue) -> None:
    subject = catalogue.subject(Reference("molecules", item=0))
    model, data = subject.one.model, subject.data
    a, b = (6, 7, 8), (0, 1)
    rest = [n for n in range(data.num_nodes) if n not in (*a, *b)]
    answer = Answers().groups(subject, a, b)
    d = decompose(model, data.x, data.edge_index, groups=[a, b, [*a, *b], rest])
    for row, wanted in zip((answer.a, answer.b, answer.together, answer.rest), d.target[:, 0], strict=True):
        assert_close(torch.tensor(row, dtype=torch.double), wanted)
    assert_close(torch.tensor(answer.total, dtype=torch.double), d.total[0])
    for c in range(3):
        met = interaction(model, data.x, data.edge_index, a=a, b=b, target=c)
        assert answer.interaction[c] == pytest.approx(met, abs=1e-12)
        assert answer.together[c] + answer.rest[c] + answer.meeting[c] == pytest.approx(answer.total[c], abs=1e-12)


def test_groups_of_a_node_are_asked_in_its_computation_graph(catalogue: Catalogue) -> None:
    subject = catalogue.subject(Reference("nodes", item=0))
    model, data = subject.one.model, subject.data
    assert subject.nodes == [3, 4, 5, 6, 7]
    assert subject.index == 5
    answer = Answers().groups(subject, (4, 5), (7,))
    d = decompose(model, data.x, data.edge_index, groups=[[4, 5], [7], [4, 5, 7], [3, 6]])
    for row, wanted in zip((answer.a, answer.b, answer.together, answer.rest), d.target[:, 5], strict=True):
        assert_close(torch.tensor(row, dtype=torch.double), wanted)


def test_one_question_is_one_call_of_the_engine(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(*args: object, **kwargs: object) -> object:
        asked.append(len(kwargs["groups"]))  # type: ignore[arg-type]
        return decompose(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr("xdegree.explorer.answers.decompose", counted)
    Answers().groups(catalogue.subject(Reference("molecules", item=0)), (1,), (2, 3))
    assert asked == [4]


def test_scores_and_growth_are_those_of_the_library(catalogue: Catalogue) -> None:
    answers = Answers()
    for name in ("molecules", "nodes"):
        subject = catalogue.subject(Reference(name, item=0))
        model, data = subject.one.model, subject.data
        e = explain(model, data.x, data.edge_index, index=subject.index, target=1)
        assert_close(answers.explanation(subject, 1).class_scores, e.class_scores)
        assert_close(answers.scores(subject, "DEGREE", 1), e.node_scores)
        grown = answers.grown(subject, 1)
        assert grown.complete
        assert grown.tree == agglomerate(model, data.x, data.edge_index, index=subject.index, target=1)


def test_growth_that_takes_too_long_is_cut_and_says_so(catalogue: Catalogue) -> None:
    grown = Answers(patience=0).grown(catalogue.subject(Reference("molecules", item=0)), 0)
    assert not grown.complete
    assert len(grown.tree.levels) == 1


def test_methods_that_cannot_explain_say_why(catalogue: Catalogue) -> None:
    subject = catalogue.subject(Reference("molecules", item=0))
    for method, why in (
        ("attention", "attention layers"),
        ("hop distance", "nodes, not of graphs"),
        ("x", "no method"),
    ):
        with pytest.raises(Problem, match=why):
            Answers().scores(subject, method, 0)


def test_overlapping_groups_are_refused(catalogue: Catalogue) -> None:
    with pytest.raises(Problem, match="Node 1 is in both groups"):
        Answers().groups(catalogue.subject(Reference("molecules", item=0)), (1, 2), (1,))


def test_agreement_is_the_rank_correlation() -> None:
    a = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert agreement(a, a**3) == pytest.approx(1)
    assert agreement(a, -a) == pytest.approx(-1)
    assert agreement(a, torch.zeros(4)) is None


def test_drawings_are_plain_and_colours_follow_signs(catalogue: Catalogue) -> None:
    subject = catalogue.subject(Reference("molecules", item=0))
    scores = Answers().explanation(subject, 0).class_scores
    made = cytoscape.drawing(subject, subject.canvas(scores[:, 0].abs()), scores)
    assert json.loads(json.dumps(made)) == made
    assert len(made["nodes"]) == 14
    assert sorted(edge["order"] for edge in made["edges"]) == [1] * 10 + [2] * 4
    layer = cytoscape.layer([0, 1, 2], [2.0, -2.0, 0.0])
    red, blue, white = layer["colours"]
    assert int(red[1:3], 16) > int(red[5:7], 16)
    assert int(blue[1:3], 16) < int(blue[5:7], 16)
    assert white == "#f7f7f7"
    assert layer["most"] == 2


def test_growth_layers_mark_what_is_in_no_group(catalogue: Catalogue) -> None:
    subject = catalogue.subject(Reference("nodes", item=0))
    tree = Answers().grown(subject, 0).tree
    found = cytoscape.growth_layers(tree, subject.nodes)
    assert len(found["levels"]) == len(tree.levels)
    for level, groups in zip(found["levels"], tree.levels, strict=True):
        for node, number in zip(subject.nodes, level["groups"], strict=True):
            assert (number < 0) == all(node not in group.nodes for group in groups)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (None, "Choose an example"),
        ({"example": 3, "item": 0}, "Choose an example"),
        ({"example": "molecules"}, "no prediction"),
        ({"example": "molecules", "item": "0"}, "no prediction"),
        ({"example": "molecules", "item": True}, "no prediction"),
        ({"example": "molecules", "item": 0, "smiles": "C"}, "no prediction"),
        ({"example": "molecules", "item": 0, "model": "os.system"}, "no prediction"),
        ({"example": "elsewhere", "item": 0}, "no example"),
        ({"example": "molecules", "item": 99}, "predictions 0 to 1"),
        ({"example": "nodes", "smiles": "C"}, "no model of molecules"),
        ({"example": "molecules", "smiles": "c1ccccc"}, "cannot read"),
        ({"example": "molecules", "smiles": "<script>alert(1)</script>"}, "cannot read"),
        ({"example": "molecules", "smiles": "[U]"}, "never seen U"),
        ({"example": "molecules", "smiles": "  "}, "Type a SMILES"),
        ({"example": "molecules", "smiles": "C" * 501}, "501 letters"),
    ],
)
def test_what_a_browser_refers_to_is_read_strictly(catalogue: Catalogue, raw: object, why: str) -> None:
    with pytest.raises(Problem, match=why):
        catalogue.subject(parse.reference(raw))


def a_graph(**other: object) -> str:
    return json.dumps({"x": [[1, 2], [3, 4], [5, 6]], "edge_index": [[0, 1], [1, 0]], **other})


def test_a_graph_is_read() -> None:
    data, index, title = parse.graph(a_graph(names=["<b>", "b", "c"], index=2, title="mine"), 2)
    assert data.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert (data.names, index, title) == (["<b>", "b", "c"], 2, "mine")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("not json", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"x": [[NaN, 1]]}', "NaN is no number"),
        ("[1]", "JSON object"),
        (a_graph(code="import os"), "field 'code'"),
        (a_graph(format="pickle"), "format is 'pickle'"),
        (a_graph(x=[[1], [2], [3]]), "must have 2 features"),
        (a_graph(x=[]), "list with the features"),
        (a_graph(x=[[1, "2"], [3, 4], [5, 6]]), "no finite number"),
        (a_graph(x=[[1, True], [3, 4], [5, 6]]), "no finite number"),
        (a_graph(x=[[1, 1e300], [3, 4], [5, 6]]), "no finite number"),
        (a_graph(edge_index=[[0], [3]]), "nodes from 0 to 2"),
        (a_graph(edge_index=[[0], [-1]]), "nodes from 0 to 2"),
        (a_graph(edge_index=[[0, 1], [1]]), "same length"),
        (a_graph(names=["a"]), "one text for each of the 3 nodes"),
        (a_graph(index=3), "from 0 to 2"),
        (a_graph(title=3), "title must be a text"),
        (a_graph(x=[[0, 0]] * (MAX_NODES + 1)), "takes up to 1,000"),
        (a_graph(title="x" * MAX_UPLOAD), "larger than 1 MB"),
    ],
)
def test_graphs_are_read_strictly(text: str, why: str) -> None:
    with pytest.raises(Problem, match=why) as raised:
        parse.graph(text, 2)
    assert len(str(raised.value)) < 300


def test_groups_are_read_strictly() -> None:
    assert parse.nodes([3, 1, 3], {1, 2, 3}) == (1, 3)
    assert parse.nodes(None, {1}) == ()
    for raw, why in (([9], "Node 9"), (["1"], "list of node numbers"), ("12", "list of node numbers")):
        with pytest.raises(Problem, match=why):
            parse.nodes(raw, {1, 2})


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(2, 3)
        self.drop = nn.Dropout()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.drop(self.conv(x, edge_index))


def test_a_model_of_ones_own_becomes_an_example() -> None:
    x, edges = torch.randn(4, 2), torch.tensor([[0, 1, 2], [1, 2, 3]])
    example = own_example(Net(), (x, edges), {}, graphs=[a_graph(index=1, title="mine")], classes=["u", "v", "w"])
    assert [item.title for item in example.items] == ["node 0", "node 1", "node 2", "node 3", "mine, node 1"]
    subject = Catalogue([example]).subject(Reference("own", item=4))
    assert subject.classes == ("u", "v", "w")
    assert subject.nodes == [0, 1]
    several = own_example(Net(), ([Data(x=x, edge_index=edges)] * 2,), {})
    assert several.items[4].title == "graph 1, node 0"
    from_data = own_example(Net(), (Data(x=x, edge_index=edges, names=list("abcd")),), {})
    assert from_data.items[0].data.names == list("abcd")


class TakesBatch(nn.Module):
    def __init__(self, width: int, classes: int = 1) -> None:
        super().__init__()
        self.conv, self.out = GCNConv(width, 4), nn.Linear(4, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return self.out(global_add_pool(self.conv(x, edge_index).relu(), batch))


class TakesWholeData(TakesBatch):
    def forward(self, data: Data) -> torch.Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index, data.batch)


class TakesEdges(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = GINEConv(nn.Linear(9, 4), edge_dim=3), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_attr: torch.Tensor) -> torch.Tensor:
        return self.out(self.conv(x, edge_index, edge_attr).sum(0, keepdim=True))


def pyg_molecules(*smiles: str) -> list[Data]:
    found = [from_smiles(text) for text in smiles]
    for data in found:
        data.x, data.edge_attr = data.x.float(), data.edge_attr.float()
    return found


ION = "C[N+](C)(C)CC(=O)[O-]"


@pytest.mark.parametrize(
    ("model", "graphs"),
    [
        (TakesBatch(9), pyg_molecules("CCO", ION)),
        (TakesWholeData(9), pyg_molecules("CCO", ION)),
        (TakesEdges(), pyg_molecules("CCO", ION)),
        (TakesBatch(14, 3), [molecule_of("CCO"), molecule_of(ION)]),
    ],
    ids=["batch", "data", "edge features", "one-hot"],
)
def test_molecules_of_ones_own_model_are_drawn_and_typed(model: nn.Module, graphs: list[Data]) -> None:
    graphs[0].smiles, graphs[1].smiles = "CCO", ION
    example = own_example(model, (graphs,), {})
    assert [item.title for item in example.items] == ["CCO", ION]
    catalogue, answers = Catalogue([example]), Answers()
    for ref in (Reference("own", item=1), Reference("own", smiles=ION)):
        subject = catalogue.subject(ref)
        e = answers.explanation(subject, subject.one.target)
        canvas = subject.canvas(e.node_scores.abs())
        assert canvas.kind == "molecule"
        labels = {
            node["label"] + node["charge"] for node in cytoscape.drawing(subject, canvas, e.class_scores)["nodes"]
        }
        assert {"N⁺", "O⁻"} <= labels, "formal charges"
    assert "Your molecule" in subject.note
    assert torch.allclose(subject.one.prediction, catalogue.subject(Reference("own", item=1)).one.prediction)


def test_a_reader_of_ones_own_is_asked_and_its_faults_are_told() -> None:
    def read(text: str) -> Data:
        if "?" in text:
            raise KeyError("what is that")
        return Data(
            x=torch.ones(len(text.split()), 2), edge_index=torch.zeros(2, 0, dtype=torch.long), words=text.split()
        )

    example = own_example(TakesBatch(2), ([read("one two three"), read("four five")],), {}, views={"sentence": read})
    assert (example.kind, example.items[0].title) == ("sentence", "one two three")
    catalogue = Catalogue([example])
    subject = catalogue.subject(Reference("own", sentence="my own words"))
    assert subject.canvas(torch.ones(3)).kind == "sentence"
    assert subject.note.startswith("Your sentence, 3 words")
    with pytest.raises(Problem, match="sentence cannot be read: 'what is that'"):
        catalogue.subject(Reference("own", sentence="what ?"))
    with pytest.raises(Problem, match="no model of molecules"):
        catalogue.subject(Reference("own", smiles="CCO"))
    with pytest.raises(Problem, match="known are molecule, sentence"):
        own_example(TakesBatch(2), ([read("a b")],), {}, views={"molecul": read})


def test_an_uploaded_graph_says_what_it_is_and_what_is_not_drawn() -> None:
    example = own_example(Net(), (torch.randn(4, 2), torch.tensor([[0, 1], [1, 2]])), {})
    text = json.dumps({"x": [[1, 2], [3, 4], [5, 6]], "edge_index": [[0, 0, 1, 1, 1], [0, 1, 0, 2, 2]], "index": 1})
    subject = Catalogue([example]).subject(Reference("own", graph=text))
    assert subject.note.startswith("An uploaded graph of 3 nodes and 5 edges, explained is its node 1.")
    said = not_drawn(subject.data, subject.canvas(torch.ones(3)))
    assert said == "Not drawn: 1 edge from a node to itself, the direction of 1 edge, 1 repeated edge. "


def test_an_uploaded_graph_must_have_what_the_models_own_have() -> None:
    example = own_example(TakesEdges(), (pyg_molecules("CCO"),), {})
    text = json.dumps({"x": [[0.0] * 9], "edge_index": [[], []]})
    with pytest.raises(Problem, match="needs 'edge_attr'"):
        Catalogue([example]).subject(Reference("own", graph=text))


def test_the_neighborhood_that_is_drawn_hangs_together() -> None:
    torch.manual_seed(0)
    edges = barabasi_albert_graph(400, 2)
    strength = torch.rand(400)
    found = neighborhood(edges, range(400), strength, 7, 60)
    assert 7 in found
    assert len(found) <= 60
    assert nx.is_connected(nx.Graph(edges.t().tolist()).subgraph(found))
    strongest = set(strength.argsort(descending=True)[:20].tolist())
    assert strongest <= set(found)


def test_generated_sentences_are_read_as_they_are_made() -> None:
    graphs = toy_sentences(200).graphs
    read = examples.toy_reader(graphs)
    for graph in graphs:
        again = read(f"{' '.join(graph.words).capitalize()}.")
        assert torch.equal(again.x, graph.x)
        assert set(zip(*again.edge_index.tolist(), strict=True)) == set(zip(*graph.edge_index.tolist(), strict=True))
    for text, why in (("the plot was purple", "never seen purple"), ("but", "has no words")):
        with pytest.raises(ValueError, match=why):
            read(text)


def test_a_model_that_the_page_cannot_call_is_refused() -> None:
    with pytest.raises(Problem, match=r"model\(x, edge_index"):
        own_example(lambda x: x, (torch.ones(2, 2),), {})
    with pytest.raises(Problem, match="this factory's arguments are others"):
        own_example(Net(), (torch.ones(2, 2),), {})


def test_large_neighborhoods_show_their_strongest_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xdegree.canvas.graph.MOST_SHOWN", 3)
    subject = Catalogue([a_node_model()]).subject(Reference("nodes", item=0))
    strength = torch.zeros(12)
    strength[3], strength[7] = 2, 1
    assert list(subject.canvas(strength).places) == [3, 4, 5], "the way from the strongest to the explained node"


def test_examples_are_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDEGREE_DATA", str(tmp_path / "none"))
    said: list[str] = []
    (example,) = examples.prepared(["sentences"], said.append, folder=tmp_path)
    assert said == ["[1/1] sentences"]
    assert "Generated sentences" in example.note
    monkeypatch.setattr("xdegree.recipes.train_graph", None)
    (again,) = examples.prepared(["sentences"], said.append, folder=tmp_path)
    assert all(torch.equal(p, q) for p, q in zip(example.model.parameters(), again.model.parameters(), strict=True))


@pytest.mark.parametrize(("name", "left"), [("molecules", "mutagenicity/raw"), ("sentences", "graph_sst2_rebuilt")])
def test_data_that_are_not_complete_are_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, left: str
) -> None:
    monkeypatch.setenv("XDEGREE_DATA", str(tmp_path))
    (tmp_path / left).mkdir(parents=True)  # as a copy that was broken off leaves it
    made = examples.trained
    quick = lambda dataset, **_: made(dataset, how=Recipe("GCN", 1), folder=None, progress=False)
    monkeypatch.setattr(examples, "trained", quick)
    said: list[str] = []
    (example,) = examples.prepared([name], said.append, folder=tmp_path)
    assert example.note.startswith("Generated")
    assert str(tmp_path / left) in said[-1]
    assert said[-1].endswith("generated data are shown instead")


def test_long_names_stand_below_their_nodes(catalogue: Catalogue) -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), names=["a", "user 17", "x" * 90])
    subject = Catalogue([own_example(GCN(3, 2, level="graph").eval(), (data,), {})]).subject(Reference("own", item=0))
    made = cytoscape.drawing(subject, subject.canvas(torch.ones(3)), torch.zeros(3, 2))
    assert [node["label"] for node in made["nodes"]] == ["a", "user 17", "x" * 17 + "…"]
    assert ["named" in node["classes"] for node in made["nodes"]] == [False, True, True]


def test_the_server_answers_to_local_names_only(catalogue: Catalogue) -> None:
    client = make_app(list(catalogue.examples.values())).server.test_client()
    for name, code in (("127.0.0.1:8050", 200), ("localhost", 200), ("evil.example", 400)):
        assert client.get("/", headers={"Host": name}).status_code == code
    answer = client.get("/", headers={"Host": "127.0.0.1"})
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert b"http://" not in answer.data.replace(b"http://www.w3.org", b"")
    assert b"https://" not in answer.data


def test_a_large_body_is_refused_before_it_is_read(catalogue: Catalogue) -> None:
    client = make_app(list(catalogue.examples.values())).server.test_client()
    body = b'{"x": "' + b"x" * (5 * MAX_UPLOAD) + b'"}'
    headers = {"Host": "127.0.0.1", "Content-Type": "application/json"}
    answer = client.post("/_dash-update-component", data=body, headers=headers)
    assert answer.status_code == 413


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explorer", "--classes", "a,b"]) == 2
    assert "name its MODULE:FACTORY" in capsys.readouterr().err
    assert main(["explorer", "nowhere:factory"]) == 2
    assert "nowhere cannot be imported" in capsys.readouterr().err


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("xdegree.explorer")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dash_cytoscape", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "xdegree\[explorer\]"'):
        import xdegree.explorer  # noqa: F401
    from xdegree.cli import explorer

    with pytest.raises(UsageError, match=r'pip install "xdegree\[explorer\]"'):
        explorer.run(explorer.argparse.Namespace())


@pytest.mark.parametrize(
    ("view", "wanted"), [("scores", ""), ("growth", "level 2 of"), ("compare", "gradient x input")]
)
@pytest.mark.parametrize("name", ["molecules", "nodes"])
def test_a_picture_says_what_it_shows(catalogue: Catalogue, name: str, view: str, wanted: str) -> None:
    desk = Desk(catalogue, Answers())
    subject, canvas = desk.drawn({"example": name, "item": 0})
    a, b = ([6, 7], [5]) if name == "molecules" else ([4], [5, 6])
    figure = picture_of(desk, subject, canvas, 1, a, b, view, 1, ("DEGREE", "gradient x input"))
    said = [text.get_text() for text in figure.findobj(Text)]
    assert any(f"Why “{subject.classes[1]}”? Predicted with" in text and subject.title in text for text in said)
    named = f"“{subject.classes[1]}”" if subject.names else "class 1"
    assert any(f"contribution to {named} (logits): red raises {named}" in text.replace("\n", " ") for text in said)
    assert any("joint effects and biases" in text.replace("\n", " ") for text in said)
    assert any(wanted in text for text in said)
    answer = desk.answers.groups(subject, a, b)
    for group, row in (("A", answer.a), ("B", answer.b)):
        assert any(text.startswith(f"{group}  {panels.number(row[1])}  ") for text in said)
    assert any(panels.number(answer.interaction[1]) in text for text in said)
    assert picture.png(figure).startswith(b"\x89PNG")


def test_a_picture_of_one_output_has_no_classes() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), names=["x" * 90, "$a$", "c"])
    example = own_example(GCN(3, 1, level="graph").eval(), (data,), {})
    desk = Desk(Catalogue([example]), Answers())
    subject, canvas = desk.drawn({"example": "own", "item": 0})
    figure = picture_of(desk, subject, canvas, 0, None, None, "scores", 0, ())
    said = [text.get_text() for text in figure.findobj(Text)]
    assert any(text.startswith("graph 0\noutput ") for text in said)
    assert picture.png(figure).startswith(b"\x89PNG")


def test_numbers_of_a_table_have_the_digits_of_its_largest() -> None:
    cell = panels._cell(-4e-7, 3.5, tinted=True)
    assert (cell.children, cell.title) == ("≈ 0", "-4e-07")
    assert panels._cell(0.0149, 3.5, tinted=True).children == "+0.01"
    assert panels._cell(-0.00123, 0.02, tinted=True).children == "−0.00123"
