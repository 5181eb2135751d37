"""Jobs: every result exactly once, whatever dies on the way, and the same files whoever does the work."""

import errno
import json
import os
import shutil
import sys
from collections import Counter

import duckdb
import pandas
import polars
import pytest
import torch
from job_crew import MODELS, Inline, Place
from torch_geometric.data import Batch

import xdegree.jobs.start
from xdegree import Options, explain, jobs
from xdegree.cli import main
from xdegree.cli.loading import made
from xdegree.jobs import JobError
from xdegree.jobs.folder import locked
from xdegree.jobs.worker import At, Done, Ready

pytest.importorskip("pyarrow", reason="jobs write Parquet files: pip install 'xdegree[jobs]'")
SMALL = {"part_size": 4, "batch_size": 2, "memory": "100MB", "progress": False}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the models, whose module has a name of its own: a process imports a module once."""
    module = f"job_models_{os.urandom(4).hex()}"
    (tmp_path / f"{module}.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    yield Place(tmp_path, module)
    sys.modules.pop(module, None)


@pytest.fixture
def inline(monkeypatch):
    """Jobs run in this process; gives the crews that there were, and lets a test decide the fate of workers."""

    class Crews(list):
        fate = staticmethod(lambda worker, event: None)

    crews = Crews()

    def hired(settings, expected):
        crews.append(Inline(settings, expected, lambda worker, event: crews.fate(worker, event)))
        return crews[-1]

    monkeypatch.setattr(xdegree.jobs.start, "Processes", hired)
    yield crews
    assert all(crew.closed for crew in crews)


def table(place, name, out="out"):
    return pandas.read_parquet(place.folder / out / name).reset_index(drop=True)


def assert_whole(place, instances=24, out="out"):
    """Every instance once, its scores once, and nothing else left in the folder."""
    status = jobs.status(place.folder / out)
    assert (status.state, status.finished, status.failed) == ("finished", instances, {})
    assert table(place, "instances", out)["index"].tolist() == list(range(instances))
    scores = table(place, "scores", out)
    assert not scores.duplicated(["index", "node"]).any()
    assert len(scores) == table(place, "instances", out)["rows"].sum() == status.rows
    assert not list((place.folder / out).rglob("*.tmp"))


def expected_files(place, factory):
    """The files of a job in which nothing happens."""
    jobs.run(place(factory), out="undisturbed", workers=1, **SMALL)
    return place.files("undisturbed")


# What is explained.


def test_graphs_are_explained_as_by_hand(place, inline):
    status = jobs.run(place("of_graphs"), out="out", workers=2, **SMALL)
    assert_whole(place)
    assert (status.state, status.errors, status.parts, status.lost_workers) == ("finished", 0, 6, 0)
    assert status.seconds > 0
    model, (graphs,), _ = made(place("of_graphs"))
    scores, rows = table(place, "scores"), table(place, "instances").set_index("index")
    for number, graph in enumerate(graphs):
        e = explain(model.eval(), graph.x, graph.edge_index)
        mine = scores[scores["index"] == number]
        assert mine["node"].tolist() == list(range(len(graph.x)))
        assert mine["score"].tolist() == pytest.approx(e.node_scores.tolist(), abs=1e-6)
        assert set(mine["target"]) == {e.target} == {rows.loc[number, "target"]}
        assert rows.loc[number, "output"].tolist() == pytest.approx(e.prediction.tolist(), abs=1e-6)
        assert set(mine["prediction"]) == {rows.loc[number, "output"][e.target]} == {rows.loc[number, "prediction"]}
        assert rows.loc[number, "num_nodes"] == rows.loc[number, "rows"] == len(graph.x)


@pytest.mark.parametrize("factory", ["of_nodes", "keywords"])
def test_nodes_are_explained_as_by_hand(place, inline, factory):
    index = [7, 3, 29, 11, 0]
    choices = {"target": 1, "reading": "probability", "edges": "mean", "options": Options(bias="background")}
    status = jobs.run(place(factory), out="out", workers=1, index=index, **choices, **SMALL)
    assert (status.instances, status.finished, status.parts) == (5, 5, 2)
    model, args, kwargs = made(place(factory))
    scores, edges = table(place, "scores"), table(place, "edges")
    assert table(place, "instances")["index"].tolist() == index
    for node in index:
        e = explain(model.eval(), *args, **kwargs, index=node, **choices)
        mine, theirs = scores[scores["index"] == node], edges[edges["index"] == node]
        assert mine["node"].tolist() == e.nodes.tolist()
        assert mine["score"].tolist() == pytest.approx(e.node_scores[e.nodes].tolist(), abs=1e-6)
        inside = torch.isin(e.edge_index, e.nodes).all(0).nonzero().flatten()
        assert theirs["edge"].tolist() == inside.tolist()
        assert theirs[["source", "to"]].to_numpy().T.tolist() == e.edge_index[:, inside].tolist()
        assert theirs["score"].tolist() == pytest.approx(e.edge_scores[inside].tolist(), abs=1e-6)


def test_a_batch_is_its_graphs(place, inline):
    with (place.folder / f"{place.module}.py").open("a") as file:
        file.write("\n\ndef batch():\n    from torch_geometric.data import Batch\n\n")
        file.write('    return made("graph"), (Batch.from_data_list(sound()),)\n')
    jobs.run(place("batch"), out="out", workers=1, **SMALL)
    assert_whole(place)
    of_graphs = expected_files(place, "of_graphs")
    assert pandas.read_parquet("undisturbed/scores").equals(table(place, "scores"))
    assert of_graphs.keys() == place.files().keys()


def test_weights_are_loaded(place, inline):
    model, _, _ = made(place("of_nodes"))
    torch.save({name: 0 * value for name, value in model.state_dict().items()}, "zero.pt")
    jobs.run(place("of_nodes"), out="out", weights="zero.pt", workers=1, **SMALL)
    assert (table(place, "scores")["score"] == 0).all()


def test_the_tables_in_pandas_polars_and_duckdb(place, inline):
    jobs.run(place("poisoned"), out="out", workers=2, edges="pair", **SMALL)
    rows, errors = 5 * 24 - 18, 5  # graphs of 3 to 7 nodes
    in_pandas = {name: pandas.read_parquet(place.out / name) for name in ("scores", "edges", "instances")}
    in_polars = {name: polars.read_parquet(place.out / name / "*.parquet") for name in in_pandas}
    in_duckdb = {
        name: duckdb.sql(f"SELECT * FROM '{place.out}/{name}/*.parquet' ORDER BY index") for name in in_pandas
    }
    for name, columns in {
        "scores": ["index", "target", "prediction", "node", "score"],
        "edges": ["index", "target", "prediction", "edge", "source", "to", "score"],
        "instances": ["index", "target", "prediction", "output", "num_nodes", "rows", "error"],
    }.items():
        assert list(in_pandas[name].columns) == in_polars[name].columns == in_duckdb[name].columns == columns
        assert len(in_pandas[name]) == len(in_polars[name]) == len(in_duckdb[name].fetchall()) > 0
    assert len(in_pandas["instances"]) == 24
    assert in_pandas["instances"]["error"].notna().sum() == errors
    assert in_polars["instances"]["error"].is_not_null().sum() == errors
    best = f"SELECT index, arg_max(node, score) FROM '{place.out}/scores/*.parquet' GROUP BY index ORDER BY index"
    scores = in_pandas["scores"].reset_index(drop=True)
    by_pandas = scores.loc[scores.groupby("index")["score"].idxmax()]
    assert duckdb.sql(best).fetchall() == list(zip(by_pandas["index"], by_pandas["node"], strict=True))
    assert len(scores) == in_polars["scores"].height == rows - sum(3 + i % 5 for i in range(5, 10)) + 18 - 0
