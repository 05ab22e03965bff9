"""Numbers of a graph as a whole, beside what is read out of its nodes."""

import torch
from torch import Tensor, nn

LARGEST = 5.0
"""In standard deviations: what lies beyond is as unusual as can be."""


class DescriptorInput(nn.Module):
    """Descriptors of graphs, standardised, and a linear map of them: ``[B, width]`` → ``[B, d]``, with ReLU.

    One that is not defined (NaN) counts as the mean. Mean and standard deviation are part of the weights.
    """

    mean: Tensor
    sd: Tensor

    def __init__(self, width: int, dim: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("sd", torch.ones(width))
        self.map = nn.Linear(width, dim)
        self.dropout = nn.Dropout(dropout)

    def standardize_by(self, values: Tensor) -> None:
        """Take mean and standard deviation from the descriptors of the training graphs, ``[G, width]``."""
        values = values.double()
        mean = values.nanmean(dim=0).nan_to_num()
        sd = (values - mean).square().nanmean(dim=0).sqrt().nan_to_num()
        self.mean.copy_(mean)
        self.sd.copy_(torch.where(sd > 1e-6 * (1 + mean.abs()), sd, torch.ones_like(sd)))

    def forward(self, x: Tensor) -> Tensor:
        x = ((x.to(self.mean.dtype) - self.mean) / self.sd).nan_to_num(0.0).clamp(-LARGEST, LARGEST)
        return torch.relu(self.map(self.dropout(x)))
