"""SMILES as the molecule models read molecules: every atom a node, hydrogens too, one-hot over the known elements."""

from collections.abc import Sequence

import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from .mutagenicity import ATOMS


def molecule_of(smiles: str, atoms: Sequence[str] = ATOMS) -> Data:
    """The graph of a SMILES: ``x`` [N, atoms], ``edge_index`` [2, E] both ways, ``bond`` [E] with the bond orders.

    Atoms are numbered as in the SMILES; hydrogens that it does not spell out come last.

    Args:
        smiles: what RDKit reads (needs ``xdegree[chem]``).
        atoms: the elements that the model knows, in the order of its features; by default those of Mutagenicity.
    """
    try:
        from rdkit import Chem
        from rdkit.rdBase import BlockLogs
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('Reading SMILES needs RDKit: pip install "xdegree[chem]".', name="rdkit") from error
    with BlockLogs():  # the error below says it; RDKit would print to the terminal as well
        mol = Chem.MolFromSmiles(smiles) if isinstance(smiles, str) else None
    if mol is None or not mol.GetNumAtoms():
        raise ValueError(f"RDKit cannot read {smiles!r} as a SMILES: check brackets, ring numbers and valences.")
    mol = Chem.AddHs(mol)
    unknown = sorted({atom.GetSymbol() for atom in mol.GetAtoms()} - set(atoms))
    if unknown:
        raise ValueError(f"The model has never seen {', '.join(unknown)}: it knows {', '.join(atoms)}.")
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
