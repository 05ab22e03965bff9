"""The one error that bad data gives."""

from lspe.errors import UserError

_SHOWN = 80


class DataError(UserError):
    """Input that cannot be used. The message names the file, the place in it, the value, and what to do."""


class MoleculeError(DataError):
    """A SMILES that gives no usable molecule, with the `reason` as it follows the SMILES in a sentence."""

    def __init__(self, smiles: str, reason: str) -> None:
        super().__init__(f"{shown(smiles)} {reason}")
        self.reason = reason


class CorruptFileError(DataError):
    """A packed file that is truncated, altered, or not a packed file at all."""


def shown(value: object) -> str:
    """A value as messages show it: a text in quotes, and of a long one the beginning."""
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}…"
    return repr(value)
