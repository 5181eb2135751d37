"""Jobs: how much faster two workers are than one, with local processes and with Ray.

All 4,337 molecules of Mutagenicity (in $XDEGREE_DATA) are explained by the paper's GCN. The time is that of the work,
from the moment when the first worker is ready: importing PyTorch takes seconds, whoever does it, and is printed apart.
Every job runs in a process of its own, so that none finds what an earlier one started. All must write the same files,
bit for bit. The mark is 1.7 times the throughput of one worker.
"""

import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from xdegree import jobs
from xdegree.datasets import load
from xdegree.models import GCN

ROUNDS, MARK = 3, 1.7
ENGINES: tuple[jobs.Engine, ...] = ("local", "ray")


def factory() -> tuple[GCN, tuple[list[Data]]]:
    """The paper's GCN with random weights (seed 0), and the molecules."""
    torch.manual_seed(0)
    dataset = load("mutag")
    model = GCN(dataset.num_features, dataset.num_classes, level="graph")
    return model, ([Data(x=graph.x, edge_index=graph.edge_index) for graph in dataset.graphs],)


def main() -> None:
    """Print the table."""
    if "--job" in sys.argv:
        print(json.dumps(job(*sys.argv[-2:])))
        return
    print(f"{platform.machine()}, {os.cpu_count()} processors, 1 thread per worker, torch {torch.__version__}")
    print(f"seconds for all graphs, median of {ROUNDS} rounds in turn")
    print(f"{'engine':7} {'workers':>7} {'start':>7} {'work':>7} {'graphs/s':>9} {'ratio':>6}")
    files: set[str] = set()
    for engine in ENGINES:
        rounds = [[in_a_process(engine, workers, files) for workers in (1, 2)] for _ in range(ROUNDS)]
        speed = [statistics.median(graphs / work for graphs, _, work in times) for times in zip(*rounds, strict=True)]
        for workers in (1, 2):
            start, work = (statistics.median(times[workers - 1][i] for times in rounds) for i in (1, 2))
            ratio = "" if workers == 1 else f"{speed[1] / speed[0]:5.2f}x"
            print(f"{engine:7} {workers:7} {start:7.1f} {work:7.2f} {speed[workers - 1]:9.0f} {ratio:>6}")
        print(f"{engine}: {'reaches' if speed[1] / speed[0] >= MARK else 'MISSES'} the mark of {MARK}x")


def in_a_process(engine: jobs.Engine, workers: int, files: set[str]) -> tuple[int, float, float]:
    """A job without anything that was there before."""
    command = [sys.executable, __file__, "--job", engine, str(workers)]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    graphs, start, work, content = json.loads(made.stdout.splitlines()[-1])
    files.add(content)
    assert len(files) == 1, "the answer depends on who does the work"
    return graphs, start, work


def job(engine: Any, workers: str) -> tuple[int, float, float, str]:
    """How many graphs a job explained, the seconds until its first worker was ready, those of the work, the files."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        status = jobs.run(
            f"{__file__}:factory", out=folder, engine=engine, workers=int(workers), part_size=128, progress=False
        )
        whole = time.perf_counter() - began
        assert (status.state, status.errors, status.finished) == ("finished", 0, 4337), status
        content = b"".join(path.read_bytes() for path in sorted(Path(folder).rglob("*.parquet")))
    return status.finished, whole - status.seconds, status.seconds, hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
