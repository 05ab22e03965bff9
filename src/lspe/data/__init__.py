"""From files to batches: benchmarks by name, a person's own table, one packed format for all.

The names are loaded on first use: worker processes that turn molecules into graphs need neither PyTorch
nor pandas.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
