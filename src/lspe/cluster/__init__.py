"""Tables larger than one machine: divided into parts that the processes of a cluster work on, by Ray Data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
