"""The rules, one file per family. Importing this package registers them all."""

from . import activation, aggregation, grid, linear, normalisation, shape, statistics

__all__ = [
    "activation",
    "aggregation",
    "grid",
    "linear",
    "normalisation",
    "shape",
    "statistics",
]
