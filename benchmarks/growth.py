"""Time and memory per explained node as graphs grow: power-law graphs, ten directed edges per node, GraphSAGE.

    python benchmarks/growth.py [--quick]

Every size runs in a process of its own, so that its peak of memory is its own. The model runs once over the whole graph
and the edges are indexed once, when the call is prepared; after that only the neighborhood of an explained node is
looked at, and its output is compared with the model's own each time. Each call also reads all receivers of messages, to
see that the edges are still those that were prepared: that is what grows.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import psutil
import torch
from measure import arguments, machine, seconds, verdict
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from xdegree import prepare

WIDTH, CLASSES, EXPLAINED, ROUNDS = 64, 4, 48, 5
BUDGET = "2GB"
HUB = 100_000
"""Neighbours of the hub."""


class Sage(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(WIDTH, WIDTH), SAGEConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of all nodes."""
        out: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return out


def power_law(nodes: int) -> Tensor:
    """Ten directed edges per node, both ways, with degrees that fall off with exponent 3; nodes in no order."""
    generator = torch.Generator().manual_seed(0)
    chance = torch.arange(1, nodes + 1, dtype=torch.float64).pow(-0.5).cumsum(0)
    drawn = torch.rand(2, 5 * nodes, generator=generator, dtype=torch.float64) * chance[-1]
    ends = torch.randperm(nodes, generator=generator)[torch.searchsorted(chance, drawn).clamp(max=nodes - 1)]
    return torch.cat([ends, ends.flip(0)], 1)


def around_a_hub() -> Tensor:
    """A hub whose neighbours have ten neighbours each, among as many others."""
    generator = torch.Generator().manual_seed(0)
    near = torch.arange(1, HUB + 1)
    far = torch.randint(HUB + 1, 2 * HUB + 1, (10 * HUB,), generator=generator)
    return torch.cat([torch.stack([near, torch.zeros_like(near)]), torch.stack([far, near.repeat(10)])], 1)


def measured(nodes: int) -> dict[str, float]:
    """One size, or the hub for 0."""
    edge_index = power_law(nodes) if nodes else around_a_hub()
    count = nodes or 2 * HUB + 1
    torch.manual_seed(0)
    x, model = torch.randn(count, WIDTH), Sage().eval()
    found: dict[str, float] = {"nodes": count, "edges": edge_index.shape[1]}
    drawn = torch.randperm(max(1, nodes), generator=torch.Generator().manual_seed(1))[:EXPLAINED].tolist()
    rows = drawn if nodes else [0]
    found["prepare"] = seconds(lambda: prepare(model, x, edge_index))
    prepared = prepare(model, x, edge_index)
    prepared.explain(index=1, memory=BUDGET)  # warms up
    before = psutil.Process().memory_info().rss
    forget_peak()  # that of the model's own pass over the whole graph, which `prepare` makes
    singles = [seconds(lambda row=row: prepared.explain(index=row, memory=BUDGET)) for row in rows]
    found["single"] = statistics.median(singles)
    if nodes:
        calls = [seconds(lambda: prepared.explain(index=rows, memory=BUDGET)) for _ in range(ROUNDS)]
        found["together"] = statistics.median(calls) / len(rows)
        found["field"] = len(prepared.explain(index=rows, memory=BUDGET).scores) / len(rows)
    found["peak"] = peak() - before
    if not nodes:
        found["sampled"] = seconds(lambda: prepared.explain(index=0, num_neighbors=1000, memory=BUDGET))
        e = prepared.explain(index=0, num_neighbors=1000, memory=BUDGET)
        found["error"] = float(e.sampling_error.abs().max() / e.prediction.abs().max())
    return found


def forget_peak() -> None:
    """Let the system count the peak of memory anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most memory that was resident since, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def in_a_process(nodes: int) -> dict[str, float]:
    """The same without anything that was there before."""
    made = subprocess.run([sys.executable, __file__, "--of", str(nodes)], capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(made.stdout.splitlines()[-1])
    return answer


def main() -> None:
    """Print the table."""
    if "--of" in sys.argv:
        torch.set_num_threads(1)
        print(json.dumps(measured(int(sys.argv[-1]))))
        return
    given = arguments(__doc__)
    print(machine())
    print(f"model     2-layer GraphSAGE, {WIDTH} wide, random weights; budget {BUDGET}; processor time, 1 thread")
    print(f"{EXPLAINED} random nodes: one call each (median), and all in one call (mean; median of {ROUNDS} calls)\n")
    titles = ("nodes", "edges", "prepare (s)", "one call (ms)", "together (ms)", "field", "peak (MB)")
    print(" ".join(title.rjust(width) for title, width in zip(titles, (9, 9, 12, 14, 14, 6, 10), strict=True)))
    sizes = [in_a_process(n) for n in ((10**4, 10**5) if given.quick else (10**4, 10**5, 10**6))]
    for s in sizes:
        print(
            f"{s['nodes']:>9.0f} {s['edges']:>9.0f} {s['prepare']:>12.2f} {1e3 * s['single']:>14.1f}"
            f" {1e3 * s['together']:>14.2f} {s['field']:>6.0f} {s['peak'] / 1e6:>10.0f}"
        )
    growth = max(s["single"] for s in sizes) / min(s["single"] for s in sizes)
    print(f"slowest / fastest size, one call each: {growth:.2f} ({verdict(growth, 1.3)})")
    each = [s["together"] / s["field"] for s in sizes]
    growth = max(each) / min(each)
    print(f"all in one call, per node of the field, which grows too: {growth:.2f} ({verdict(growth, 1.5)})")
    most = max(s["peak"] for s in sizes) / 1e9
    print(f"peak of memory beyond what is prepared: {most:.2f} GB ({verdict(most, 2)})")
    hub = in_a_process(0)
    print(f"\na hub with {HUB:,} neighbors, {hub['edges']:,.0f} edges:")
    most = hub["peak"] / 1e9
    print(f"  all neighbors          {hub['single']:7.2f} s, peak {most:.2f} GB ({verdict(most, 2)})")
    print(f"  1,000 of them, drawn   {hub['sampled']:7.2f} s, reported error {100 * hub['error']:.1f} % of the output")


if __name__ == "__main__":
    main()
