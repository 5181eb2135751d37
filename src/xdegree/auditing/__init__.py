"""How far scores can be trusted on a user's own model: what the model does when what they name is taken away."""

from .result import Audit, Measures, MethodAudit
from .run import audit

__all__ = ["Audit", "Measures", "MethodAudit", "audit"]
