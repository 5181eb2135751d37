"""A crew of workers within the test's own process, and the models that jobs are tried on."""

import time
from collections.abc import Iterator
from pathlib import Path

import pandas

from xdegree import jobs
from xdegree.jobs.worker import At, Died, Event, Task, Worker, compared

SMALL = {"part_size": 4, "batch_size": 4, "portions": "100MB", "progress": False}
MODELS = '''
import multiprocessing, os, signal, time
from pathlib import Path
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN as Weighted
from xdegree.models import GCN

HERE = Path(__file__).parent


def made(level):
    torch.manual_seed(0)
    return Troubled(3, 2, level=level)


class Troubled(GCN):
    """Does what the file "trouble" says, once, when it meets a number in a worker's process and a part is there."""

    def forward(self, x, edge_index, batch=None):
        file = HERE / "trouble"
        for number, trouble, part in (line.split() for line in file.read_text().splitlines()) if file.exists() else ():
            done = HERE / f"done-{number}"
            if (x == float(number)).any() and not done.exists():
                done.touch()
                while not (HERE / "out" / "instances" / part).exists():
                    time.sleep(0.01)
                self.act(trouble)
        return super().forward(x, edge_index, batch)

    def act(self, trouble):
        if trouble == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "wait":
            while not (HERE / "go").exists():
                time.sleep(0.01)
        if trouble == "interrupt":  # a terminal tells all
            os.kill(multiprocessing.parent_process().pid, signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)


def sound():
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(24):
        n = 3 + number % 5
        x, edge_index = torch.randn(n, 3, generator=draw), torch.randint(n, (2, 2 * n), generator=draw)
        graphs.append(Data(x=x, edge_index=edge_index))
    return graphs


def of_graphs():
    return made("graph"), (sound(),)


def magic():
    graphs = sound()
    graphs[9].x[0, 0], graphs[17].x[0, 0] = 77, 78
    return made("graph"), (graphs,)


def poisoned():
    graphs = sound()
    graphs[5].edge_index[0, 0] = len(graphs[5].x)  # in a batch, a node of the next graph
    graphs[6].x[0, 0] = float("nan")
    graphs[7] = "a molecule"
    graphs[8] = Data(x=torch.zeros(2, 9), edge_index=torch.tensor([[0], [1]]))
    graphs[9] = Data(edge_index=torch.tensor([[0], [1]]))
    return made("graph"), (graphs,)


class Unreadable(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 2:
            raise KeyError("molecule 2")
        if i == 4 and (HERE / "disk").exists():
            raise OSError(5, "Input/output error")
        return sound()[i]


def unreadable():
    return made("graph"), (Unreadable(),)


def of_nodes():
    model, draw = made("node"), torch.Generator().manual_seed(0)
    return model, (torch.randn(30, 3, generator=draw), torch.randint(30, (2, 40), generator=draw))


def keywords():
    model, (x, edge_index) = of_nodes()
    return model, [x], {"edge_index": edge_index}


def weighted():
    model, (x, edge_index) = of_nodes()
    torch.manual_seed(0)
    weights = 0.5 + torch.rand(40, generator=torch.Generator().manual_seed(1))
    return Weighted(3, 4, 2, 2).eval(), (x, edge_index), {"edge_weight": weights}


def overflowing():
    model, (x, edge_index) = of_nodes()
    x[3] = 3e38
    with torch.no_grad():
        model.lin2.weight *= 1e6
    return model, (x, edge_index)


def at_random():
    model, args = of_nodes()
    with torch.no_grad():
        model.lin1.weight += float(time.perf_counter())
    return model, args


def scaled():
    model, args = of_nodes()
    with torch.no_grad():
        model.lin1.weight *= float((HERE / "scale").read_text())
    return model, args


def odd():
    model, args = of_nodes()
    return (lambda x, edge_index: torch.special.i0(model(x, edge_index))), args


def typed():
    return (lambda x_dict: x_dict["a"]), ({"a": torch.ones(2, 2)},)


def none():
    return made("graph"), ([],)


def wrong_width():
    model, (x, edge_index) = of_nodes()
    return model, (x[:, :2], edge_index)


def stored():
    model, (x, edge_index) = of_nodes()
    data = Data(x=x, edge_index=edge_index)
    return model, ((data, data),)


def broken():
    raise RuntimeError("no data here")
'''


class Inline:
    """Workers that take turns in this process. `fate` may end one, or do other harm, at any event."""

    def __init__(self, settings, expected, memory=None, fate=lambda worker, event: None):
        self.settings, self.expected, self.fate = settings, expected, fate
        self.streams: dict[int, Iterator[Event]] = {}
        self.hired: list[int] = []
        self.ended: list[int] = []
        self.tasks: list[Task] = []
        self.closed = False
        self.workers: dict[int, Worker] = {}

    def hire(self, worker):
        self.hired.append(worker)
        self.workers[worker] = Worker()
        self.streams[worker] = self._start(worker)

    def _start(self, worker):
        yield compared(self.workers[worker].load(self.settings), self.expected, self.settings.factory)

    def give(self, worker, task):
        self.tasks.append(task)
        self.streams[worker] = self.workers[worker].explain(task)

    def wait(self, seconds) -> list[tuple[int, Event]]:
        for worker in list(self.streams):
            stream = self.streams.pop(worker)
            event = next(stream, None)
            if event is None:
                continue
            how = self.fate(worker, event)
            if how == "hangs":  # it says what it is at, and nothing more
                return [(worker, event)]
            if how is not None:  # a worker says what it is at before it dies of it
                return [(worker, event)] * isinstance(event, At) + [(worker, Died(how))]
            self.streams[worker] = stream  # at the end: the others come first now
            return [(worker, event)]
        return []

    def end(self, worker):
        self.ended.append(worker)
        self.streams.pop(worker, None)

    def close(self):
        self.closed = True


class Crews(list):
    """The crews that there were, and what becomes of their workers."""

    @staticmethod
    def fate(worker, event):
        return None

    def hired(self, settings, expected, memory):
        self.append(Inline(settings, expected, memory, lambda *told: self.fate(*told)))  # noqa: PLW0108 (it changes)
        return self[-1]


class Place:
    def __init__(self, folder: Path, module: str):
        self.folder, self.module, self.out = folder, module, folder / "out"

    def __call__(self, factory: str) -> str:
        return f"{self.module}:{factory}"

    def files(self, out: str = "out") -> dict[str, bytes]:
        """All results, by the names of their files."""
        files = [f for f in (self.folder / out).rglob("*.parquet") if f.is_file()]
        return {str(f.relative_to(self.folder / out)): f.read_bytes() for f in files}


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


def until(holds):
    for _ in range(1800):  # machines may be busy
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it never came to that")
