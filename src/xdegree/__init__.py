"""Explain graph neural networks by decomposition: what any group of nodes contributes, for any PyG model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attribution.check import Report, check
    from .attribution.decompose import decompose
    from .attribution.decomposition import Decomposition
    from .attribution.explain import explain
    from .attribution.explainer import DegreeExplainer
    from .auditing import Audit, audit
    from .engine.options import Contexts, Options
    from .engine.portions import LostPortionsError, Portions
    from .engine.registry import Call, MissingRuleError, rule
    from .locality.prepared import StaleError
    from .prepared import Prepared, prepare
    from .results.explanation import Explanation
    from .results.explanations import Explanations
    from .results.hetero import HeteroExplanation
    from .results.subgraph import Subgraph
    from .results.tree import ExplanationTree
    from .subgraphs.agglomerate import agglomerate, agglomerate_levels
    from .subgraphs.contextual import contextual_scores
    from .subgraphs.interactions import interaction
    from .subgraphs.pick import pick_subgraph

__version__ = "0.1.0"

_HOMES = {
    "attribution.check": ("Report", "check"),
    "attribution.decompose": ("decompose",),
    "attribution.decomposition": ("Decomposition",),
    "attribution.explain": ("explain",),
    "attribution.explainer": ("DegreeExplainer",),
    "auditing": ("Audit", "audit"),
    "engine.options": ("Contexts", "Options"),
    "engine.portions": ("LostPortionsError", "Portions"),
    "engine.registry": ("Call", "MissingRuleError", "rule"),
    "locality.prepared": ("StaleError",),
    "prepared": ("Prepared", "prepare"),
    "results.explanation": ("Explanation",),
    "results.explanations": ("Explanations",),
    "results.hetero": ("HeteroExplanation",),
    "results.subgraph": ("Subgraph",),
    "results.tree": ("ExplanationTree",),
    "subgraphs.agglomerate": ("agglomerate", "agglomerate_levels"),
    "subgraphs.contextual": ("contextual_scores",),
    "subgraphs.interactions": ("interaction",),
    "subgraphs.pick": ("pick_subgraph",),
}
"""The public names by the module that they come from."""

__all__ = [
    "Audit",
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
    "Prepared",
    "Report",
    "StaleError",
    "Subgraph",
    "agglomerate",
    "agglomerate_levels",
    "audit",
    "check",
    "contextual_scores",
    "decompose",
    "explain",
    "interaction",
    "pick_subgraph",
    "prepare",
    "rule",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use: importing PyTorch takes seconds, and `xdegree --help` does not need it."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
