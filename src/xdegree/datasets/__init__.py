"""Graphs with a known reason: every dataset carries the ground truth of its labels."""

from .synthetic import ba_shapes

__all__ = ["ba_shapes"]
