"""Break jobs in every way we know, and write what was lost into docs/jobs.md: ``python benchmarks/faults.py``.

Every fault happens to a real job in a process of its own, with two workers. Afterwards the job is resumed, and every
score is compared with a loop of `xdegree.explain` over the same graphs. `--only TEXT` tries some; the other rows
of the table stay as they are.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import psutil
import torch

from xdegree import explain

MODEL = Path(__file__).with_name("faulty_model.py")
PAGE = Path(__file__).parent.parent / "docs" / "jobs.md"
MARKS = ("<!-- written by benchmarks/faults.py -->", "<!-- end -->")
HEAD = ("| fault | what was seen | error rows | lost | largest difference |", "| --- | --- | --- | --- | --- |")
COMMAND = [sys.executable, "-c", "from xdegree.cli import main; raise SystemExit(main())", "job"]
SIZES = ["--workers", "2", "--part-size", "4", "--batch-size", "2", "--quiet"]
CLOSE = 1e-6
WAIT = 180.0


class Place:
    """A folder with the model, and a job in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        shutil.copy(MODEL, folder / "faulty_model.py")

    def start(self, *more: str, trouble: str = "", slow: bool = False) -> subprocess.Popen[str]:
        """A job in a process of its own; a slow one is not at its end before it is disturbed."""
        (self.folder / "trouble").write_text(trouble)
        if slow:
            (self.folder / "slow").touch()
        return self._popen("run", "faulty_model.py:factory", "--out", "out", *SIZES, *more)

    def call(self, *command: str) -> tuple[int, str]:
        """The exit code and what was said."""
        (self.folder / "slow").unlink(missing_ok=True)
        return ended(self._popen(*command))

    def _popen(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *command], cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def until_parts(self, number: int, process: subprocess.Popen[str]) -> None:
        """Wait until some parts are written."""
        end = time.monotonic() + WAIT
        while len(list(self.out.glob("instances/part-*"))) < number:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "no part was written"
            time.sleep(0.02)

    def file(self, table: str, part: int) -> Path:
        """A part of a table."""
        return self.out / table / f"part-{part:06d}.parquet"


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a process and what it said."""
    said = process.communicate(timeout=WAIT)[0]
    return process.returncode, said


Fault = Callable[[Place], str]
"""Does harm, brings the job to its end, and says what was seen."""


def by_trouble(kind: str, *more: str, code: int = 0) -> Fault:
    """What a model does in a worker."""

    def fault(place: Place) -> str:
        found, said = ended(place.start(*more, trouble=kind))
        assert found == code, said
        died = [line.strip().partition(";")[0] for line in said.splitlines() if "workers that died" in line]
        why = [line.strip() for line in said.splitlines() if line.startswith("    9: ")]
        return "; ".join([f"exit {found}", *died, *(f"`{line[:90]}`" for line in why)])

    return fault


def by_signal(number: signal.Signals, code: int) -> Fault:
    """A signal to the job."""

    def fault(place: Place) -> str:
        process = place.start(slow=True)
        place.until_parts(3, process)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        found, said = ended(process)
        assert found == code, (found, said)
        gone, alive = psutil.wait_procs(workers, timeout=20)
        assert not alive, alive
        state = json.loads((place.out / "manifest.json").read_text())["state"]
        half = len(list(place.out.rglob("*.tmp")))
        resumed, said = place.call("resume", "out", "--quiet")
        assert resumed == 0, said
        return (
            f"exit {found}, manifest “{state}”, {half} half-written files, {len(gone)} of {len(workers)} processes gone"
        )

    return fault


def by_file(harm: Callable[[Path], Any]) -> Fault:
    """Harm to a file of a finished job."""

    def fault(place: Place) -> str:
        assert ended(place.start())[0] == 0
        harm(place.file("scores", 2))
        code, said = place.call("status", "out")
        assert code == 1, said
        found = next(line.strip() for line in said.splitlines() if "is damaged" in line)
        resumed, said = place.call("resume", "out", "--quiet")
        assert resumed == 0, said
        return f"`{found}`"

    return fault


def flipped(path: Path) -> None:
    """One bit."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_manifest(place: Place) -> str:
    """A manifest that is cut off."""
    process = place.start(slow=True)
    place.until_parts(3, process)
    process.kill()
    ended(process)
    manifest = place.out / "manifest.json"
    manifest.write_text(manifest.read_text()[:500])
    code, said = place.call("resume", "out", "--quiet")
    assert code == 2, said
    assert "job repair" in said, said
    code, said = place.call("repair", "out")
    assert code == 1, said
    assert place.call("resume", "out", "--quiet")[0] == 0
    return (
        f"`resume` names the command `repair`, which finds {said.split('instances')[1].split(',')[0].strip()} instances"
    )


def foreign(place: Place) -> str:
    """Files of others in the folder."""
    process = place.start(slow=True)
    place.until_parts(3, process)
    process.send_signal(signal.SIGTERM)
    ended(process)
    (place.out / "scores" / "notes.txt").write_text("mine")
    place.file("scores", 11).write_text("my table")
    assert place.call("resume", "out", "--quiet")[0] == 0
    kept = (
        (place.out / "scores" / "notes.txt").read_text(),
        (place.out / "damaged/scores-part-000011.parquet").read_text(),
    )
    assert kept == ("mine", "my table")
    (place.out / "scores" / "notes.txt").unlink()
    return "both are kept, one in `damaged/` because it lay in the place of a part"


def by_change(change: str, code: str = "") -> Fault:
    """A model or data that changed since the job was started."""

    def fault(place: Place) -> str:
        process = place.start(slow=True)
        place.until_parts(3, process)
        process.send_signal(signal.SIGTERM)
        ended(process)
        source = (place.folder / "faulty_model.py").read_text()
        (place.folder / "change").write_text(change)
        if code:
            (place.folder / "faulty_model.py").write_text(source.replace(*code.split(" -> ")))
        refused, said = place.call("resume", "out", "--quiet")
        assert refused == 2, said
        (place.folder / "change").unlink()
        (place.folder / "faulty_model.py").write_text(source)
        resumed, after = place.call("resume", "out", "--quiet")
        assert resumed == 0, after
        return f"refused: `{said.split('cannot resume: ')[1].split(' since')[0]}`; with the old one again, resumed"

    return fault


def by_ray(victim: str) -> Fault:
    """A process of Ray that is killed."""

    def fault(place: Place) -> str:
        process = place.start("--engine", "ray", slow=True)
        place.until_parts(3, process)
        family = psutil.Process(process.pid).children(recursive=True)
        doors = {c.laddr.ip for p in family for c in p.net_connections("inet") if c.status == "LISTEN"}
        assert all("127.0.0.1" in door for door in doors), doors
        killed = [p for p in family if victim in p.name()][:1]
        for one in killed:
            one.kill()
        assert killed or victim == "-", family
        if victim == "-":
            process.send_signal(signal.SIGINT)
        (place.folder / "slow").unlink()
        code, said = ended(process)
        if code != 0:
            resumed, after = place.call("resume", "out", "--quiet", "--engine", "local")
            assert resumed == 0, after
        words = [line.partition("xdegree job run: ")[2] for line in said.splitlines() if "xdegree job run" in line]
        died = [line.strip().partition(";")[0] for line in said.splitlines() if "workers that died" in line]
        listening = f"listening on {', '.join(sorted(doors))} only"
        return "; ".join([f"exit {code}", *died, *(f"`{word[:110]}`" for word in words), listening])

    return fault


FAULTS: dict[str, tuple[Fault, set[int]]] = {
    "nothing": (by_trouble(""), set()),
    "a worker is killed (SIGKILL)": (by_trouble("kill"), set()),
    "a worker is killed while it sends a part": (by_trouble("send"), set()),
    "three workers in a row die at their start": (by_trouble("start"), set()),
    "the job is killed (SIGKILL)": (by_signal(signal.SIGKILL, -9), set()),
    "SIGTERM": (by_signal(signal.SIGTERM, 143), set()),
    "Ctrl-C": (by_signal(signal.SIGINT, 130), set()),
    "a graph that ends its process (`os._exit`)": (by_trouble("die", code=1), {9}),
    "a graph that hangs, `--timeout 3`": (by_trouble("hang", "--timeout", "3", code=1), {9}),
    "a graph that needs 80 GB, `--memory 4GB`": (by_trouble("memory", "--memory", "4GB", code=1), {9}),
    "a graph that raises OSError": (by_trouble("OSError", code=1), {9}),
    "a graph that raises KeyboardInterrupt": (by_trouble("KeyboardInterrupt", code=1), {9}),
    "a graph that calls `exit`": (by_trouble("exit", code=1), {9}),
    "a part is cut off": (by_file(lambda path: path.write_bytes(path.read_bytes()[:-9])), set()),
    "a part is emptied": (by_file(lambda path: path.write_bytes(b"")), set()),
    "a bit of a part is flipped": (by_file(flipped), set()),
    "a part is replaced by another one": (
        by_file(lambda path: shutil.copy(path.with_name("part-000003.parquet"), path)),
        set(),
    ),
    "a part is deleted": (by_file(Path.unlink), set()),
    "the manifest is cut off": (cut_manifest, set()),
    "files of others in the folder": (foreign, set()),
    "other weights (by 1e-6)": (by_change("weights"), set()),
    "another buffer that is not saved": (by_change("buffer"), set()),
    "another NumPy number": (by_change("number"), set()),
    "another plain tensor": (by_change("tensor"), set()),
    "other data (by 1e-6)": (by_change("data"), set()),
    "other code of a function that `forward` calls": (by_change("", "return x * 1.0 -> return x * 1.5"), set()),
    "Ray: an actor is killed": (by_ray("ray::_Actor"), set()),
    "Ray: the raylet is killed": (by_ray("raylet"), set()),
    "Ray: the head (GCS) is killed": (by_ray("gcs_server"), set()),
    "Ray: Ctrl-C": (by_ray("-"), set()),
}


def main() -> None:
    """Try all faults, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    expected = serial()
    for name, (fault, errors) in FAULTS.items():
        if only in name:
            row = tried(name, fault, errors, expected)
            print(row, flush=True)
            write(name, row)


def write(name: str, row: str) -> None:
    """Put a row into the table of the page, in the order of the faults."""
    before, rest = PAGE.read_text().split(MARKS[0])
    table, after = rest.split(MARKS[1])
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines() if line.startswith("| ")}
    rows[name] = row
    lines = [*HEAD, *(rows[known] for known in FAULTS if known in rows)]
    PAGE.write_text("\n".join([f"{before}{MARKS[0]}", "", *lines, "", f"{MARKS[1]}{after}"]))


def serial() -> pandas.DataFrame:
    """The scores of a loop over the graphs, in this process."""
    sys.path.insert(0, str(MODEL.parent))
    from faulty_model import factory

    model, (graphs,) = factory()
    model.eval()
    found = [explain(model, graph, index=0).node_scores for graph in graphs]
    rows = [(i, node, float(score)) for i, scores in enumerate(found) for node, score in enumerate(scores)]
    return pandas.DataFrame(rows, columns=["index", "node", "score"]).set_index(["index", "node"])


def tried(name: str, fault: Fault, errors: set[int], expected: pandas.DataFrame) -> str:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        seen = fault(place)
        instances = pandas.read_parquet(place.out / "instances").set_index("index")
        scores = pandas.read_parquet(place.out / "scores").set_index(["index", "node"])["score"]
    assert not scores.index.duplicated().any(), "a result is there twice"
    assert not instances.index.duplicated().any(), "an instance is there twice"
    wanted = expected["score"].drop(index=list(errors), level="index")
    failed = set(instances["error"].dropna().index)
    difference = (scores.reindex(wanted.index) - wanted).abs()
    missing = set(difference[difference.isna()].index.get_level_values("index")) | (failed - errors)
    wrong = set(difference[difference > CLOSE].index.get_level_values("index"))
    lost = "nothing" if not missing | wrong and len(scores) == len(wanted) else f"**{len(missing | wrong)} instances**"
    return f"| {name} | {seen} | {len(failed)} | {lost} | {difference.max():.0e} |"


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
