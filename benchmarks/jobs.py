"""Jobs: how much faster two workers are than one, with local processes and with Ray.

All 4,337 molecules of Mutagenicity (in $XDEGREE_DATA) are explained by the paper's GCN. The time is that of the work,
from the moment when the first worker is ready: importing PyTorch takes seconds, whoever does it, and is printed apart.
All jobs must write the same files, bit for bit. The mark is 1.7 times the throughput of one worker.
"""

import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

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
    print(f"{platform.machine()}, {os.cpu_count()} processors, 1 thread per worker, torch {torch.__version__}")
    print(f"seconds for all graphs, median of {ROUNDS} rounds in turn")
    print(f"{'engine':7} {'workers':>7} {'start':>7} {'work':>7} {'graphs/s':>9} {'ratio':>6}")
    files: set[int] = set()
    for engine in ENGINES:
        rounds = [[job(engine, workers, files) for workers in (1, 2)] for _ in range(ROUNDS)]
        speed = [statistics.median(graphs / work for graphs, _, work in times) for times in zip(*rounds, strict=True)]
        for workers in (1, 2):
            start, work = (statistics.median(times[workers - 1][i] for times in rounds) for i in (1, 2))
            ratio = "" if workers == 1 else f"{speed[1] / speed[0]:5.2f}x"
            print(f"{engine:7} {workers:7} {start:7.1f} {work:7.2f} {speed[workers - 1]:9.0f} {ratio:>6}")
        print(f"{engine}: {'reaches' if speed[1] / speed[0] >= MARK else 'MISSES'} the mark of {MARK}x")


def job(engine: jobs.Engine, workers: int, files: set[int]) -> tuple[int, float, float]:
    """One job: how many graphs it explained, the seconds until its first worker was ready, and those of the work."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        status = jobs.run(
            f"{__file__}:factory", out=folder, engine=engine, workers=workers, part_size=128, progress=False
        )
        whole = time.perf_counter() - began
        assert (status.state, status.errors, status.finished) == ("finished", 0, 4337), status
        files.add(hash(tuple(path.read_bytes() for path in sorted(Path(folder).rglob("*.parquet")))))
        assert len(files) == 1, "the answer depends on who does the work"
    return status.finished, whole - status.seconds, status.seconds


if __name__ == "__main__":
    main()
