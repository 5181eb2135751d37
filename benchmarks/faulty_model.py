"""The model of `faults.py`: in a worker it does what the file `trouble` says, when it meets a certain graph."""

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from xdegree.models import GCN

HERE = Path(__file__).parent
MAGIC, BAD, GRAPHS = 77.0, 9, 48


def trouble() -> str:
    """What is to go wrong, if this process is a worker."""
    worker, file = multiprocessing.current_process().name.startswith("xdegree-worker"), HERE / "trouble"
    return file.read_text() if worker and file.exists() else ""


def times(name: str) -> int:
    """How often this was asked so far, by all processes."""
    with (HERE / f"times-{name}").open("a") as file:
        file.write("x")
    return (HERE / f"times-{name}").stat().st_size - 1


def act(kind: str) -> None:
    """Do harm."""
    if kind == "kill" and not times(kind):
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "die":
        os._exit(3)
    if kind == "hang":
        time.sleep(3600)
    if kind == "memory":
        torch.ones(10**10, dtype=torch.double)
    raised = {
        "OSError": OSError(5, "Input/output error"),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "exit": SystemExit(1),
    }
    if kind in raised:
        raise raised[kind]


def half_a_message(self: Connection, buffer: bytes) -> None:
    """A worker that is killed in the middle of a part that it sends."""
    if len(buffer) > 2000 and not times("send"):
        os.write(self.fileno(), bytes(buffer[: len(buffer) // 2]))
        os.kill(os.getpid(), signal.SIGKILL)
    original(self, buffer)


original = Connection._send  # type: ignore[attr-defined]
if trouble() == "send":
    Connection._send = half_a_message  # type: ignore[attr-defined]


class Net(GCN):
    """Slow enough to be disturbed."""

    def __init__(self) -> None:
        super().__init__(3, 2, level="graph")
        self.register_buffer("mask", torch.ones(2), persistent=False)
        self.gain, self.shift = np.float32(1.0), torch.zeros(2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """The prediction."""
        if (x == MAGIC).any():
            act(trouble())
        time.sleep(1.0 if (HERE / "slow").exists() else 0.05)
        return scaled(super().forward(x, edge_index, batch)) * self.mask * float(self.gain) + self.shift


def scaled(x: Tensor) -> Tensor:
    """A function that `forward` calls."""
    return x * 1.0


def factory() -> tuple[Net, tuple[list[Data]]]:
    """The model and its graphs; a file `change` alters one of the things that a job must notice."""
    if trouble() == "start" and times("start") < 3:
        os._exit(1)
    torch.manual_seed(0)
    model, draw, graphs = Net(), torch.Generator().manual_seed(0), []
    for number in range(GRAPHS):
        n = 3 + number % 5
        x, edge_index = torch.randn(n, 3, generator=draw), torch.randint(n, (2, 2 * n), generator=draw)
        graphs.append(Data(x=x, edge_index=edge_index))
    graphs[BAD].x[0, 0] = MAGIC
    change = (HERE / "change").read_text() if (HERE / "change").exists() else ""
    if change == "weights":
        model.lin1.weight.data[0, 0] += 1e-6
    if change == "buffer":
        model.mask[0] = 1.000001
    if change == "number":
        model.gain = np.float32(1.0000001)
    if change == "tensor":
        model.shift[0] = 1e-6
    if change == "data":
        graphs[-1].x[0, 0] += 1e-6
    return model, (graphs,)
