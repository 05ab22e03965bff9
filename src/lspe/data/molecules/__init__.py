"""From SMILES to graphs."""
