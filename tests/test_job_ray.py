"""Jobs on Ray: a real cluster of two nodes, which loses an actor and a node, and one of this machine alone."""

import ast
import os
import socket
import subprocess
import sys
import threading

import pytest
from job_crew import SMALL, Inline, assert_whole, expected_files, until

import xdegree.jobs.start
from xdegree import jobs
from xdegree.jobs import JobError
from xdegree.jobs.on_ray import connect

pytest.importorskip("pyarrow", reason="jobs write Parquet files: pip install 'xdegree[jobs]'")
ray = pytest.importorskip("ray", reason="engine='ray' needs Ray: pip install 'xdegree[ray]'")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes on this machine, each with a raylet of its own and room for one actor."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    size = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    nodes = Cluster(initialize_head=True, head_node_args=size)
    nodes.second = nodes.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def alive():
    return [node for node in ray.nodes() if node["Alive"]]


LISTENING = """
import threading
import psutil
from xdegree.jobs.on_ray import connect, ray

seen, ended = set(), threading.Event()


def look():
    while not ended.wait(0.1):
        for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
            try:
                found = [s.laddr.ip for s in process.net_connections("inet") if s.status == "LISTEN"]
                seen.update((ip, process.name()) for ip in found)
            except psutil.Error:  # it has ended since
                pass


looking = threading.Thread(target=look)
looking.start()
connect(None)
ray().get(ray().remote(lambda: 0).remote())
ended.set()
looking.join()
print(sorted(seen))
ray().shutdown()
"""


def test_ray_listens_on_this_machine_alone(cluster):
    """Although another cluster is running, which listens to all: it is not joined."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run([sys.executable, "-c", LISTENING], capture_output=True, text=True, check=True, env=own)
    seen = ast.literal_eval(done.stdout)
    assert {"raylet", "gcs_server"} <= {name for _, name in seen}
    assert {ip for ip, _ in seen} <= {"127.0.0.1", "::ffff:127.0.0.1"}, seen


def test_a_cluster_that_is_gone(monkeypatch):
    """Ray itself would try for minutes."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(
        JobError, match=f"'{address}' names at {address} does not answer.*resume the job when it is back"
    ):
        connect(address)


def test_actors_open_stores_themselves(place, cluster, monkeypatch):
    small = {**SMALL, "index": range(0, 30, 4)}
    status = jobs.run(place("stored"), out="out", engine="ray", workers=1, **small)
    assert (status.state, status.errors, status.finished) == ("finished", 0, 8)
    monkeypatch.setattr(xdegree.jobs.start, "Processes", Inline)
    jobs.run(place("stored"), out="local", workers=1, **small)
    assert place.files() == place.files("local")


def test_an_actor_is_killed_and_then_a_node_is_lost(place, cluster, monkeypatch):
    (place.folder / "trouble").write_text("77 kill part-000000.parquet\n78 wait part-000000.parquet")

    def lose():
        try:
            until((place.folder / "done-78").exists)
            cluster.remove_node(cluster.second, allow_graceful=False)
        finally:
            (place.folder / "go").touch()

    thread = threading.Thread(target=lose)
    thread.start()
    status = jobs.run(place("magic"), out="out", engine="ray", workers=2, **SMALL)
    thread.join()
    assert_whole(place)
    assert (status.lost_workers in (1, 2), status.errors) == (True, 0)
    assert ray.is_initialized()  # it was there before us
    until(lambda: len(alive()) == 1)
    monkeypatch.setattr(xdegree.jobs.start, "Processes", Inline)
    assert place.files() == expected_files(place, "magic")
