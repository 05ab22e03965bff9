"""Trees on descriptors: what a chemist would use without a network, and a part of what tables are blended of."""

from lspe.forest.forest import KINDS, Forest

__all__ = ["KINDS", "Forest"]
