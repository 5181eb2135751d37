"""Explain graph neural networks by decomposition: what any group of nodes contributes, for any PyG model."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agglomerate import agglomerate, agglomerate_levels
    from .check import Report, check
    from .contexts import Contexts
    from .contextual import contextual_scores, interaction
    from .decompose import Decomposition, decompose
    from .explain import explain
    from .explainer import DegreeExplainer
    from .explanation import Explanation, Explanations, HeteroExplanation
    from .options import Options
    from .pick import Subgraph, pick_subgraph
    from .portions import LostPortionsError, Portions
    from .registry import Call, MissingRuleError, rule
    from .tree import ExplanationTree

__version__ = "0.1.0"

__all__ = [
    "Call",
    "Contexts",
    "Decomposition",
    "DegreeExplainer",
    "Explanation",
    "ExplanationTree",
    "Explanations",
    "HeteroExplanation",
    "LostPortionsError",
    "MissingRuleError",
    "Options",
    "Portions",
    "Report",
    "Subgraph",
    "agglomerate",
    "agglomerate_levels",
    "check",
    "contextual_scores",
    "decompose",
    "explain",
    "interaction",
    "pick_subgraph",
    "rule",
]

_HOMES = (
    "agglomerate",
    "check",
    "contexts",
    "contextual",
    "decompose",
    "explain",
    "explainer",
    "explanation",
    "options",
    "pick",
    "portions",
    "registry",
    "tree",
)
"""The modules that the public names come from."""


def __getattr__(name: str) -> Any:
    """Load everything at the first use of a public name: importing PyTorch takes seconds, `xdegree --help` must not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for home in _HOMES:
        module = import_module(f".{home}", __name__)
        globals().update({one: vars(module)[one] for one in __all__ if one in vars(module)})
    return globals()[name]


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Where a file and a function in it have the same name, `xdegree.check` is the function, whoever loads the file."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):  # the import system hangs files into their package
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
