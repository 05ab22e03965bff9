"""The words of encodings: which kinds there are, and what they are called on a graph."""

from typing import Literal

from lspe.errors import UserError

EncodingKind = Literal["rwpe", "lappe"]
"""Random walk (RWPE) or Laplacian (LapPE) positional encoding."""

OptionalEncodingKind = Literal["none", "rwpe", "lappe"]
"""What a network takes: one of the kinds, or none."""

ENCODING_ATTRIBUTE: dict[str, str] = {"rwpe": "random_walk_pe", "lappe": "laplacian_eigenvector_pe"}
"""The attribute of a ``Data`` that holds each kind; PyG's names."""


def check_encoding(kind: str, k: int) -> None:
    """Refuse a kind that does not exist and an encoding without columns."""
    if kind not in ENCODING_ATTRIBUTE:
        raise UserError(f"there is no encoding {kind!r}; use 'rwpe' (random walk) or 'lappe' (Laplacian)")
    if k < 1:
        raise UserError(f"an encoding needs at least one column, not k = {k}")
