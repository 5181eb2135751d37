"""One explanation as one HTML file that opens anywhere, without a network."""

try:
    from .report import HtmlReport, report
except ModuleNotFoundError as error:
    message = f'xdegree.reports needs {error.name}: pip install "xdegree[report]"'
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["report", "HtmlReport"]
