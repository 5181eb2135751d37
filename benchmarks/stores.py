"""A graph larger than memory: nodes explained from files that are mapped into memory, and from memory.

    python benchmarks/stores.py [--quick] [--folder FOLDER]

The graph of examples/larger_than_memory.py with 10⁷ nodes and 10⁸ directed edges is written to FOLDER (1.2 GB, removed
afterwards). A process of its own explains 1,000 random nodes from the stores, another one from tensors in memory
(`trust_neighborhood=True`, the same question). The marks: a resident set of 1.5 GB, and 1.5 times the time in memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import machine, verdict

from xdegree import prepare

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from larger_than_memory import DEGREE, stored, write_graph

NODES, EXPLAINED, ROUNDS = 10**7, 1000, 3


def in_memory(folder: Path) -> tuple[Any, tuple[Any, ...]]:
    """The same model, with tensors."""
    x, row, colptr = (torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("x", "row", "colptr"))
    receivers = torch.repeat_interleave(torch.arange(len(x)), colptr.diff())
    return stored(folder)[0], (x, torch.stack([row.long(), receivers]))


def measured(where: str, folder: Path) -> dict[str, Any]:
    """Seconds of the processor and of the clock per node, and the largest resident set."""
    torch.set_num_threads(1)
    model, args = (stored if where == "stores" else in_memory)(folder)
    began = time.process_time()
    prepared = prepare(model, *args, trust_neighborhood=True)
    nodes = len(prepared.call.x)
    prepared.explain(index=0)
    found: dict[str, Any] = {"prepare": time.process_time() - began, "processor": [], "clock": []}
    for number in range(ROUNDS):
        rows = torch.randperm(nodes, generator=torch.Generator().manual_seed(number))[:EXPLAINED].tolist()
        before = time.process_time(), time.perf_counter()
        e = prepared.explain(index=rows, memory="200MB")
        found["processor"].append((time.process_time() - before[0]) / EXPLAINED)
        found["clock"].append((time.perf_counter() - before[1]) / EXPLAINED)
        found["scores"] = float(e.scores.abs().sum())
        found["field"] = len(e.scores) / EXPLAINED
    found["scope"] = e.scope
    found["resident"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def in_a_process(where: str, folder: Path) -> dict[str, Any]:
    """The same without anything that was there before; a process counts the memory of the one that started it too."""
    made = subprocess.run([sys.executable, __file__, "--of", where, str(folder)], stdout=subprocess.PIPE, check=True)
    answer: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Print the table."""
    if "--of" in sys.argv:
        print(json.dumps(measured(sys.argv[-2], Path(sys.argv[-1]))))
        return
    if "--write" in sys.argv:
        write_graph(Path(sys.argv[-1]), int(sys.argv[-2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the graph")
    parser.add_argument("--folder", type=Path, help="where the files are written (default: the system's)")
    given = parser.parse_args()
    nodes = NODES // 100 if given.quick else NODES
    print(machine())
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        folder = Path(temporary)
        began = time.perf_counter()
        subprocess.run([sys.executable, __file__, "--write", str(nodes), temporary], check=True)
        size = sum(file.stat().st_size for file in folder.glob("*.npy"))
        print(f"{nodes:,} nodes, {DEGREE * nodes:,} directed edges, {size / 1e9:.2f} GB on disk", end=", ")
        print(
            f"written in {time.perf_counter() - began:.0f} s; 2-layer GraphSAGE, {EXPLAINED} nodes, {ROUNDS} rounds\n"
        )
        os.sync()
        found = {where: in_a_process(where, folder) for where in ("stores", "memory")}
    titles = ("prepare (s)", "ms per node", "by the clock", "field", "resident (GB)")
    widths = (12, 12, 13, 6, 14)
    print("from    ", *(title.rjust(width) for title, width in zip(titles, widths, strict=True)), " scope")
    for where, one in found.items():
        processor, clock = (1e3 * sorted(one[name])[ROUNDS // 2] for name in ("processor", "clock"))
        print(
            f"{where:8} {one['prepare']:>12.1f} {processor:>12.2f} {clock:>13.2f} {one['field']:>6.0f}"
            f" {one['resident'] / 1e9:>14.2f}  {one['scope']}"
        )
    mine, other = found["stores"], found["memory"]
    ratio = sorted(a / b for a, b in zip(mine["processor"], other["processor"], strict=True))[ROUNDS // 2]
    resident = mine["resident"] / 1e9
    print(f"\ntime from stores / in memory, median of rounds: {ratio:.2f} ({verdict(ratio, 1.5)})")
    print(f"resident set from stores: {resident:.2f} GB ({verdict(resident, 1.5)})")
    same = abs(mine["scores"] - other["scores"]) <= 1e-5 * other["scores"]
    print(f"the same scores: {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
