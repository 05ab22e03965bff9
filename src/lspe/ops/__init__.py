"""Operators that the layers are made of, and the choice between fused ones in C and plain PyTorch.

What is fused, and why, on a CPU:

- GatedGCN's convolution, PNA's aggregation, attention over all pairs: PyTorch would write every edge's message to
  memory and read it again, several times, in both directions.
- Maps of the features of edges: of each different row once.
- Normalisation with scaling, activation and residual; tanh with residual: one pass over the numbers instead of four.
- Dropout: PyTorch draws its numbers one by one.
- From nodes to a prediction per graph, sums of embeddings, a step of Adam: with small batches PyTorch's thirty
  operators cost more than their arithmetic.
- The return probabilities of many small graphs, and the order of a batch's edges.

The layers in :mod:`lspe.nn` have the same arithmetic in plain PyTorch; :mod:`lspe.ops.fused` has all that is about C.
"""

from lspe.ops.choice import choose, chosen, fusible, is_unchanged, status, use
from lspe.ops.edges import Edges
from lspe.ops.elementwise import dropout, tanh_residual
from lspe.ops.pairs import Pairs
from lspe.ops.scatter import scatter_max, scatter_min, scatter_sum

__all__ = [
    "Edges",
    "Pairs",
    "choose",
    "chosen",
    "dropout",
    "fusible",
    "is_unchanged",
    "scatter_max",
    "scatter_min",
    "scatter_sum",
    "status",
    "tanh_residual",
    "use",
]
