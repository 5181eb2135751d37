"""How the pages are built: ``make docs``. Nothing is loaded from the network, neither now nor by a reader's browser."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import xdegree

project = "xdegree"
author = "the xdegree authors"
release = version = xdegree.__version__
copyright = author  # noqa: A001
exclude_patterns = ["_build"]
nitpicky = True

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_heading_anchors = 3
default_role = "py:obj"  # docstrings put names into single backticks, linked where they are ours
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
# The names of other libraries are not looked up: that would need the network.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!xdegree\.).*"),
    # Inner types that show up in signatures and that users need not know.
    (r"py:class", r"xdegree\.model_call\.call\.ModelCall|xdegree\.locality\.\w+\.(PreparedCall|Place)"),
    (r"py:class", r"xdegree\.canvas\.overview\.Row|xdegree\.engine\.(sparse_rows\.\w+|portions\.(Messages|Alias))"),
    (r"py:class", r"xdegree(\.\w+)+\.[A-Z]"),
]

html_theme = "furo"
html_title = "xdegree"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style, pygments_dark_style = "friendly", "github-dark"
copybutton_exclude = ".linenos, .gp, .go"

WRITTEN = ("results", "defaults", "benchmarks")
"""Pages that a command writes: those that are not there are left out of the contents, and links to them are plain."""
if any(not (Path(__file__).parent / f"{page}.md").is_file() for page in WRITTEN):
    suppress_warnings = ["myst.xref_missing"]
PUBLIC = [
    "xdegree",
    *(f"xdegree.{name}" for name in ("datasets", "baselines", "canvas", "plots", "reports", "jobs", "experiments")),
]


def _public_names() -> dict[str, str]:
    """Where a name is defined, and how it is documented: ``xdegree.engine.options.Options`` is ``xdegree.Options``."""
    found: dict[str, str] = {}
    for module_name in PUBLIC:
        module = import_module(module_name)
        for name in module.__all__:
            thing = getattr(module, name)
            if hasattr(thing, "__module__") and hasattr(thing, "__qualname__"):
                found[f"{thing.__module__}.{thing.__qualname__}"] = f"{module_name}.{name}"
    return found


def _documented(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> Element | None:
    """Links of signatures lead to where a name is defined: lead them to where it is documented."""
    target = node.get("reftarget", "")
    names = app.config.xdegree_public_names
    domain = env.domains.python_domain
    for name in (names.get(target), f"xdegree.{target}"):
        if name in domain.objects:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    return None


_AS_WRITTEN: dict[str, list[str]] = {}
_ATTRIBUTES = ("attribute", "data", "property")


def _remember(_app: Sphinx, what: str, name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    if what in _ATTRIBUTES:
        _AS_WRITTEN[name] = list(lines)


def _docstring(_app: Sphinx, what: str, name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Our docstrings are plain text with a little Markdown: |γ| is no substitution, a fence is a block of code."""
    # Napoleon takes what comes before a colon in the text of an attribute for its type.
    text = "\n".join(_AS_WRITTEN.get(name, lines) if what in _ATTRIBUTES else lines)
    text = re.sub(
        r"```python\n(.*?)```", lambda m: ".. code-block:: python\n\n" + _indented(m[1]), text, flags=re.DOTALL
    )
    parts = re.split(r"(``.*?``)", text, flags=re.DOTALL)
    lines[:] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts).splitlines()


def _indented(code: str) -> str:
    return "".join(f"   {line}\n" if line else "\n" for line in code.splitlines())


def _page(app: Sphinx, name: str, text: list[str]) -> None:
    """Links that lead out of this folder, as a reader of the repository needs them, lead to the pages here."""
    text[0] = text[0].replace("(../CONTRIBUTING.md", "(contributing.md")
    if name == "index":
        for page in WRITTEN:
            if not (app.srcdir / f"{page}.md").is_file():
                text[0] = text[0].replace(f"\n{page}\n", "\n")


def setup(app: Sphinx) -> None:
    app.add_config_value("xdegree_public_names", _public_names(), "env")
    app.connect("missing-reference", _documented)
    app.connect("autodoc-process-docstring", _remember, priority=100)
    app.connect("autodoc-process-docstring", _docstring, priority=900)
    app.connect("source-read", _page)
