"""What an explanation is: frozen, with its settings, and able to save and show itself."""

from .hetero import HeteroExplanation
from .many import Explanations
from .one import Explanation

__all__ = ["Explanation", "Explanations", "HeteroExplanation"]
