"""Where views draw: places of nodes, paths of edges, colours of scores. Pictures, reports and pages share them.

Nothing here needs matplotlib; laying out a graph needs networkx, a molecule RDKit.
"""

from .base import Canvas, Edge, edge_of, graph_title, node_names
from .colours import GREY, INK, NOTHING, SIGNED, is_dark, signed_colour, text_on
from .graph import explained_graph, graph_canvas, neighborhood, part_line
from .molecule import Molecule, molecule_canvas
from .overview import Occurrence, Overview, functional_groups, overview
from .scores import (
    ScoresLike,
    described,
    edge_scores,
    explained_node,
    largest,
    level_colours,
    node_scores,
    signed_text,
)
from .sentence import Sentence, sentence_canvas
from .wording import (
    Account,
    account,
    account_line,
    alike,
    open_line,
    output_name,
    scale_of,
    shares_of,
    signs_line,
    unit_of,
)

__all__ = [
    "Canvas",
    "Molecule",
    "Sentence",
    "graph_canvas",
    "explained_graph",
    "neighborhood",
    "part_line",
    "node_names",
    "graph_title",
    "molecule_canvas",
    "sentence_canvas",
    "overview",
    "Overview",
    "Occurrence",
    "functional_groups",
    "ScoresLike",
    "node_scores",
    "edge_scores",
    "Account",
    "account",
    "account_line",
    "alike",
    "open_line",
    "output_name",
    "scale_of",
    "shares_of",
    "signs_line",
    "unit_of",
    "described",
    "explained_node",
    "level_colours",
    "largest",
    "signed_text",
    "Edge",
    "edge_of",
    "SIGNED",
    "INK",
    "GREY",
    "NOTHING",
    "signed_colour",
    "is_dark",
    "text_on",
]
