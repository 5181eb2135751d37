"""Jobs in real processes: killed, interrupted, told to end."""

import errno
import json
import multiprocessing
import os
import signal
import struct
import sys
import time
import warnings
from pathlib import Path

import psutil
import pytest
from job_crew import SMALL, Inline, assert_whole, expected_files, until

import xdegree.jobs.start
from xdegree import jobs
from xdegree.cli import main
from xdegree.jobs.processes import Processes
from xdegree.jobs.settings import Settings
from xdegree.jobs.storage import Folder
from xdegree.jobs.work import _apart
from xdegree.jobs.worker import Broken, Died

pytest.importorskip("pyarrow", reason="jobs write Parquet files: pip install 'xdegree[jobs]'")


@pytest.fixture
def interruptible():
    """Also where a shell started the tests in the background, which lets them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_worker_is_killed_and_then_comes_ctrl_c(place, interruptible, monkeypatch):
    (place.folder / "trouble").write_text("77 kill part-000000.parquet\n78 interrupt part-000003.parquet")
    with pytest.raises(KeyboardInterrupt):
        jobs.run(place("magic"), out="out", engine="local", workers=1, **SMALL)
    status = jobs.status("out")
    assert (status.state, status.finished, status.lost_workers, status.errors) == ("interrupted", 16, 1, 0)
    monkeypatch.setattr(xdegree.jobs.start, "Processes", Inline)
    expected = expected_files(place, "magic")
    before = {f: f.stat().st_mtime_ns for f in place.out.rglob("*.parquet")}
    jobs.resume("out", progress=False)
    assert_whole(place)
    assert place.files() == expected
    assert all(f.stat().st_mtime_ns == time for f, time in before.items())


def test_a_worker_that_dies_in_the_middle_of_a_message(place):
    crew = Processes(None, None)
    ours, theirs = multiprocessing.Pipe()
    crew.workers[0] = (multiprocessing.get_context("fork").Process(target=os._exit, args=(9,)), ours)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        crew.workers[0][0].start()
    os.write(theirs.fileno(), struct.pack("!i", 1000) + b"half of it")
    theirs.close()
    assert crew.wait(600) == [(0, Died("ended with exit code 9"))]
    assert not crew.workers


def test_a_worker_that_cannot_be_started(place, monkeypatch):
    crew = Processes(None, None)

    def start(process):
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", start)
    crew.hire(3)
    assert crew.wait(600) == [(3, Died("it could not be started: BlockingIOError(11, 'no more processes')"))]
    assert not crew.workers


def test_a_worker_has_the_environment_of_now(place, monkeypatch):
    """Also if the server that it is forked from is older."""
    with (place.folder / f"{place.module}.py").open("a") as file:
        file.write("\n\ndef surroundings():\n    raise RuntimeError(os.environ['XDEGREE_TRIED'])\n")
    crew = Processes(Settings(place("surroundings"), str(place.folder)), None)
    for number, value in enumerate(("first", "second")):
        monkeypatch.setenv("XDEGREE_TRIED", value)
        crew.hire(number)
        ((worker, event),) = crew.wait(600)
        assert (worker, type(event)) == (number, Broken)
        assert f"RuntimeError: {value}" in event.why
        crew.end(number)


HANGING = """
import time
from pathlib import Path
from xdegree.models import GCN


class Hanging(GCN):
    def forward(self, x, edge_index, batch=None):
        import multiprocessing, os
        if multiprocessing.current_process().name.startswith("xdegree-worker"):
            Path(__file__).with_name("pid").write_text(str(os.getpid()))
            time.sleep(600)
        return super().forward(x, edge_index, batch)


def factory():
    import torch
    from torch_geometric.data import Data

    torch.manual_seed(0)
    return Hanging(3, 2, level="graph"), ([Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))] * 4,)
"""


def command(*words):
    """The command in a process that has everything imported already."""
    os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT), 2)
    sys.stderr = os.fdopen(2, "w")
    try:
        code = main(list(words))
    except SystemExit as stop:
        code = stop.code
    sys.stderr.flush()
    os._exit(code)


@pytest.mark.parametrize(
    ("number", "code", "state"), [(signal.SIGKILL, -9, "running"), (signal.SIGTERM, 143, "interrupted")]
)
def test_workers_end_with_the_job(place, number, code, state):
    (place.folder / "hanging.py").write_text(HANGING)
    words = ("job", "run", "hanging.py:factory", "--workers", "1", "--out", "out", "--quiet")
    job = multiprocessing.get_context("fork").Process(target=command, args=words)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        job.start()
    pid = place.folder / "pid"
    until(lambda: pid.is_file() and pid.read_text())
    assert jobs.status("out").state == "running"
    os.kill(job.pid, number)
    job.join(600)
    assert job.exitcode == code
    until(lambda: not psutil.pid_exists(int(pid.read_text())))
    assert json.loads((place.out / "manifest.json").read_text())["state"] == state
    assert jobs.status("out").state == ("unfinished" if state == "running" else state)
    said = (place.folder / "said").read_text()
    assert ("terminated; to resume: xdegree job resume out" in said) == (code == 143)
    assert not list(place.out.rglob("*.tmp"))


def hanging():
    (Path.cwd() / "pid").write_text(str(os.getpid()))
    time.sleep(600)


def test_a_survey_ends_with_the_job(place):
    """It holds the pipes that tell workers of the job's end: they would live on with it."""
    job = multiprocessing.get_context("fork").Process(target=_apart, args=(hanging, None))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        job.start()
    pid = place.folder / "pid"
    until(lambda: pid.is_file() and pid.read_text())
    job.kill()
    job.join(600)
    until(lambda: not psutil.pid_exists(int(pid.read_text())))


@pytest.mark.parametrize(("number", "stop"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_while_the_first_manifest_is_written(place, interruptible, monkeypatch, number, stop):
    monkeypatch.setattr(xdegree.jobs.start, "Processes", Inline)
    tidy = Folder.tidy
    monkeypatch.setattr(Folder, "tidy", lambda folder: (os.kill(os.getpid(), number), tidy(folder)))
    with pytest.raises(stop):
        jobs.run(place("of_graphs"), out="out", workers=1, **SMALL)
    assert jobs.status("out").state == "interrupted"
    monkeypatch.setattr(Folder, "tidy", tidy)
    jobs.resume("out", progress=False)
    assert_whole(place)
