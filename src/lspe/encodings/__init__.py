"""Positional encodings: what a node's position is before learning.

Each takes one graph or a whole batch of graphs in one call, from a single node to ten thousand and more.
"""

from lspe.encodings.diffusion import diffusion_kernel
from lspe.encodings.distinct import kinds_by_column, uniqueness
from lspe.encodings.estimate import Estimate, estimate_random_walk_encoding
from lspe.encodings.laplacian import LaplacianEigen, laplacian_encoding, random_signs
from lspe.encodings.random_walk import random_walk_encoding
from lspe.encodings.transforms import LaplacianEncoding, RandomWalkEncoding

__all__ = [
    "Estimate",
    "LaplacianEigen",
    "LaplacianEncoding",
    "RandomWalkEncoding",
    "diffusion_kernel",
    "estimate_random_walk_encoding",
    "kinds_by_column",
    "laplacian_encoding",
    "random_signs",
    "random_walk_encoding",
    "uniqueness",
]
