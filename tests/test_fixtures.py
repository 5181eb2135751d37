"""Agreement with the numbers of the authors' own layers, on unmodified PyG models of the same weights.

The numbers are looked for in $XDEGREE_FIXTURES, else in ../shared/fixtures beside the project.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import CONVS, Net

from xdegree import Options, decompose

FOLDER = Path(os.environ.get("XDEGREE_FIXTURES") or Path(__file__).parents[2] / "shared" / "fixtures")
NAMES = ("gcn_node", "gat_node", "gcn_node_const", "gat_node_const", "gcn_graph_maxpool")
LAYERS = {"conv0": "convs.0", "conv1": "convs.1", "conv2": "convs.2", "lin1": "lin1", "lin2": "lin2"}
FIRST = Options.paper(ties="first")

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the authors' numbers are not there: set XDEGREE_FIXTURES to their folder"
)


class Case:
    """One file: the model that it describes, its graph, its groups and the authors' numbers."""

    def __init__(self, name: str):
        with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
            self.numbers = {key: file[key] for key in file.files}
        state = {key[4:]: torch.tensor(n).double() for key, n in self.numbers.items() if key.startswith("pyg/")}
        x, logits = self.numbers["x"], self.numbers["logits"]
        self.level = "graph" if "graph" in name else "node"
        self.model = Net(
            CONVS[name[:3]], self.level, features=x.shape[1], hidden=20, classes=logits.shape[1], layers=3
        ).double()
        self.model.load_state_dict(state)
        self.model.eval()
        args = [torch.tensor(x).double(), torch.tensor(self.numbers["edge_index"])]
        self.args = [*args, torch.tensor(self.numbers["batch"])] if self.level == "graph" else args
        self.groups = torch.tensor(self.numbers["masks"]).bool()


@pytest.fixture(scope="module", params=NAMES)
def case(request) -> Case:
    return Case(request.param)


def agree(got: torch.Tensor, number: np.ndarray) -> None:
    """Within 1e-9 wherever the authors' number is finite (theirs has NaN at 0/0), and finite everywhere."""
    expected = torch.tensor(number)
    known = expected.isfinite()
    assert known.any()
    assert got.shape == expected.shape
    assert got.isfinite().all()
    torch.testing.assert_close(got[known], expected[known], rtol=0, atol=1e-9)


def test_logits(case):
    d = decompose(case.model, *case.args, groups=case.groups, options=FIRST)
    agree(d.total, case.numbers["logits64"])
    agree(d.target, case.numbers["gamma64"])
    agree(d.background, case.numbers["beta64"])


def test_probabilities(case):
    def softened(*args):
        return torch.softmax(case.model(*args), -1)

    d = decompose(softened, *case.args, groups=case.groups, options=FIRST)
    agree(d.target, case.numbers["score_gamma64"])
    agree(d.background, case.numbers["score_beta64"])


def test_portions_between_the_layers(case):
    d = decompose(case.model, *case.args, groups=case.groups, options=FIRST, probes=LAYERS.values())
    compared = 0
    for key, number in case.numbers.items():
        if not key.startswith("inter/"):
            continue
        _, group, layer, half = key.split("/")
        probe = d.probes[LAYERS[layer]]
        portion = (probe.target if half == "gamma" else probe.background)[int(group)]
        expected = torch.tensor(number).double().reshape(portion.shape)
        known = expected.isfinite()
        torch.testing.assert_close(portion[known], expected[known], rtol=0, atol=tolerance(number))
        compared += int(known.sum())
    assert compared > 1000


def tolerance(number: np.ndarray) -> float:
    """Between the layers the authors' numbers are float32, and a bias shared by small magnitudes amplifies that."""
    return 1e-9 if number.dtype == np.float64 else 1e-4


def test_one_group_alone(case):
    d = decompose(case.model, *case.args, groups=case.groups[7:8], options=FIRST)
    agree(d.target, case.numbers["gamma64"][7:8])


def test_the_winners_of_the_max_pool():
    """With ties shared, only features that several nodes reach may differ from the authors' first winner."""
    case = Case("gcn_graph_maxpool")
    d = decompose(case.model, *case.args, groups=case.groups, probes=["convs.2", "lin1:input"])
    hidden, pooled = d.probes["convs.2"], d.probes["lin1:input"]
    rows = torch.tensor(case.numbers["pool_index64"][0, 0])
    unique = (hidden.total.relu() == pooled.total).sum(0) == 1
    picked = hidden.target.relu()[:, rows, torch.arange(20)]
    assert unique.any()
    torch.testing.assert_close(pooled.target[:, 0, unique], picked[:, unique], rtol=0, atol=1e-12)
