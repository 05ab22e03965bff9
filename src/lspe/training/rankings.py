r"""How high joined pairs of nodes stand among those that are not: the scores of links, as OGB defines them.

Every joined pair is ranked among all unjoined ones of its part, which all joined ones share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor


def mean_reciprocal_rank(output: Tensor, y: Tensor) -> float:
    r"""The mean of :math:`1 / r` over the joined pairs; among equal scores a pair stands in the middle.

    .. math::
        r = 1 + \tfrac{1}{2}\big(|\{u : s_u > s\}| + |\{u : s_u \ge s\}|\big), \qquad u \text{ unjoined}
    """
    joined, unjoined = output[y == 1], output[y == 0].sort().values
    if not len(joined) or not len(unjoined):
        return float("nan")
    above = len(unjoined) - torch.searchsorted(unjoined, joined, right=True)
    not_below = len(unjoined) - torch.searchsorted(unjoined, joined, right=False)
    return float((1 / (1 + (above + not_below) / 2)).double().mean())


def hits(output: Tensor, y: Tensor, *, k: int) -> float:
    """The share of joined pairs above the k-th best unjoined one; 1 where there are fewer than k of these."""
    joined, unjoined = output[y == 1], output[y == 0]
    if not len(joined) or not len(unjoined):
        return float("nan")
    if len(unjoined) < k:
        return 1.0
    return float((joined > unjoined.topk(k).values[-1]).double().mean())


RANKINGS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "mrr": mean_reciprocal_rank,
    **{f"hits@{k}": partial(hits, k=k) for k in (20, 50, 100)},
}
