"""One explanation, or many, as one HTML file that opens anywhere, without a network."""

try:
    from .many import report_many
    from .report import HtmlReport, report
except ModuleNotFoundError as error:
    message = f'xdegree.reports needs {error.name}: pip install "xdegree[report]"'
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["report", "report_many", "HtmlReport"]
