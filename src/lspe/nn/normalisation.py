"""What may stand in a layer instead of BatchNorm."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from lspe.errors import UserError
from lspe.nn.norm import BatchNorm

Normalisation = Literal["batch", "layer", "none"]


class RowNorm(nn.Module):
    r"""Called as :class:`~lspe.nn.BatchNorm` is, and no row depends on another.

    .. math:: y = r + \mathrm{ReLU}(\mathrm{norm}(s x))

    Args:
        norm: of single rows, ``[rows, d]`` → ``[rows, d]``.

    """

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(
        self, x: Tensor, *, scale: Tensor | None = None, relu: bool = False, residual: Tensor | None = None
    ) -> Tensor:
        y = self.norm(x if scale is None else x * scale)
        y = torch.relu(y) if relu else y
        return y if residual is None else residual + y

    def is_ordinary(self) -> bool:
        """Whether a layer may compute it in one with other things: those know BatchNorm only."""
        return False


def normalise_by(kind: Normalisation, network: nn.Module) -> None:
    """Let each BatchNorm of our layers in ``network`` be another normalisation.

    ``layer``: each row to mean 0 and variance 1 over its columns (``nn.LayerNorm``). ``none``: the row as it is.
    """
    if kind not in get_args(Normalisation):
        raise ValueError(f"normalisation {kind!r} is not one of {', '.join(get_args(Normalisation))}")
    if kind == "batch":
        return
    places = [
        (module, name, child.num_features)
        for module in network.modules()
        for name, child in module.named_children()
        if isinstance(child, BatchNorm)
    ]
    if not places:
        raise UserError(f"there is no lspe.nn.BatchNorm in these layers that norm={kind} could replace: leave it out")
    for module, name, width in places:
        setattr(module, name, RowNorm(nn.LayerNorm(width) if kind == "layer" else nn.Identity()))
