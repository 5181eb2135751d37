"""The command as a whole: its help, its names, its speed, and how it gets along with shells and pipes."""

import argparse
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import pytest

from xdegree import __version__, cli
from xdegree.cli import main
from xdegree.cli.arguments import EDGES, LEVELS, OF, READINGS

WITH_VALUE = (argparse._StoreAction, argparse._AppendAction)


def parsers() -> dict[str, argparse.ArgumentParser]:
    """All sub-commands by their full names."""
    found, waiting = {}, [cli._parser()]
    while waiting:
        parser = waiting.pop()
        found[parser.prog] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
    return found


PARSERS = parsers()
ARGUMENTS = [(prog, action) for prog, parser in PARSERS.items() for action in parser._actions]


def test_all_commands_are_there():
    names = ["audit", "check", "completion", "data", "explain", "explorer", "job", "report", "reproduce"]
    jobs = [f"xdegree job {action}" for action in ("repair", "resume", "run", "status")]
    assert sorted(PARSERS) == sorted(["xdegree", *(f"xdegree {name}" for name in names), *jobs])


@pytest.mark.parametrize("prog", PARSERS)
def test_help_has_a_description_an_example_and_the_exit_codes(prog, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*prog.split()[1:], "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    about = PARSERS[prog].description.splitlines()
    assert about[0].endswith("."), "shells show the first line alone"
    assert prog in printed.split("\nexamples:\n")[1].split("\n\n")[0]
    codes = printed.split("\nexit codes")[1].splitlines()[1:]
    assert {line.split()[0] for line in codes} >= {"0", "2", "130"}
    assert max(map(len, about)) <= 88, "a terminal is not wide"


def test_every_argument_is_explained():
    for prog, action in ARGUMENTS:
        what = (prog, action.dest)
        assert action.help or isinstance(action, argparse._SubParsersAction), what
        if isinstance(action, WITH_VALUE):
            assert action.metavar or action.choices, what
            if action.option_strings and action.default not in (None, [], ""):
                assert "%(default)s" in action.help, what


def test_the_same_name_is_the_same_thing_everywhere():
    seen = {}
    own_words = {
        "-o",
        "--out",
        "--index",
        "--engine",
        "--workers",
        "--classes",
    }  # of a file or a folder, of one or of many
    for prog, action in ARGUMENTS:
        for name in set(action.option_strings) - own_words:
            first = seen.setdefault(name, (prog, action))
            assert (action.help, action.metavar, action.choices) == (
                first[1].help,
                first[1].metavar,
                first[1].choices,
            ), f"{name} of {prog} and of {first[0]}"
    assert "--no-progress" not in seen


def test_choices_are_those_of_the_library():
    from xdegree.attribution.scores import EdgeScores, Reading
    from xdegree.model_call.call import Level
    from xdegree.model_call.split_points import Of

    assert (OF, READINGS, EDGES, LEVELS) == (get_args(Of), get_args(Reading), get_args(EdgeScores), get_args(Level))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["explian"], "xdegree: argument COMMAND: there is no 'explian', only check, explain,"),
        (["explian"], "did you mean 'explain'?\nsee: xdegree --help"),
        (["job", "stauts"], "did you mean 'status'?\nsee: xdegree job --help"),
        (["reproduce", "acuracy"], "did you mean 'accuracy'?"),
        (["check", "a:b", "--of", "nodes"], "argument --of: there is no 'nodes', only node, edge,"),
        (["check"], "xdegree check: the following arguments are required: MODULE:FACTORY\nsee: xdegree check --help"),
        (["explain", "a:b", "--top", "0"], "a number of at least 1 is needed (got '0')"),
        (["explain", "a:b", "--index", "x"], "argument --index: invalid int value: 'x'"),
        (["job", "run", "a:b"], "the following arguments are required: -o/--out"),
        (["job", "run", "a:b", "--out", "c", "--workers", "0"], "a number of at least 1"),
        (["completion", "fishh"], "only bash, zsh, tcsh"),
    ],
)
def test_wrong_usage(args, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out


@pytest.mark.parametrize("args", [[], ["job"]])
def test_alone_it_prints_its_help(args, capsys):
    assert main(args) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(" ".join(["usage: xdegree", *args, "[-h]"]))
    assert not captured.out


def test_versions(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    others = [f"{name} {version(name)}" for name in ("torch", "torch_geometric")]
    assert capsys.readouterr().out.splitlines() == [f"xdegree {__version__}", *others]


def test_help_does_not_wait_for_pytorch():
    heavy = "('torch', 'torch_geometric', 'numpy', 'shtab')"
    code = f"import sys, xdegree.cli as c; c._parser(); print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_as_a_module_it_has_the_same_name():
    done = subprocess.run([sys.executable, "-m", "xdegree", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: xdegree [-h]")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_no_error(unbuffered):
    command = f"{sys.executable} -m xdegree --help | head -1; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "0"
    assert not done.stderr


def test_somebody_stops_reading(monkeypatch, capsys):
    def run(given):
        raise BrokenPipeError

    monkeypatch.setattr(cli.check, "run", run)
    assert main(["check", "a:b"]) == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "xdegree check: interrupted\n"),
        (KeyboardInterrupt("go on so"), 130, "xdegree check: interrupted; go on so\n"),
        (KeyError("x"), 2, "xdegree check: KeyError: 'x'\n(XDEGREE_DEBUG=1 shows where it happened)\n"),
    ],
)
def test_whatever_ends_it_there_is_a_message(error, code, message, monkeypatch, capsys):
    def run(given):
        raise error

    monkeypatch.delenv("XDEGREE_DEBUG", raising=False)
    monkeypatch.setattr(cli.check, "run", run)
    assert main(["check", "a:b"]) == code
    assert capsys.readouterr().err == message
    if code == 2:
        monkeypatch.setenv("XDEGREE_DEBUG", "1")
        assert main(["check", "a:b"]) == code
        assert "Traceback (most recent call last)" in capsys.readouterr().err


# Completion.


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    pytest.importorskip("shtab", reason='pip install "xdegree[completion]"')
    folder = tmp_path_factory.mktemp("shell")
    for name in ("model.py", "state.pt"):
        (folder / name).touch()
    (folder / "my-job").mkdir()
    with (folder / "completion.bash").open("w") as file:
        subprocess.run([sys.executable, "-m", "xdegree", "completion", "bash"], stdout=file, check=True)
    return folder / "completion.bash"


def test_bash_completes(script):
    cases = {
        "ex": "explain explorer",
        "job st": "status",
        "explain --re": "--reading",
        "explain --reading s": "strength",
        "reproduce acc": "acc-sparsity accuracy",
        "completion z": "zsh",
        "explain mod": "model.py",
        "report sta": "state.pt",
        "check --weights st": "state.pt",
        "job status m": "my-job",
        "job run --out m": "my-job",
    }
    asked = "; ".join(f"ask {words}" for words in cases)
    code = f"""
        source {script}
        ask() {{
            COMP_WORDS=(xdegree "$@"); COMP_CWORD=$#; COMPREPLY=()
            _shtab_xdegree xdegree "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
            printf '%s\\n' "${{COMPREPLY[@]}}" | sort | paste -s -d ' '
        }}
        {asked}
    """
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, cwd=Path(script).parent)
    assert dict(zip(cases, done.stdout.splitlines(), strict=True)) == cases
    assert not done.stderr


@pytest.mark.parametrize(("shell", "sign"), [("zsh", "#compdef xdegree"), ("tcsh", "complete xdegree")])
def test_other_shells(shell, sign, capsys):
    pytest.importorskip("shtab", reason='pip install "xdegree[completion]"')
    assert main(["completion", shell]) == 0
    assert sign in capsys.readouterr().out


def test_completion_names_its_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert 'pip install "xdegree[completion]"' in capsys.readouterr().err
