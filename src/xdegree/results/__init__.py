"""What an explanation is: frozen, with its settings, and able to save and show itself."""

from .explanation import Explanation
from .explanations import Explanations
from .hetero import HeteroExplanation

__all__ = ["Explanation", "Explanations", "HeteroExplanation"]
