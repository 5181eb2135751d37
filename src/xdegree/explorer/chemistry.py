"""SMILES as the molecule models read molecules: every atom a node, hydrogens too, one-hot over the known elements."""

from collections.abc import Sequence

import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from .problem import MAX_NODES, Problem


def molecule_of(smiles: str, atoms: Sequence[str]) -> Data:
    """The graph of a SMILES: ``x`` [N, atoms], ``edge_index``, and ``bond`` [E] with the bond orders.

    Args:
        smiles: text that a stranger may have typed; what RDKit cannot read is a `Problem`.
        atoms: the elements that the model knows, in the order of its features.
    """
    try:
        from rdkit import Chem
        from rdkit.rdBase import BlockLogs
    except ModuleNotFoundError:
        raise Problem('Reading SMILES needs RDKit: pip install "xdegree[chem]".') from None
    with BlockLogs():  # the problem below says it; RDKit would print to the terminal as well
        mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        raise Problem(f"RDKit cannot read {smiles!r} as a SMILES: check brackets, ring numbers and valences.")
    mol = Chem.AddHs(mol)
    if not 0 < mol.GetNumAtoms() <= MAX_NODES:
        raise Problem(f"The molecule has {mol.GetNumAtoms()} atoms; the page takes 1 to {MAX_NODES:,}.")
    unknown = sorted({atom.GetSymbol() for atom in mol.GetAtoms()} - set(atoms))
    if unknown:
        raise Problem(f"The model has never seen {', '.join(unknown)}: it knows {', '.join(atoms)}.")
    Chem.Kekulize(mol, clearAromaticFlags=True)
    kinds = torch.tensor([atoms.index(atom.GetSymbol()) for atom in mol.GetAtoms()])
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), int(b.GetBondTypeAsDouble())) for b in mol.GetBonds()]
    ends = torch.tensor([bond[:2] for bond in bonds], dtype=torch.long).reshape(-1, 2).t()
    order = torch.tensor([bond[2] for bond in bonds], dtype=torch.long)
    return Data(
        x=one_hot(kinds, len(atoms)).float(),
        edge_index=torch.cat([ends, ends.flip(0)], 1),
        bond=torch.cat([order, order]),
    )
