"""Explain graph neural networks by decomposition: what any group of nodes contributes, for any PyG model."""

from .check import Report, check
from .decompose import Decomposition, decompose
from .explain import explain
from .explainer import DegreeExplainer
from .explanation import Explanation, HeteroExplanation
from .options import Options
from .portions import LostPortionsError, Portions
from .registry import Call, MissingRuleError, rule

__version__ = "0.1.0.dev0"

__all__ = [
    "Call",
    "Decomposition",
    "DegreeExplainer",
    "Explanation",
    "HeteroExplanation",
    "LostPortionsError",
    "MissingRuleError",
    "Options",
    "Portions",
    "Report",
    "check",
    "decompose",
    "explain",
    "rule",
]
