"""A molecule whose atoms and bonds show what they contribute, drawn by RDKit."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Ellipse, Patch, PathPatch
from matplotlib.path import Path
from torch import Tensor

from ..canvas import INK, Edge, Molecule, ScoresLike, edge_scores, molecule_canvas, node_scores, signed_colour
from .style import bare, centred, colour_bar, figure_of, ids, legend_lines, new_axes

if TYPE_CHECKING:
    from rdkit.Chem import Mol
    from torch_geometric.data import Data

DOTS = 100  # of RDKit's pixels per inch
_SVG = "{http://www.w3.org/2000/svg}"
_STEP = re.compile(r"([MLQZ])([^MLQZ]*)")
_CODES = {"M": (Path.MOVETO,), "L": (Path.LINETO,), "Q": (Path.CURVE3, Path.CURVE3), "Z": (Path.CLOSEPOLY,)}


def plot_molecule(
    scores: ScoresLike,
    smiles: str | None = None,
    *,
    mol: "Mol | None" = None,
    graph: "Data | None" = None,
    atoms: Sequence[str] | None = None,
    edges: Tensor | Mapping[Edge, float] | None = None,
    truth: Tensor | Iterable[int] | None = None,
    title: str | None = None,
    unit: str | None = None,
    classes: Sequence[str] | None = None,
    canvas: Molecule | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw signed scores on a molecule: red atoms and bonds raise the explained output, blue ones lower it.

    Args:
        scores: an explanation, or scores of atoms [N].
        smiles: the molecule, its atoms in the order of the text (scores may count all hydrogens, or none).
        mol: an RDKit molecule instead.
        graph: a graph of atoms instead, see `molecule_canvas`.
        atoms: what the columns of the graph's ``x`` mean, as ``xdegree.datasets.ATOMS``.
        edges: scores of bonds by pair of atoms, or [E] in the order of the graph's edges; of an explanation its own by
            default.
        truth: the atoms that should matter, ids or a mask [N]; drawn with a ring.
        title: above the picture.
        unit: what the scores are measured in, for the colour bar; by default what the explanation says.
        classes: names of the classes, for the legend; their numbers by default.
        canvas: a molecule that is laid out already, instead of the above.
        ax: where to draw; a new figure by default.

    Returns:
        The figure, never shown; lines and letters in it are vectors.
    """
    of_atoms = node_scores(scores)
    if canvas is None:
        canvas = molecule_canvas(smiles, mol=mol, graph=graph, atoms=atoms, num_nodes=len(of_atoms))
    if len(of_atoms) != len(canvas.places):
        raise ValueError(f"the molecule has {len(canvas.places)} atoms, but {len(of_atoms)} nodes were scored")
    of_bonds = edge_scores(scores, None if graph is None else graph.edge_index, edges)
    true = set() if truth is None else ids("truth", truth, len(of_atoms))
    norm = centred([*of_atoms, *of_bonds.values()])
    ax = new_axes(_inches(canvas)) if ax is None else ax
    bare(ax, title)
    draw_molecule(
        ax,
        canvas,
        {atom: signed_colour(score, norm.halfrange) for atom, score in enumerate(of_atoms)},
        {edge: signed_colour(score, norm.halfrange) for edge, score in of_bonds.items()},
    )
    for atom in sorted(true):
        ax.add_patch(Circle(canvas.places[atom], 13, fill=False, ec=INK, lw=1.6, zorder=4, gid=f"truth {atom}"))
    if true:
        key = Line2D([], [], ls="", marker="o", ms=9, mfc="white", mec=INK, mew=1.6, label="ground truth")
        ax.legend(handles=[key], loc="upper center", bbox_to_anchor=(0.5, 0), frameon=False, fontsize=9)
    colour_bar(ax, norm, *legend_lines(scores, unit, classes, canvas.node))
    return figure_of(ax)


def _inches(canvas: Molecule) -> tuple[float, float]:
    """RDKit's own size, within what fits a page, and room for the legend."""
    width, height = (side / DOTS for side in canvas.size)
    scale = min(1.6, 9 / max(width, height))
    return max(width * scale, 4.6), max(height * scale, 1.8) + 1.2


def draw_molecule(ax: Axes, canvas: Molecule, atoms: Mapping[int, str], bonds: Mapping[Edge, str]) -> None:
    """RDKit's drawing as patches of matplotlib: it stays sharp in SVG, and shares the axes with anything else."""
    height = canvas.size[1]
    points = DOTS  # a width of lines in RDKit's pixels, 72 points to the inch
    for number, element in enumerate(ElementTree.fromstring(canvas.svg(atoms, bonds))):  # noqa: S314
        patch = _patch(element, height)
        if patch is None:
            continue
        style = dict(part.split(":") for part in element.get("style", "").strip(" ;").split(";") if part)
        fill = style.get("fill") or element.get("fill") or "none"
        stroke = style.get("stroke", "none")
        width = float(style.get("stroke-width", "0").removesuffix("px")) * 72 / points
        patch.set(fc=fill, ec=stroke if width else "none", lw=width, gid=element.get("class"), zorder=1 + number / 1e4)
        ax.add_patch(patch)
    ax.set(xlim=(0, canvas.size[0]), ylim=(0, height))


def _patch(element: ElementTree.Element, height: float) -> Patch | None:
    """One shape of RDKit's SVG, whose y grows downwards; None for what is no shape."""
    if element.tag == f"{_SVG}ellipse":
        x, y, rx, ry = (float(element.get(name, "0")) for name in ("cx", "cy", "rx", "ry"))
        return Ellipse((x, height - y), 2 * rx, 2 * ry)
    if element.tag != f"{_SVG}path":
        return None
    vertices: list[tuple[float, float]] = []
    codes: list[int] = []
    for letter, numbers in _STEP.findall(element.get("d", "")):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        pairs = list(zip(values[::2], values[1::2], strict=True)) or [(0.0, height)]
        vertices += [(x, height - y) for x, y in pairs]
        codes += map(int, _CODES[letter])
    return PathPatch(Path(vertices, codes), snap=False)  # a letter that snaps to pixels may lose a stroke
