"""A local page where one clicks on nodes, atoms and words, and reads what they contribute: ``xdegree explorer``.

All computation is in `answers` and all that can be chosen in `catalogue`; both know nothing of the page.
"""

try:
    from .app import make_app, server
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] == "xdegree":
        raise
    message = f'xdegree.explorer needs {error.name}: pip install "xdegree[explorer]"'
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["make_app", "server"]
