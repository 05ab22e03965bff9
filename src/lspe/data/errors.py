"""The one error that bad data gives."""

from lspe.errors import UserError


class DataError(UserError):
    """Input that cannot be used. The message names the file, the place in it, the value, and what to do."""


class MoleculeError(DataError):
    """A SMILES that gives no usable molecule, with the `reason` as it follows the SMILES in a sentence."""

    def __init__(self, smiles: str, reason: str) -> None:
        super().__init__(f"{smiles!r} {reason}")
        self.reason = reason


class CorruptFileError(DataError):
    """A packed file that is truncated, altered, or not a packed file at all."""
