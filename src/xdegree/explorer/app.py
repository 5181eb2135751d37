"""The page as a server on this machine: nothing is loaded from elsewhere, and other machines are not answered."""

import logging
import socket
from collections.abc import Sequence
from typing import Any

import flask
from dash import Dash, set_props
from werkzeug.serving import BaseWSGIServer, make_server

from . import callbacks, page
from .answers import PATIENCE, Answers
from .catalogue import Catalogue
from .problem import MAX_UPLOAD, Problem
from .server_state import Desk
from .subject import Example

LOCAL = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    # Dash starts itself, and hands over clientside functions, by inline scripts.
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; form-action 'none';"
    " base-uri 'none'; frame-ancestors 'none'"
)
log = logging.getLogger("xdegree.explorer")


def make_app(examples: Sequence[Example], *, hosts: Sequence[str] = LOCAL, patience: float = PATIENCE) -> Dash:
    """The page for some examples.

    Args:
        examples: the first is shown at the start.
        hosts: names under which browsers may ask; others are refused, so that no web page can reach this one by
            having its own name point here.
        patience: seconds that an agglomeration may take.
    """
    app = Dash(
        __name__,
        title="xdegree explorer",
        update_title="",
        serve_locally=True,
        compress=False,
        on_error=_complain,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')
    app.server.config["TRUSTED_HOSTS"] = list(hosts)
    app.server.config["MAX_CONTENT_LENGTH"] = 4 * MAX_UPLOAD
    app.server.after_request(_guard)
    app.layout = page.layout(examples)
    callbacks.register(app, Desk(Catalogue(examples), Answers(patience)))
    return app


def _guard(response: flask.Response) -> flask.Response:
    """Headers by which a browser refuses everything that does not come from here."""
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _complain(error: Exception) -> None:
    """Say what went wrong above the page, which stays as it was."""
    if isinstance(error, Problem):
        text = str(error)
    else:
        log.error("a question failed", exc_info=error)
        text = f"This could not be computed ({type(error).__name__}: {str(error)[:200]}). The terminal has the details."
    shown: dict[str, Any] = {"children": text}
    set_props("notice", shown)


def server(app: Dash, host: str = "127.0.0.1", port: int = 8050) -> BaseWSGIServer:
    """A server that listens already; ``serve_forever`` answers, ``server_port`` is where. Port 0 takes a free one."""
    with socket.socket() as probe:  # werkzeug would print its own message and end the process
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
    return make_server(host, port, app.server, threaded=True)
