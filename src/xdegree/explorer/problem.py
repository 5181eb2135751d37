"""What the page says when something cannot be done, and the limits that keep it answering at once."""

MAX_UPLOAD = 1_000_000
"""Bytes of a graph file."""
MAX_SMILES = 500
"""Letters of a SMILES."""
MAX_SENTENCE = 600
"""Letters of a sentence."""
MAX_NODES = 1_000
"""Nodes of a graph that a user uploads; a model's own graph may be larger, as only a neighborhood is drawn."""
MAX_EDGES = 10_000
MAX_CHOICES = 5_000
"""Predictions that the list offers."""
MAX_NAME = 60
"""Letters of a node's name that are shown."""


class Problem(ValueError):
    """Something the reader of the page can mend; the message says what was given, and what is expected."""
