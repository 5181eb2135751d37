"""Jobs: every result exactly once, whatever dies on the way, and the same files whoever does the work."""

import errno
import itertools
import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb
import pandas
import polars
import psutil
import pytest
import torch
from job_crew import SMALL, assert_whole, expected_files, table

import xdegree.jobs.start
from xdegree import Options, explain, jobs
from xdegree.cli import main
from xdegree.factories import made
from xdegree.jobs import JobError
from xdegree.jobs.storage import locked
from xdegree.jobs.work import _apart
from xdegree.jobs.worker import At, Done, Ready, limit_memory

pytest.importorskip("pyarrow", reason="jobs write Parquet files: pip install 'xdegree[jobs]'")
FULL = Path("/dev/full")


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
        assert mine["score"].tolist() == pytest.approx(e.node_scores.tolist(), rel=1e-4, abs=1e-6)
        assert set(mine["target"]) == {e.target} == {rows.loc[number, "target"]}
        assert rows.loc[number, "output"].tolist() == pytest.approx(e.prediction.tolist(), abs=1e-6)
        assert set(mine["prediction"]) == {rows.loc[number, "output"][e.target]} == {rows.loc[number, "prediction"]}
        assert rows.loc[number, "num_nodes"] == rows.loc[number, "rows"] == len(graph.x)


@pytest.mark.parametrize("factory", ["of_nodes", "keywords"])
def test_nodes_are_explained_as_by_hand(place, inline, factory):
    index = torch.tensor([7, 3, 29, 11, 0])
    choices = {"target": 1, "reading": "probability", "edge_scores": "mean", "options": Options(bias="background")}
    status = jobs.run(place(factory), out="out", workers=1, index=index, **choices, **SMALL)
    assert (status.instances, status.finished, status.parts) == (5, 5, 2)
    model, args, kwargs = made(place(factory))
    scores, edges = table(place, "scores"), table(place, "edges")
    assert table(place, "instances")["index"].tolist() == index.tolist()
    for node in index.tolist():
        e = explain(model.eval(), *args, **kwargs, index=node, **choices)
        mine, theirs = scores[scores["index"] == node], edges[edges["index"] == node]
        assert mine["node"].tolist() == e.nodes.tolist()
        assert mine["score"].tolist() == pytest.approx(e.node_scores[e.nodes].tolist(), abs=1e-6)
        inside = torch.isin(e.edge_index, e.nodes).all(0).nonzero().flatten()
        assert theirs["edge"].tolist() == inside.tolist()
        assert theirs[["source", "to"]].to_numpy().T.tolist() == e.edge_index[:, inside].tolist()
        assert theirs["score"].tolist() == pytest.approx(e.edge_scores[inside].tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("of", "columns"),
    [
        ("edge", ["edge", "source", "to"]),
        ("feature", ["node", "feature"]),
        ("edge_feature", ["edge", "source", "to", "feature"]),
    ],
)
def test_edges_and_features_are_explained_as_by_hand(place, inline, of, columns):
    factory, options = "weighted" if of == "edge_feature" else "of_nodes", Options(product="share")
    jobs.run(place(factory), out="out", workers=1, index=[7, 3, 29, 11, 0], of=of, options=options, **SMALL)
    model, args, kwargs = made(place(factory))
    scores, rows = table(place, "scores"), table(place, "instances").set_index("index")["rows"]
    assert list(scores.columns) == ["index", "target", "prediction", *columns, "score"]
    for node in [7, 3, 29, 11, 0]:
        e = explain(model.eval(), *args, **kwargs, index=node, of=of, options=options)
        mine, values = scores[scores["index"] == node], e.scores.reshape(len(e.scores), -1)
        own, feature = mine[columns[0]].tolist(), mine["feature"].tolist() if "feature" in columns else 0
        assert len(mine) == rows[node]
        assert mine["score"].tolist() == pytest.approx(values[own, feature].tolist(), abs=1e-6)
        assert mine["score"].abs().sum() == pytest.approx(float(values.abs().sum()), abs=1e-5)  # what has no row is 0
        if "source" in columns:
            assert mine[["source", "to"]].to_numpy().T.tolist() == e.edge_index[:, own].tolist()
    assert rows.sum() > 5
    assert json.loads((place.out / "manifest.json").read_text())["settings"]["of"] == of


@pytest.mark.parametrize("of", ["edge", "feature"])
def test_edges_and_features_of_graphs(place, inline, of):
    jobs.run(place("poisoned"), out="out", workers=1, of=of, **SMALL)
    model, (graphs,), _ = made(place("poisoned"))
    scores, why = table(place, "scores"), table(place, "instances")["error"]
    others = set(why.dropna().index) - {5, 6, 7, 8, 9}  # the poisoned ones
    assert not others if of == "feature" else all("parallel edges" in why[number] for number in others)
    for number in why[why.isna()].index:
        e = explain(model.eval(), graphs[number], of=of)
        mine = scores[scores["index"] == number]
        assert mine["score"].sum() == pytest.approx(float(e.scores.sum()), abs=1e-5)
        assert len(mine) == (len(e.scores) if of == "edge" else e.scores.count_nonzero())


def test_a_batch_is_its_graphs(place, inline):
    with (place.folder / f"{place.module}.py").open("a") as file:
        file.write("\n\ndef batch():\n    from torch_geometric.data import Batch\n\n")
        file.write('    return made("graph"), (Batch.from_data_list(sound()),)\n')
    jobs.run(place("batch"), out="out", workers=1, **SMALL)
    assert_whole(place)
    of_graphs = expected_files(place, "of_graphs")
    assert pandas.read_parquet("undisturbed/scores").equals(table(place, "scores"))
    assert of_graphs.keys() == place.files().keys()


def test_a_graph_in_stores(place, inline):
    """Only neighborhoods are read, by every worker anew; scores are the same as from memory."""
    few = {**SMALL, "index": [3, 9, 20, 28, 29]}
    status = jobs.run(place("stored"), out="out", workers=2, **few)
    jobs.run(place("of_nodes"), out="memory", workers=1, **few)
    assert (status.state, status.finished, status.errors) == ("finished", 5, 0)
    pandas.testing.assert_frame_equal(table(place, "scores"), table(place, "scores", "memory"))
    assert any("but for a sample of rows" in unseen for unseen in status.unseen)
    with pytest.raises(JobError, match="nodes are scored, and nothing else"):
        jobs.run(place("stored"), out="edges", of="edge", **SMALL)
    models = place.folder / f"{place.module}.py"
    (place.out / "instances" / "part-000001.parquet").unlink()
    models.write_text(models.read_text().replace("data = Data(x=x", "data = Data(x=x + 1"))
    sys.modules.pop(place.module)
    with pytest.raises(JobError, match=r"its data \[argument 0\.x\] changed"):
        jobs.resume("out", progress=False)


def test_weights_are_loaded(place, inline):
    model, _, _ = made(place("of_nodes"))
    torch.save({name: 0 * value for name, value in model.state_dict().items()}, "zero.pt")
    jobs.run(place("of_nodes"), out="out", weights="zero.pt", workers=1, **SMALL)
    assert (table(place, "scores")["score"] == 0).all()


def test_the_tables_in_pandas_polars_and_duckdb(place, inline):
    jobs.run(place("poisoned"), out="out", workers=2, edge_scores="pair", **SMALL)
    rows, errors = sum(3 + i % 5 for i in range(24) if not 5 <= i < 10), 5
    in_pandas = {name: pandas.read_parquet(place.out / name) for name in ("scores", "edges", "instances")}
    in_polars = {name: polars.read_parquet(place.out / name / "*.parquet") for name in in_pandas}
    in_duckdb = {name: duckdb.sql(f"SELECT * FROM '{place.out}/{name}/*.parquet' ORDER BY index") for name in in_pandas}
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
    assert len(scores) == in_polars["scores"].height == rows


# Every result exactly once.


def test_a_poisoned_graph_is_an_error_and_the_rest_goes_on(place, inline):
    status = jobs.run(place("poisoned"), out="out", workers=2, **SMALL)
    assert_whole(place)
    assert (status.errors, len(status.examples)) == (5, 5)
    found = table(place, "instances").set_index("index")["error"].dropna().to_dict()
    assert {one["index"]: one["error"] for one in status.examples} == found
    for number, reason in {
        5: "names nodes 0 to 3",
        6: "NaN",
        7: "got str",
        8: "9 features per node",
        9: "no node features",
    }.items():
        assert reason in found[number]
    sound = expected_files(place, "of_graphs")
    before, after = pandas.read_parquet("undisturbed/scores"), table(place, "scores")
    healthy = before[~before["index"].between(5, 9)]
    pandas.testing.assert_frame_equal(after, healthy.reset_index(drop=True), check_exact=False, atol=1e-6, rtol=0)
    assert (
        place.files()["scores/part-000000.parquet"] != sound["scores/part-000000.parquet"]
    )  # another job, another mark
    assert "5: ValueError: edge_index names" in str(status)
    manifest = json.loads((place.out / "manifest.json").read_text())
    assert manifest["errors"]["count"] == 5
    assert [part["errors"] for part in manifest["parts"]] == [0, 3, 2, 0, 0, 0]


def test_a_graph_that_cannot_be_read(place, inline):
    status = jobs.run(place("unreadable"), out="out", workers=1, **SMALL)
    assert_whole(place, 6)
    assert status.examples == ({"index": 2, "error": "KeyError: 'molecule 2'"},)


def test_a_prediction_that_is_not_finite(place, inline):
    status = jobs.run(place("overflowing"), out="out", workers=1, **SMALL)
    assert_whole(place, 30)
    assert 0 < status.errors < 30
    assert all("the prediction is not finite" in one["error"] for one in status.examples)


def test_a_worker_that_dies_is_replaced_and_its_part_done_again(place, inline):
    expected = expected_files(place, "of_graphs")
    deaths = iter([("killed by SIGKILL", 2)])

    def fate(worker, event):
        if isinstance(event, Done) and event.part == 2:
            return next(deaths, (None, 0))[0]
        return None

    inline.fate = fate
    status = jobs.run(place("of_graphs"), out="out", workers=2, **SMALL)
    assert_whole(place)
    assert (status.lost_workers, status.errors) == (1, 0)
    assert "workers that died: 1" in str(status)
    assert Counter(task.part for task in inline[-1].tasks) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
    assert len(inline[-1].hired) == 3
    assert place.files() == expected


def test_an_idle_worker_takes_over(place, inline):
    deaths = iter(["killed"])

    def fate(worker, event):
        return next(deaths, None) if isinstance(event, Done) and event.part == 5 else None

    inline.fate = fate
    assert jobs.run(place("of_graphs"), out="out", workers=2, **SMALL).lost_workers == 1
    assert_whole(place)
    assert inline[-1].hired == [0, 1]


def test_an_instance_that_kills_every_worker_becomes_an_error(place, inline):
    def fate(worker, event):
        task = inline[-1].tasks[-1] if inline[-1].tasks else None
        if not isinstance(event, At) or 13 not in task.ids[event.place : event.place + 2] or 13 in task.skip:
            return None
        return "killed by SIGSEGV" if event.index in (None, 13) else None

    inline.fate = fate
    status = jobs.run(place("of_graphs"), out="out", workers=1, **{**SMALL, "batch_size": 2})
    assert_whole(place)
    assert status.examples == ({"index": 13, "error": "workers died while explaining it, 2 times (killed by SIGSEGV)"},)
    assert status.lost_workers == 4
    assert [sorted(task.alone) for task in inline[-1].tasks if task.part == 3] == [[], [], [0], [0], [0]]


def test_workers_that_never_begin(place, inline):
    inline.fate = lambda worker, event: "ended with exit code 1" if isinstance(event, Ready) else None
    with pytest.raises(
        JobError, match=r"7 workers in a row died before they began \(ended with exit code 1\).*__main__"
    ):
        jobs.run(place("of_graphs"), out="out", workers=2, **SMALL)
    assert jobs.status("out").state == "unfinished"
    inline.fate = lambda worker, event: None
    jobs.resume("out", progress=False)
    assert_whole(place)


def test_a_part_that_workers_die_of_again_and_again(place, inline, monkeypatch):
    def fate(worker, event):
        return "killed" if isinstance(event, At) and event.place == 0 and inline[-1].tasks[-1].part == 1 else None

    inline.fate = fate
    monkeypatch.setattr("xdegree.jobs.scheduler.DEATHS_OF_A_PART", 2)
    status = jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    assert (status.state, status.failed) == ("unfinished", {1: "workers died of it 2 times (killed)"})
    assert status.finished == 20
    assert "part 1 is missing: workers died" in str(jobs.status("out"))
    inline.fate = lambda worker, event: None
    jobs.resume("out", progress=False)
    assert_whole(place)
    assert [task.part for task in inline[-1].tasks] == [1]


def test_an_error_of_the_machine_costs_a_row_and_can_be_tried_again(place, inline):
    inline.fate = lambda worker, event: (place.folder / "disk").touch()
    status = jobs.run(place("unreadable"), out="out", workers=1, **SMALL)
    assert_whole(place, 6)
    assert status.examples[1] == {"index": 4, "error": "OSError: [Errno 5] Input/output error"}
    with pytest.raises(JobError, match=r"the data cannot be read: OSError: \[Errno 5\]"):
        jobs.resume("out", errors=True, progress=False)
    (place.folder / "disk").unlink()
    inline.fate = lambda worker, event: None
    assert jobs.resume("out", progress=False).errors == 2  # what has an error is finished
    assert jobs.resume("out", errors=True, progress=False).errors == 1
    assert_whole(place, 6)
    assert [task.part for task in inline[-1].tasks] == [0, 1]


def full_disk(place, parts):
    """Files of some parts come to lie on a full disk: /dev/full says so to every write."""

    def fate(worker, event):
        if isinstance(event, Done) and event.part in parts:
            job = json.loads((place.out / "manifest.json").read_text())["job"]
            aside = place.out / "scores" / f".part-{event.part:06d}.parquet.{job}.tmp"
            aside.symlink_to(FULL)

    return fate


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_full_disk_and_the_rest_goes_on(place, inline):
    expected = expected_files(place, "of_graphs")
    inline.fate = full_disk(place, {1, 3})
    status = jobs.run(place("of_graphs"), out="out", workers=2, **SMALL)
    assert (status.state, status.finished, set(status.failed)) == ("unfinished", 16, {1, 3})
    assert all(os.strerror(errno.ENOSPC) in why for why in status.failed.values())
    assert not list(place.out.rglob("*.tmp"))
    before = {f: f.stat().st_mtime_ns for f in place.out.rglob("*.parquet")}
    inline.fate = lambda worker, event: None
    assert jobs.resume("out", progress=False).failed == {}
    assert_whole(place)
    assert sorted(task.part for task in inline[-1].tasks) == [1, 3]
    assert place.files() == expected
    assert all(f.stat().st_mtime_ns == time for f, time in before.items())


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_disk_that_stays_full_stops_the_job(place, inline):
    inline.fate = full_disk(place, {1, 2, 3, 4, 5})
    with pytest.raises(JobError, match=r"3 parts in a row could not be written.*No space left.*job resume out"):
        jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    assert jobs.status("out").finished == 4
    assert set(jobs.status("out").failed) == {1, 2, 3}
    inline.fate = lambda worker, event: None
    jobs.resume("out", progress=False)
    assert_whole(place)


def test_a_manifest_that_cannot_be_written(place, inline, monkeypatch):
    from xdegree.jobs import storage as folder

    write = folder.write_through

    def full(path, content):
        if path.name.startswith(".manifest.json") and b'"state": "running"' not in content:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    monkeypatch.setattr(folder, "write_through", full)
    with pytest.raises(JobError, match=r"No space left on device; mend that, then resume: xdegree job resume out"):
        jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    monkeypatch.setattr(folder, "write_through", write)
    assert jobs.status("out").state == "finished"  # the files say so
    assert jobs.resume("out", progress=False).state == "finished"
    assert json.loads((place.out / "manifest.json").read_text())["state"] == "finished"


def test_what_a_killed_job_left_behind(place, inline):
    expected = expected_files(place, "of_graphs")

    def fate(worker, event):
        if isinstance(event, Done) and event.part == 3:
            raise SystemExit  # as good as killed, apart from the manifest

    inline.fate = fate
    with pytest.raises(SystemExit):
        jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    manifest = json.loads((place.out / "manifest.json").read_text())
    (place.out / "manifest.json").write_text(json.dumps({**manifest, "state": "running"}))
    (place.out / "scores" / f".part-000003.parquet.{manifest['job']}.tmp").write_bytes(b"half a fi")
    shutil.copy("undisturbed/scores/part-000004.parquet", place.out / "scores")  # written, but not its instances
    (place.out / "scores" / "part-000001.parquet").unlink()  # lost
    status = jobs.status("out")
    assert (status.state, status.finished, status.damaged) == (
        "unfinished",
        8,
        {1: "scores/part-000001.parquet is not there"},
    )
    inline.fate = lambda worker, event: None
    jobs.resume("out", workers=2, progress=False)
    assert_whole(place)
    assert [task.part for task in inline[-1].tasks] == [1, 3, 4, 5]
    assert place.files() == expected


def test_the_number_of_workers_and_their_order_have_no_say(place, inline):
    expected = expected_files(place, "of_graphs")
    for workers in (2, 5):
        jobs.run(place("of_graphs"), out=f"out{workers}", workers=workers, **SMALL)
        assert place.files(f"out{workers}") == expected
        assert len(inline[-1].hired) == workers


# Going on with a job.


def half_done(place, inline, factory):
    def fate(worker, event):
        if isinstance(event, Done) and event.part == 2:
            raise KeyboardInterrupt

    inline.fate = fate
    with pytest.raises(KeyboardInterrupt):
        jobs.run(place(factory), out="out", workers=1, **SMALL)
    inline.fate = lambda worker, event: None
    sys.modules.pop(place.module)


def test_other_weights(place, inline):
    (place.folder / "scale").write_text("1")
    half_done(place, inline, "scaled")
    (place.folder / "scale").write_text("1.5")
    with pytest.raises(
        JobError, match=r"its weights \[lin1.weight\] changed since the job was started.*start another job"
    ):
        jobs.resume("out", progress=False)
    (place.folder / "scale").write_text("1")
    assert jobs.resume("out", progress=False).state == "finished"
    assert_whole(place, 30)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "return super().forward(x, edge_index, batch)",
            "return 2 * super().forward(x, edge_index, batch)",
            r"code \[Troubled\]",
        ),
        ("n = 3 + number % 5", "n = 4 + number % 5", r"data \[argument 0\]"),
        ("manual_seed(0)\n    return Troubled", "manual_seed(1)\n    return Troubled", r"weights \[.* and \d more\]"),
    ],
)
def test_another_model(place, inline, old, new, what):
    half_done(place, inline, "of_graphs")
    module = place.folder / f"{place.module}.py"
    assert old in module.read_text()
    module.write_text(module.read_text().replace(old, new) + "# longer")
    with pytest.raises(JobError, match=f"its {what} changed"):
        jobs.resume("out", progress=False)
    assert jobs.status("out").finished == 8


def test_other_settings(place, inline):
    half_done(place, inline, "of_graphs")
    path = place.out / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "settings": {**manifest["settings"], "reading": "strength"}}))
    with pytest.raises(JobError, match="was changed by hand"):
        jobs.resume("out", progress=False)
    jobs.run(place("of_graphs"), out="other", workers=1, **{**SMALL, "reading": "strength"})
    shutil.copy("other/manifest.json", path)
    assert "is of another job" in jobs.status("out").damaged[0]


def test_other_counts(place, inline):
    """A manifest that was changed by hand says nothing about what the files hold."""
    jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    rows, path = jobs.status("out").rows, place.out / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["parts"][1]["rows"] += 7
    path.write_text(json.dumps(manifest))
    assert list(jobs.status("out").damaged) == [1]
    assert "the manifest says" in jobs.status("out").damaged[1]
    assert jobs.resume("out", progress=False).rows == rows
    assert_whole(place)


def test_other_versions(place, inline, monkeypatch):
    half_done(place, inline, "of_graphs")
    version = xdegree.jobs.identity.version
    monkeypatch.setattr(xdegree.jobs.identity, "version", lambda name: "9.9" if name == "torch" else version(name))
    with pytest.raises(JobError, match=r"its torch \(was .*, is 9.9\) changed"):
        jobs.resume("out", progress=False)


def test_from_another_folder_with_another_number_of_workers(place, inline, tmp_path_factory, monkeypatch):
    half_done(place, inline, "of_graphs")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    jobs.resume(place.out, workers=3, progress=False)
    assert_whole(place)
    assert len(inline[-1].hired) == 3
    assert [task.part for task in inline[-1].tasks] == [2, 3, 4, 5]
    assert jobs.resume(place.out, progress=False).state == "finished"
    assert len(inline) == 2  # nothing was left to do, nobody was hired


def test_one_at_a_time(place, inline):
    seen = []

    def fate(worker, event):
        if isinstance(event, Done) and event.part == 2:
            seen.append(jobs.status("out"))
            with pytest.raises(JobError, match="another process is at work on out"):
                jobs.resume("out", progress=False)

    inline.fate = fate
    jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    assert [(status.state, status.finished) for status in seen] == [("running", 8)]
    with locked(place.out), pytest.raises(JobError, match="another process"):
        jobs.resume("out", progress=False)
    assert_whole(place)


def test_a_factory_that_draws_at_random(place, inline):
    with pytest.raises(
        JobError, match=r"returns other weights \[lin1.weight\] in each process; let it draw with a fixed seed"
    ):
        jobs.run(place("at_random"), out="out", workers=1, **SMALL)


# Parts that are not as they were written.


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def rescored(path):
    """A valid file, with the same notes, of other numbers."""
    pyarrow = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.read_table(path)
    at = table.column_names.index("prediction")
    table = table.set_column(at, "prediction", [[value and 2 * value for value in table.column(at).to_pylist()]])
    pyarrow.write_table(table, path, compression="zstd", write_page_checksum=True)


HARMS = {
    "rescored": (rescored, "another checksum|bytes instead of"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "bytes instead of"),
    "emptied": (lambda path: path.write_bytes(b""), "has 0 bytes instead of"),
    "flipped": (flipped, "another checksum"),
    "swapped": (lambda path: shutil.copy(path.with_name("part-000002.parquet"), path), "it is of part 2"),
    "of another job": (lambda path: shutil.copy(f"strength/{path.parent.name}/{path.name}", path), "of another job"),
    "replaced by text": (lambda path: path.write_text("my notes"), "has 8 bytes instead of"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "is not there"),
    "a pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "is not there"),
    "deleted": (lambda path: path.unlink(), "is not there"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_part_is_found_and_made_anew(place, inline, harm):
    expected = expected_files(place, "of_graphs")
    if harm == "of another job":
        jobs.run(place("of_graphs"), out="strength", workers=1, **{**SMALL, "reading": "strength"})
    for name, listed in itertools.product(("scores", "instances"), (True, False)):  # in the manifest, or newer than it
        out = place.folder / f"{name}-{listed}"
        shutil.copytree("undisturbed", out)
        manifest = json.loads((out / "manifest.json").read_text())
        if not listed:  # as after a kill
            (out / "manifest.json").write_text(json.dumps({**manifest, "parts": manifest["parts"][:1]}))
        path = out / name / "part-000001.parquet"
        HARMS[harm][0](path)
        harmed = path.read_bytes() if path.is_file() else None
        status = jobs.status(out)
        assert (status.state, status.finished, status.parts_finished) == ("unfinished", 20, 5)
        gone = harm == "deleted" and name == "instances" and not listed  # nothing tells that it was ever there
        assert list(status.damaged) == ([] if gone else [1])
        if listed:
            assert re.search(HARMS[harm][1], status.damaged[1])
            assert f"part 1 is damaged: {name}/part-000001.parquet" in str(status)
        jobs.resume(out, progress=False)
        assert_whole(place, out=out.name)
        assert [task.part for task in inline[-1].tasks] == [1]
        kept = {f.name: f for f in (out / "damaged").glob("*")}
        now = place.files(out.name).items()
        assert {file: content for file, content in now if not file.startswith("damaged")} == expected
        if harmed is not None:
            assert kept[f"{name}-part-000001.parquet"].read_bytes() == harmed
        assert jobs.resume(out, progress=False).damaged == {}


def test_what_others_put_into_the_folder_stays(place, inline):
    half_done(place, inline, "of_graphs")
    own = {
        "scores/notes.txt": b"mine",
        "scores/part-000003.parquet": b"my own table",
        "instances/part-000001 (copy).parquet": b"a copy",
        "instances/.part-000004.parquet.tmp": b"somebody else's",
        "_SUCCESS": b"",
    }
    for name, content in own.items():
        (place.out / name).write_bytes(content)
    status = jobs.status("out")
    assert status.foreign == ("instances/part-000001 (copy).parquet", "scores/notes.txt")
    assert "not written by this job: scores/notes.txt" in str(status)
    jobs.resume("out", progress=False)
    own["damaged/scores-part-000003.parquet"] = own.pop("scores/part-000003.parquet")  # it lay in the place of a part
    assert {name: (place.out / name).read_bytes() for name in own} == own
    assert jobs.status("out").state == "finished"


@pytest.mark.parametrize(
    "harm", [lambda p: p.write_text(p.read_text()[:300]), lambda p: p.unlink(), lambda p: p.write_bytes(b"\xff")]
)
@pytest.mark.parametrize("index", ["all", [*range(20), 23], None], ids=["all", "few", "many"])
def test_a_manifest_is_made_from_the_parts(place, inline, harm, index, monkeypatch, capsys):
    if index is None:
        monkeypatch.setattr(xdegree.jobs.storage, "SHORT", 5)
        index = [*range(20), 23]
    inline.fate = lambda worker, event: (_ for _ in ()).throw(KeyboardInterrupt) if at(event, 2) else None
    with pytest.raises(KeyboardInterrupt):
        jobs.run(place("of_graphs"), out="out", workers=1, index=index, **SMALL)
    inline.fate = lambda worker, event: None
    harm(place.out / "manifest.json")
    for command in (["status"], ["resume", "--quiet"]):
        assert main(["job", *command, "out"]) == 2
        assert "xdegree job repair out" in capsys.readouterr().err
    if xdegree.jobs.storage.SHORT == 5:
        with pytest.raises(
            JobError, match=r"the list of instances was lost.*8 of them are in the 2 parts.*--index FILE"
        ):
            jobs.repair("out")
        with pytest.raises(JobError, match="are not those that the job in out was started with"):
            jobs.repair("out", index=range(21))
        assert jobs.repair("out", index=index).finished == 8
    else:
        assert main(["job", "repair", "out"]) == 1
        assert "instances  8 of" in capsys.readouterr().out
    status = jobs.resume("out", progress=False)
    assert (status.state, status.finished) == ("finished", 24 if index == "all" else 21)
    assert jobs.repair("out").state == "finished"  # nothing to do


def at(event, part):
    return isinstance(event, Done) and event.part == part


def test_a_manifest_without_any_part(place, inline):
    place.out.mkdir()
    (place.out / "manifest.json").write_text("{")
    with pytest.raises(JobError, match=r"has no part that can be read.*the settings are lost"):
        jobs.repair("out")
    with pytest.raises(JobError, match="there is no folder"):
        jobs.repair("nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "xdegree.job/1"}, r"no manifest of the format 'xdegree.job/2' \(got 'xdegree.job/1'\)"),
        ({"settings": None}, "the field settings must be an object"),
        ({"instances": "24"}, r"the field instances must be an integer \(got '24'\)"),
        ({"instances": 0}, "instances must be at least 1"),
        ({"instances": 23}, "was changed by hand"),
        ({"parts": {}}, "the field parts must be a list"),
        ({"parts": [3]}, r"the field parts\[0\] must be an object"),
        ({"parts": [{"part": 99, "instances": 1, "rows": 1, "errors": 0, "files": {}}]}, "one of 0 to 5"),
        ({"parts": [{"part": 0, "instances": 1, "rows": 1, "errors": 0, "files": {}}]}, "files.scores is missing"),
        ({"fingerprint": {}}, "the field fingerprint.weights is missing"),
        ({"run": {}}, "the field run.engine is missing"),
        ({"seconds": "long"}, "the field seconds must be a number"),
        ({"settings": {}}, "settings lack or have too much: batch_size"),
        ({"failed": None}, "the field failed must be an object"),
        ({"unseen": 3}, "the field unseen must be a list"),
        ({"failed": {"first": "why"}}, r"the field failed must name parts by their numbers \(got 'first'\)"),
        ({"details": {"weights": 3}}, "the field details.weights must be an object"),
        ({"parts": [{"part": 0, "instances": 4, "rows": -4, "errors": 0, "files": {}}]}, "rows must be at least 0"),
        ({"run": {"engine": "local", "workers": 1, "timeout": "soon"}}, "the field run.timeout must be a number"),
        ({"run": {"engine": "local", "workers": 1, "memory": "4GB"}}, "the field run.memory must be an integer"),
    ],
)
def test_a_manifest_with_wrong_fields(place, inline, change, message):
    jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    path = place.out / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, **change}))
    for ask in (jobs.status, jobs.resume):
        with pytest.raises(JobError, match=message):
            ask("out")
    for name in change:
        path.write_text(json.dumps({key: value for key, value in content.items() if key != name}))
        with pytest.raises(JobError, match=f"{name}|format"):
            jobs.status("out")
    assert jobs.repair("out").state == "finished"


# One bad instance costs one row.


@pytest.mark.parametrize(
    "error",
    ["OSError(5, 'disk')", "KeyboardInterrupt()", "SystemExit(3)", "exit()", "MemoryError()", "Odd()", "Mute()",
     "MuteToo()", "OSError('no Unicode: \\udc80, nor text: \\0')",
     "ExceptionGroup('two', [ValueError(1), ValueError(2)])"],
)  # fmt: skip
def test_whatever_a_model_raises(place, inline, error):
    with (place.folder / f"{place.module}.py").open("a") as file:
        file.write(f"""

class Odd(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise ValueError


class MuteToo(Exception):
    def __str__(self):
        raise Odd


class Raising(GCN):
    def forward(self, x, edge_index, batch=None):
        if (x == 77).any():
            raise {error}
        return super().forward(x, edge_index, batch)


def raising():
    _, (graphs,) = magic()
    torch.manual_seed(0)
    return Raising(3, 2, level="graph"), (graphs,)
""")
    status = jobs.run(place("raising"), out="out", workers=1, **SMALL)
    assert_whole(place)
    assert [one["index"] for one in status.examples] == [9]
    assert status.examples[0]["error"].startswith("SystemExit" if error == "exit()" else error.partition("(")[0])


class Clock:
    """Goes on by a thousandth of a second whenever it is looked at, however busy the machine is."""

    def __init__(self):
        self.looks = itertools.count()

    def monotonic(self):
        return next(self.looks) / 1000

    perf_counter = staticmethod(time.perf_counter)


def test_an_instance_that_takes_too_long(place, inline, monkeypatch):
    monkeypatch.setattr("xdegree.jobs.scheduler.time", Clock())

    def fate(worker, event):
        task = inline[-1].tasks[-1] if inline[-1].tasks else None
        if isinstance(event, At) and event.place < len(task.ids):
            hangs = event.index == 13 if event.index is not None else 13 in task.ids
            return "hangs" if hangs and 13 not in task.skip else None
        return None

    inline.fate = fate
    status = jobs.run(place("of_graphs"), out="out", workers=1, timeout=0.05, **SMALL)
    assert_whole(place)
    assert status.examples == ({"index": 13, "error": "it took longer than 0.05 s"},)
    assert inline[-1].ended == [0, 0]


def limited():
    """What a process says that has a limit; it cannot be taken back, so that the process must be another one."""
    with pytest.raises(JobError, match="memory=1000000 bytes is less than what a worker takes"):
        limit_memory(10**6)
    limit_memory(psutil.Process().memory_info().data + 10**9)
    torch.ones(10**7)
    with pytest.raises(RuntimeError, match="memory"):
        torch.ones(10**10)
    return "limited"


def test_a_limit_of_memory():
    assert _apart(limited, None) == "limited"


# What a job remembers of model and data.


def test_a_version_of_what_cannot_be_seen(place, inline):
    with (place.folder / f"{place.module}.py").open("a") as file:
        file.write(
            "\n\ndef served():\n    model, args = of_graphs()\n    model.lock = __import__('threading').Lock()\n"
        )
        file.write("    return model, args\n")
    inline.fate = lambda worker, event: (_ for _ in ()).throw(KeyboardInterrupt) if at(event, 2) else None
    with pytest.raises(KeyboardInterrupt):
        jobs.run(place("served"), out="out", workers=1, version="march", **SMALL)
    inline.fate = lambda worker, event: None
    assert jobs.status("out").unseen == ("lock (_thread.lock)",)
    assert "the fingerprint cannot see lock (_thread.lock)" in str(jobs.status("out"))
    with pytest.raises(JobError, match=r"started with version='march' \(got 'april'\)"):
        jobs.resume("out", version="april", progress=False)
    assert jobs.resume("out", version="march", progress=False).state == "finished"


# What cannot be done.


@pytest.mark.parametrize(
    ("factory", "settings", "message"),
    [
        ("of_nodes", {"engine": "spark"}, r"engine must be one of \('local', 'ray'\) \(got 'spark'\)"),
        ("of_nodes", {"workers": 0}, r"workers must be an integer, at least 1 \(got 0\)"),
        ("of_nodes", {"part_size": 0}, r"part_size must be an integer, at least 1 \(got 0\)"),
        ("of_nodes", {"portions": "much"}, "portions must be a number of bytes"),
        ("of_nodes", {"memory": "much"}, "memory must be a number of bytes"),
        ("of_nodes", {"reading": "tea leaves"}, "reading must be one of"),
        ("of_nodes", {"of": "colour"}, "of must be one of"),
        ("of_nodes", {"of": "edge", "edge_scores": "pair"}, "end points go with nodes"),
        ("of_nodes", {"of": "edge_feature"}, "edge_attr"),
        ("of_nodes", {"options": {}}, "options must be xdegree.Options"),
        ("of_nodes", {"target": "cat"}, "target must be an integer"),
        ("of_nodes", {"index": 3}, 'index must be "all" or a list'),
        ("of_nodes", {"index": "some"}, 'index must be "all" or a list'),
        ("of_nodes", {"index": []}, 'index must be "all" or a list'),
        ("of_nodes", {"index": [1, -1]}, "index must hold integers"),
        ("of_nodes", {"index": [1, 2, 1]}, "index holds 1 2 times"),
        ("of_nodes", {"index": [30]}, "index 30 is out of range: there are the instances 0 to 29"),
        ("of_nodes", {"weights": "none.pt"}, "there is no file"),
        ("odd", {}, r"no rule applies to .*i0"),
        ("typed", {}, "jobs explain graphs with one type of nodes"),
        ("none", {}, "hands over an empty list of graphs"),
        ("wrong_width", {}, "cannot be run: ValueError"),
        ("broken", {}, "failed: RuntimeError: no data here"),
        ("absent", {}, "has no function 'absent'"),
    ],
)
def test_what_cannot_be_done(place, inline, factory, settings, message):
    with pytest.raises(JobError, match=message):
        jobs.run(place(factory), out="out", **{**SMALL, "workers": 1, **settings})
    assert not place.out.exists()
    assert not any(crew.tasks for crew in inline)


def test_folders_that_cannot_be_used(place, inline):
    place.out.mkdir()
    with pytest.raises(JobError, match=r"holds no job \(it has no manifest.json\)"):
        jobs.status("out")
    (place.out / "notes.txt").touch()
    with pytest.raises(JobError, match="is no empty folder"):
        jobs.run(place("of_nodes"), out="out", **SMALL)
    jobs.run(place("of_nodes"), out="mine", workers=1, **SMALL)
    with pytest.raises(JobError, match=r"holds a job already; resume it: xdegree job resume mine"):
        jobs.run(place("of_nodes"), out="mine", **SMALL)
    (place.folder / "mine" / "instances" / "part-000002.parquet").write_bytes(b"rubbish")
    assert jobs.status("mine").damaged[2].startswith("instances/part-000002.parquet has 7 bytes instead of")


@pytest.mark.parametrize(("package", "engine", "extra"), [("pyarrow", "local", "jobs"), ("ray", "ray", "ray")])
def test_a_missing_extra(place, monkeypatch, capsys, package, engine, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'pip install "xdegree\[{extra}\]"'):
        jobs.run(place("of_nodes"), out="out", engine=engine, **SMALL)
    assert main(["job", "run", place("of_nodes"), "--out", "out", "--engine", engine]) == 2
    assert f'pip install "xdegree[{extra}]"' in capsys.readouterr().err


# The command.


def test_the_command(place, inline, capsys):
    (place.folder / "some.txt").write_text("3\n4\n29\n")
    run = ["job", "run", place("of_nodes"), "--workers", "1", "--quiet"]
    assert main([*run, "--out", "out", "--index", "some.txt", "--option", "ties=first", "--edge-scores", "pair"]) == 0
    assert "out: finished\n  instances  3 of 3, in 1 of 1 parts" in capsys.readouterr().out
    assert table(place, "instances")["index"].tolist() == [3, 4, 29]
    assert len(table(place, "edges"))
    settings = json.loads((place.out / "manifest.json").read_text())["settings"]
    assert (settings["options"]["ties"], settings["portions"]) == ("first", "1GB")
    assert main(["job", "status", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"] == 3
    for wrong, message in {
        "--index=3,x": "--index is all, numbers as 3,5,9",
        "--option=tie=first": "with one of the names ties",
        "--option=ties=last": "Options.ties must be one of",
        "--index=77": "index 77 is out of range",
    }.items():
        assert main([*run, "--out", "other", wrong]) == 2
        assert message in capsys.readouterr().err
    assert main([*run, "--out", "along", "--index", "3,4", "--of", "edge"]) == 0
    assert set(table(place, "scores", "along")) >= {"edge", "source", "to"}
    assert main(["check", place("of_graphs")]) == 0  # the same factory serves both
    assert main(["job", "resume", "nowhere"]) == 2
    assert "nowhere holds no job" in capsys.readouterr().err


def test_the_command_interrupted_and_with_errors(place, inline, capsys):
    def fate(worker, event):
        if isinstance(event, Done) and event.part == 2:
            raise KeyboardInterrupt

    inline.fate = fate
    sizes = ["--part-size", "4", "--batch-size", "2", "--quiet", "--workers", "1"]
    assert main(["job", "run", place("poisoned"), "--out", "out", *sizes]) == 130
    assert "to resume: xdegree job resume out" in capsys.readouterr().err
    assert main(["job", "status", "out"]) == 1
    assert "out: interrupted\n  instances  8 of 24, in 2 of 6 parts" in capsys.readouterr().out
    inline.fate = lambda worker, event: None
    assert main(["job", "resume", "out", "--workers", "2"]) == 1
    captured = capsys.readouterr()
    assert "5: ValueError: edge_index names nodes" in captured.out
    assert not captured.err  # no progress bar where nobody watches
    assert main(["job", "resume", "out", "--json"]) == 1  # finished, with errors
    assert json.loads(capsys.readouterr().out)["state"] == "finished"
    assert_whole(place)


def test_the_docs_run(place, inline):
    """Every block of Python of docs/jobs.md, in order; the first is a file."""
    page = (Path(__file__).parent.parent / "docs" / "jobs.md").read_text()
    module, *blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (place.folder / "molecules.py").write_text(module.replace("range(1000)", "range(70)"))
    names = {"__name__": "__main__"}
    try:
        for block in blocks:
            exec(compile(block, "docs/jobs.md", "exec"), names)
    finally:
        sys.modules.pop("molecules", None)
    assert names["status"].finished == len(names["strongest"]) == 70
    assert len(names["errors"]) == 0
