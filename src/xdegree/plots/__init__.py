"""Pictures of results. They return the figure, never show it, and work without a display."""

try:
    from .graph import plot_graph
except ModuleNotFoundError as error:
    message = f'xdegree.plots needs {error.name}: pip install "xdegree[plot]"'
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["plot_graph"]
