"""Positional encodings: what a node's position is before learning.

Each takes one graph or a whole batch of graphs in one call, from a single node to ten thousand and more.

The names are loaded on first use: the command line needs the kinds and not PyTorch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
