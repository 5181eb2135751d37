"""What the benchmarks share: clocks, the description of the machine, tables."""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch_geometric import __version__ as pyg_version

import xdegree


def arguments(doc: str | None) -> argparse.Namespace:
    """The options of every benchmark, put into effect."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller graphs")
    parser.add_argument("--threads", type=int, default=1, help="that torch may use (default: 1)")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    return given


def machine() -> str:
    """The machine and the versions, in two lines."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, torch_geometric {pyg_version}"
    return (
        f"machine   {platform.machine()}, {_processor()}, {os.cpu_count()} cores, torch uses {torch.get_num_threads()}"
        f" thread(s){load}\nversions  {versions}, xdegree {xdegree.__version__}"
    )


def _processor() -> str:
    """The name of the processor, where the system tells it."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def seconds(job: Callable[[], Any], times: int = 1) -> float:
    """Processor seconds of one call, as the mean of several: other load on the machine counts as little as can be."""
    start = time.process_time()
    for _ in range(times):
        job()
    return (time.process_time() - start) / times


def in_turn(jobs: dict[str, Callable[[], Any]], rounds: int, times: dict[str, int] | None = None) -> dict[str, float]:
    """Median seconds of several jobs that take turns, so that whatever slows the machine down hits them alike."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            took = seconds(job, (times or {}).get(name, 1))
            if number:  # the first round warms up
                found[name].append(took)
    return {name: statistics.median(values) for name, values in found.items()}


def verdict(value: float, mark: float, at_least: bool = False) -> str:
    """A value beside the mark that it should reach."""
    good = value >= mark if at_least else value <= mark
    return f"{'≥' if at_least else '≤'} {mark:g}: {'yes' if good else 'NO'}"
