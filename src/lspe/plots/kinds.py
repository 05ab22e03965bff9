"""Which nodes an encoding tells apart, one column more at a time."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.encodings.distinct import _split_by_value


@torch.no_grad()
def kinds_by_column(encoding: Tensor, *, digits: int = 6) -> NDArray[np.int64]:
    r"""The kind of each node after 1, 2, … k columns of the encoding: nodes of one kind agree in all of them.

    Two values are the same where :func:`lspe.encodings.uniqueness` says so. Kinds are numbered from 0 in the order
    of their encodings, so a kind that splits becomes neighbouring ones.

    Shapes:
        - **encoding:** :math:`[N, k]`
        - **output:** :math:`[k, N]`
    """
    kind = torch.zeros(encoding.size(0), dtype=torch.long)
    kinds = []
    for column in encoding.detach().cpu().double().unbind(1):
        kind = _split_by_value(kind, column, gap=10.0**-digits)
        kinds.append(kind)
    return torch.stack(kinds).numpy()
