"""What a job found, read back from its Parquet files as explanations."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..results.explanation import Explanation
from .manifest import opened
from .settings import JobError, Settings
from .tables import pyarrow


def settings_of(folder: str | Path) -> Settings:
    """What a job was asked to do."""
    return opened(Path(folder))[0].settings


def explanations_of(
    folder: str | Path, graphs: Sequence[Data] | Data, most: int | None = None
) -> list[tuple[int, Explanation]]:
    """The explanations of a job by the number of their instance; what could not be explained is left out.

    Args:
        folder: the job's.
        graphs: the graphs that it explained, or the one whose nodes it explained: their edges are in no table.
        most: how many at most.
    """
    job, _ = opened(Path(folder))
    if job.settings.of != "node":
        raise JobError(f"jobs of nodes can be read as explanations (this one is of {job.settings.of!r})")
    found: list[tuple[int, Explanation]] = []
    job.look(thorough=False)
    for part in sorted(job.parts):
        if most is not None and len(found) >= most:
            break
        read = pyarrow().parquet.read_table
        instances = [one for one in read(job.file("instances", part)).to_pylist() if not one["error"]]
        scores = read(job.file("scores", part)).to_pydict()
        place = 0
        for one in instances:
            rows = slice(place, place := place + one["rows"])  # in the same order as the instances
            graph = graphs[one["index"]] if isinstance(graphs, Sequence) else graphs
            level = job.settings.level or ("graph" if isinstance(graphs, Sequence) else "node")
            nodes, values = scores["node"][rows], scores["score"][rows]
            found.append((one["index"], _explanation(one, nodes, values, graph, job.settings, level)))
    return found[:most]


def _explanation(
    one: Mapping[str, Any], nodes: list[int], scores: list[float], graph: Data, settings: Settings, level: Any
) -> Explanation:
    spread: Tensor = torch.zeros(one["num_nodes"], dtype=torch.double)
    spread[nodes] = torch.tensor(scores, dtype=torch.double)
    return Explanation(
        prediction=torch.tensor(one["output"], dtype=torch.double),
        target=one["target"],
        index=one["index"] if level == "node" else 0,
        num_nodes=one["num_nodes"],
        nodes=torch.tensor(nodes, dtype=torch.long),
        node_scores=spread,
        edge_index=graph.edge_index,
        reading=settings.reading,
        options=settings.options,
        level=level,
    )
