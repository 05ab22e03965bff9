"""Positional encodings: what a node's position is before learning.

Each takes one graph or a whole batch of graphs in one call, from a single node to ten thousand and more.

The names are loaded on first use: the command line needs the kinds and not PyTorch.
"""

from typing import TYPE_CHECKING

from lspe._lazy import names_on_use

if TYPE_CHECKING:
    from lspe.encodings.by_kind import encode
    from lspe.encodings.diffusion import diffusion_kernel
    from lspe.encodings.distinct import kinds_by_column, uniqueness
    from lspe.encodings.estimate import Estimate, estimate_random_walk_encoding
    from lspe.encodings.kinds import ENCODING_ATTRIBUTE, EncodingKind, OptionalEncodingKind, check_encoding
    from lspe.encodings.laplacian import LaplacianEigen, laplacian_encoding, random_signs
    from lspe.encodings.random_walk import random_walk_encoding
    from lspe.encodings.transforms import LaplacianEncoding, RandomWalkEncoding

_HOME = {
    "ENCODING_ATTRIBUTE": ".kinds",
    "EncodingKind": ".kinds",
    "Estimate": ".estimate",
    "LaplacianEigen": ".laplacian",
    "LaplacianEncoding": ".transforms",
    "OptionalEncodingKind": ".kinds",
    "RandomWalkEncoding": ".transforms",
    "check_encoding": ".kinds",
    "diffusion_kernel": ".diffusion",
    "encode": ".by_kind",
    "estimate_random_walk_encoding": ".estimate",
    "kinds_by_column": ".distinct",
    "laplacian_encoding": ".laplacian",
    "random_signs": ".laplacian",
    "random_walk_encoding": ".random_walk",
    "uniqueness": ".distinct",
}

__all__ = [
    "ENCODING_ATTRIBUTE",
    "EncodingKind",
    "Estimate",
    "LaplacianEigen",
    "LaplacianEncoding",
    "OptionalEncodingKind",
    "RandomWalkEncoding",
    "check_encoding",
    "diffusion_kernel",
    "encode",
    "estimate_random_walk_encoding",
    "kinds_by_column",
    "laplacian_encoding",
    "random_signs",
    "random_walk_encoding",
    "uniqueness",
]

__getattr__, __dir__ = names_on_use(__name__, _HOME)
