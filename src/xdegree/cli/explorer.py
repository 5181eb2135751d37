"""``xdegree explorer``: a local page where one clicks on nodes and reads what they contribute."""

import argparse
import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..factories import UsageError, load_weights, made_with_views
from .arguments import DONE, FACTORY, INCOMPLETE, INTERRUPTED, add, add_factory, command, note, progress

if TYPE_CHECKING:
    from ..explorer.subject import Example

EXAMPLES = ("molecules", "ba-shapes", "sentences")
ABOUT = f"""\
Open a page to click on nodes, atoms or words and read what they contribute.

Without MODULE:FACTORY it shows examples. Their small models are trained at the first
start, which takes some seconds, and kept in the user's cache folder. With it, it
shows your own model.

{FACTORY}
Graphs with data.smiles are drawn as molecules, those with data.words as sentences. A
fourth element says how the model reads what is typed on the page:

        return model, (graphs,), {{}}, {{"molecule": smiles_to_data}}    # or "sentence"

SMILES that torch_geometric.utils.from_smiles reads as your graphs are need none.

The page is answered to this machine only and loads nothing from elsewhere. Its
address is printed. Stop it with Ctrl-C."""


def add_to(commands: Any) -> None:
    """Tell the parser about this command."""
    parser = command(
        commands,
        "explorer",
        "open a page to click on nodes and read what they contribute",
        about=ABOUT,
        examples=[
            "xdegree explorer",
            "xdegree explorer --example ba-shapes --port 0 --no-browser",
            "xdegree explorer my_models.py:factory --classes no,yes",
        ],
        codes={
            DONE: "stopped by Ctrl-C",
            INCOMPLETE: "",
            INTERRUPTED: "interrupted by Ctrl-C before the page was there",
        },
    )
    add_factory(parser, optional=True)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="a graph as JSON, for your model; repeatable",
    )
    parser.add_argument("--classes", metavar="A,B,…", default="", help="names of the classes of your model")
    parser.add_argument(
        "--example",
        choices=EXAMPLES,
        action="append",
        default=[],
        help="show only this example; repeatable (default: all)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8050,
        metavar="N",
        help="where to listen, 0 for any free port (default: %(default)s)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser window")
    add(parser, "--quiet")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Prepare the examples, listen, and answer until interrupted."""
    import logging
    import webbrowser

    try:
        from ..explorer import make_app, server
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    app = make_app(_examples(given))
    try:
        listening = server(app, port=given.port)
    except (OSError, OverflowError, SystemExit) as error:
        used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is in use by another program" if used else f"cannot be used ({error})"
        raise UsageError(f"port {given.port} {why}; choose another, or --port 0 for any free one") from None
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    address = f"http://127.0.0.1:{listening.server_port}/"
    print(f"xdegree explorer: {address} (Ctrl-C stops it)", flush=True)
    if not given.no_browser:
        webbrowser.open(address)
    try:
        listening.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        listening.server_close()
    return DONE


def _examples(given: argparse.Namespace) -> "list[Example]":
    if given.factory is not None:
        return [_own(given)]
    if given.weights is not None or given.data or given.classes:
        raise UsageError("--weights, --data and --classes are for a model of your own: name its MODULE:FACTORY")
    from ..explorer import examples

    names = given.example or EXAMPLES
    return examples.prepared(names, say=lambda text: note(given, text), progress=progress(given))


def _own(given: argparse.Namespace) -> "Example":
    from ..explorer.problem import Problem
    from ..explorer.user_model import own_example

    (model, args, kwargs), views = made_with_views(given.factory)
    if given.weights is not None:
        load_weights(model, given.weights)
    classes = [name.strip() for name in given.classes.split(",") if name.strip()]
    try:
        graphs = [path.read_text("utf-8") for path in given.data]
        return own_example(model, args, kwargs, graphs=graphs, classes=classes, views=views)
    except (Problem, OSError, UnicodeDecodeError) as error:
        raise UsageError(str(error)) from None
