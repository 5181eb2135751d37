"""Explain graph neural networks by decomposition: what any group of nodes contributes, for any PyG model."""

from .agglomerate import agglomerate, agglomerate_levels
from .check import Report, check
from .contextual import Contexts, contextual_scores, interaction
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
