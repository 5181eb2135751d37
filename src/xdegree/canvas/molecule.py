"""A molecule: RDKit finds the places and draws the bonds, scores become highlights of atoms and bonds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from .base import Canvas, Colours, Edge, EdgeColours, edge_of
from .colours import GREY, is_dark

if TYPE_CHECKING:
    from rdkit.Chem import Mol
    from torch_geometric.data import Data

BOND = 42.0  # pixels of a bond, which is 1.5 long in the units of RDKit's places
MARGIN = 0.9  # around the outermost atoms, in those units: room for a highlight, and for letters such as NH2
_RING = re.compile(r"(<ellipse [^>]*stroke:)#\w{6}")
_BOND_ORDERS = ("SINGLE", "DOUBLE", "TRIPLE")


@dataclass(frozen=True)
class Molecule(Canvas):
    """A canvas that RDKit draws on; its unit is the pixel of that drawing."""

    mol: "Mol"
    """With its places in a plane; not changed."""
    size: tuple[int, int]

    kind: ClassVar[str] = "molecule"
    node: ClassVar[str] = "atom"

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The whole drawing."""
        return 0.0, 0.0, float(self.size[0]), float(self.size[1])

    def svg(self, nodes: Colours, edges: EdgeColours) -> str:
        """RDKit's drawing with highlighted atoms and bonds; letters on dark highlights are white.

        Highlighted atoms have a thin ring, so that a small score is told from none.
        """
        drawer = _drawer(self.mol, self.size)
        bonds = {edge_of(b.GetBeginAtomIdx(), b.GetEndAtomIdx()): b.GetIdx() for b in self.mol.GetBonds()}
        coloured = {bonds[edge]: _rgb(colour) for edge, colour in edges.items() if edge in bonds}
        drawer.DrawMolecule(
            self.mol,
            highlightAtoms=sorted(nodes),
            highlightAtomColors={atom: _rgb(colour) for atom, colour in nodes.items()},
            highlightBonds=sorted(coloured),
            highlightBondColors=coloured,
        )
        drawer.FinishDrawing()
        dark = "|".join(str(atom) for atom, colour in nodes.items() if is_dark(colour))
        letters = re.compile(rf"(<path class='atom-(?:{dark})' [^>]*)fill='#000000'")
        text: str = _RING.sub(rf"\1{GREY}", drawer.GetDrawingText())
        return letters.sub(r"\1fill='#FFFFFF'", text) if dark else text


def molecule_canvas(
    smiles: str | None = None,
    *,
    mol: "Mol | None" = None,
    graph: "Data | None" = None,
    atoms: Sequence[str] | None = None,
    num_nodes: int | None = None,
) -> Molecule:
    """Lay out a molecule, given as one of three.

    Args:
        smiles: its nodes are the atoms in the order of the text.
        mol: an RDKit molecule.
        graph: a PyG graph whose ``x`` is one-hot over `atoms`. Bond orders are read from ``bond`` [E] (1, 2, 3) or a
            one-hot ``edge_attr`` [E, 3]; without either all bonds are drawn single.
        atoms: with `graph`: what the columns of ``x`` mean, as ``xdegree.datasets.ATOMS`` those of Mutagenicity.
        num_nodes: how many nodes were scored: if these are the atoms with all hydrogens, hydrogens are drawn.
    """
    chem = _chem()
    if sum(given is not None for given in (smiles, mol, graph)) != 1:
        raise ValueError("give one of smiles, mol and graph")
    if graph is not None:
        if atoms is None:
            raise ValueError(
                'say what the columns of graph.x mean: atoms=("C", "O", …); xdegree.datasets.ATOMS is Mutagenicity\'s'
            )
        drawn = _from_graph(graph, atoms)
    else:
        drawn = mol_of(smiles, num_nodes) if smiles is not None else _with_nodes(chem.Mol(mol), num_nodes)
    if drawn.GetNumAtoms() == 0:
        raise ValueError("the molecule has no atoms: there is nothing to show")
    return _laid_out(drawn)


def _chem() -> Any:
    try:
        from rdkit import Chem
    except ModuleNotFoundError as error:
        message = 'drawing molecules needs rdkit: pip install "xdegree[chem]"'
        raise ModuleNotFoundError(message, name="rdkit") from error
    return Chem


def mol_of(smiles: str, num_nodes: int | None = None) -> "Mol":
    """The molecule of a SMILES, with all hydrogens if so many nodes say that they are nodes too."""
    return _with_nodes(_from_smiles(smiles), num_nodes)


def _from_smiles(smiles: str) -> "Mol":
    from rdkit.rdBase import BlockLogs

    with BlockLogs():  # the error below says it; RDKit would print to the terminal as well
        mol = _chem().MolFromSmiles(smiles)
    if mol is None:
        raise ValueError(f"this is no SMILES that RDKit can read: {smiles!r}")
    return mol


def _with_nodes(mol: "Mol", num_nodes: int | None) -> "Mol":
    chem = _chem()
    heavy = mol.GetNumAtoms()
    if num_nodes is None or num_nodes == heavy:
        return mol
    full = chem.AddHs(mol)
    if full.GetNumAtoms() != num_nodes:
        raise ValueError(
            f"the molecule has {heavy} atoms, {full.GetNumAtoms()} with all hydrogens,"
            f" but {num_nodes} nodes were scored"
        )
    return full


def _from_graph(graph: "Data", atoms: Sequence[str]) -> "Mol":
    """A molecule of the graph as it is: nothing is added, and nothing refused for its valences."""
    chem = _chem()
    if graph.x is None or graph.x.dim() != 2 or graph.x.shape[1] < len(atoms):
        raise ValueError(f"graph.x must be one-hot over the {len(atoms)} atoms {tuple(atoms)}")
    mol = chem.RWMol()
    for kind in graph.x[:, : len(atoms)].argmax(1).tolist():
        atom = chem.Atom(atoms[kind])
        atom.SetNoImplicit(True)  # all hydrogens there are are nodes
        mol.AddAtom(atom)
    orders = _orders(graph)
    for (u, v), order in orders.items():
        mol.AddBond(u, v, getattr(chem.BondType, _BOND_ORDERS[order - 1]))
    for atom in mol.GetAtoms():
        _charge(atom)
    mol.UpdatePropertyCache(strict=False)
    chem.FastFindRings(mol)
    return mol.GetMol()


def _orders(graph: "Data") -> dict[Edge, int]:
    edge_attr: Tensor | None = graph.edge_attr
    if "bond" in graph:
        order = graph.bond.tolist()
    elif edge_attr is not None and edge_attr.dim() == 2 and edge_attr.shape[1] == len(_BOND_ORDERS):
        order = (edge_attr.argmax(1) + 1).tolist()
    else:
        order = [1] * graph.edge_index.shape[1]
    ends = graph.edge_index.T.tolist()
    return {edge_of(u, v): min(max(int(n), 1), 3) for (u, v), n in zip(ends, order, strict=True) if u != v}


def _charge(atom: Any) -> None:
    """The charges that a graph with all its hydrogens implies, as of a nitro group; the graphs do not store any."""
    order = sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds())
    if atom.GetSymbol() == "N" and order == 4:
        atom.SetFormalCharge(1)
    if atom.GetSymbol() == "O" and order == 1 and any(n.GetSymbol() == "N" for n in atom.GetNeighbors()):
        atom.SetFormalCharge(-1)


def _laid_out(mol: "Mol") -> Molecule:
    from rdkit.Chem.Draw import rdMolDraw2D
    from rdkit.Chem.rdDepictor import Compute2DCoords

    drawn = _chem().Mol(mol)
    if not drawn.GetNumConformers() or drawn.GetConformer().Is3D():
        Compute2DCoords(drawn, canonOrient=True)
    drawn = rdMolDraw2D.PrepareMolForDrawing(drawn, kekulize=_kekule(drawn), addChiralHs=False, forceCoords=False)
    xy = drawn.GetConformer().GetPositions()[:, :2]
    width, height = ((xy.max(0) - xy.min(0) + 2 * MARGIN) * BOND / 1.5).round().astype(int).tolist()
    drawer = _drawer(drawn, (width, height))
    drawer.DrawMolecule(drawn)
    points = [drawer.GetDrawCoords(i) for i in range(drawn.GetNumAtoms())]
    places = {i: (point.x, height - point.y) for i, point in enumerate(points)}
    edges = [edge_of(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in drawn.GetBonds()]
    return Molecule(
        places,
        {(u, v): ((places[u], places[v]),) for u, v in edges},
        {i: f"{atom.GetSymbol()} {i}" for i, atom in enumerate(drawn.GetAtoms())},
        mol=drawn,
        size=(width, height),
    )


def _kekule(mol: "Mol") -> bool:
    """Whether the molecule can be drawn with alternating bonds: one that was never checked may not."""
    return any(atom.GetIsAromatic() for atom in mol.GetAtoms())


def _drawer(mol: "Mol", size: tuple[int, int]) -> Any:
    """A drawer whose scale is set: left to itself, it makes room for highlights, and atoms leave their places."""
    from rdkit.Chem.Draw import rdMolDraw2D
    from rdkit.Geometry import Point2D

    drawer = rdMolDraw2D.MolDraw2DSVG(*size)
    options: Any = drawer.drawOptions()
    options.useBWAtomPalette()  # colour means contribution, and nothing else
    options.clearBackground = False
    options.prepareMolsBeforeDrawing = False
    options.highlightRadius = 0.36
    options.highlightBondWidthMultiplier = 14
    options.bondLineWidth = 1.5
    options.padding = 0.0
    xy = mol.GetConformer().GetPositions()[:, :2]
    drawer.SetScale(*size, Point2D(*(xy.min(0) - MARGIN)), Point2D(*(xy.max(0) + MARGIN)))
    return drawer


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[c : c + 2], 16) / 255 for c in (1, 3, 5))
    return red, green, blue
