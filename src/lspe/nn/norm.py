"""Normalisation that also takes the smallest batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F

from lspe.ops import fusible, is_unchanged
from lspe.ops.fused.layout import LANES
from lspe.ops.fused.norm import Norm, normalize


class BatchNorm(nn.BatchNorm1d):
    r"""``nn.BatchNorm1d`` for any number of rows, and with what stands around it in a layer.

    .. math:: y = r + \mathrm{ReLU}\Big(\gamma \odot \frac{s x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta\Big)

    In training μ and σ² are those of the rows and go into the running statistics, otherwise they are these (unless
    there are none). Fewer than two rows (a batch of one-atom molecules has no edges, a single such molecule has one
    node) have no variance: they are normalised by the running statistics, in training too, and do not change them.

    Where several processes train together, the rows are those of each process; once ``synchronised``, those of all.

    Shapes:
        x ``[rows, d]``, ``scale`` s ``[rows, 1]``, ``residual`` r ``[rows, d]`` → ``[rows, d]``. Scale, ReLU and
        residual are left out where they are not asked for.

    """

    synchronised = False

    def forward(
        self, x: Tensor, *, scale: Tensor | None = None, relu: bool = False, residual: Tensor | None = None
    ) -> Tensor:
        if x.dim() != 2 or x.size(1) != self.num_features:
            raise ValueError(f"x is {list(x.shape)}, but this normalisation takes [rows, {self.num_features}]")
        if self._is_shared():
            return self._of_all_processes(x, scale, relu, residual)
        of_rows, momentum = self.uses_rows(x.size(0)), self.momentum_now()
        if of_rows and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        if self._is_fusible(x, scale, residual):
            return self._fused(x, scale, relu, residual, of_rows, momentum)
        x = x if scale is None else x * scale
        mean, variance = self._statistics(x)
        y = F.batch_norm(x, mean, variance, self.weight, self.bias, of_rows, momentum, self.eps)
        y = torch.relu(y) if relu else y
        return y if residual is None else residual + y

    def by_running(self, x: Tensor) -> Tensor:
        """Normalise by the running statistics, in training too, and leave them as they are."""
        return F.batch_norm(x, *self._statistics(x), self.weight, self.bias, False, 0.0, self.eps)

    def _is_shared(self) -> bool:
        met = distributed.is_available() and distributed.is_initialized()
        return self.synchronised and self.training and met and distributed.get_world_size() > 1

    def _of_all_processes(self, x: Tensor, scale: Tensor | None, relu: bool, residual: Tensor | None) -> Tensor:
        """The same with μ and σ² over the rows of all processes, each of which comes here, be it without a row."""
        x = x if scale is None else x * scale
        sum_and_count = _SumOverProcesses.apply(torch.cat([x.sum(0), x.new_tensor([x.size(0)])]))
        rows = sum_and_count[-1].detach()
        mean = sum_and_count[:-1] / rows.clamp(min=1)
        variance = _SumOverProcesses.apply(((x - mean) ** 2).sum(0)) / rows.clamp(min=1)
        if rows < 2:
            y = self.by_running(x)
        else:
            y = (x - mean) * torch.rsqrt(variance + self.eps)
            y = y if self.weight is None else y * self.weight + self.bias
            self._remember(mean.detach(), variance.detach() * (rows / (rows - 1)))
        y = torch.relu(y) if relu else y
        return y if residual is None else residual + y

    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        """Let the rows count in the running statistics."""
        momentum = self.momentum_now()
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.lerp_(mean, momentum)
            self.running_var.lerp_(variance, momentum)

    def _statistics(self, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The running statistics; of a single row without any, 0 and 1."""
        if self.running_mean is None and x.size(0) < 2:
            return x.new_zeros(self.num_features), x.new_ones(self.num_features)
        return self.running_mean, self.running_var

    def is_ordinary(self) -> bool:
        """Whether a layer may compute it with other things in one: it has weights and statistics, and no listener."""
        usual = self.affine and self._buffers.get("running_mean") is not None
        return usual and is_unchanged(self, BatchNorm) and not self._is_shared()

    def in_layer(self, rows: int) -> Norm:
        """What a layer in one operator needs of it, for so many rows; it is ordinary."""
        known: dict[str, Any] = self._buffers
        statistics = (known["running_mean"], known["running_var"], known["num_batches_tracked"])
        return Norm(self.uses_rows(rows), self.eps, self.momentum_now(), *statistics)

    def momentum_now(self) -> float:
        """How much the next rows count in the running statistics; without a momentum, as much as all before."""
        if self.momentum is not None:
            return self.momentum
        return 1 / (1 + float(0 if self.num_batches_tracked is None else self.num_batches_tracked))

    def uses_rows(self, rows: int) -> bool:
        """Whether so many rows are normalised by their own statistics."""
        return rows >= 2 and (self.training or not self.track_running_stats)

    def _is_fusible(self, x: Tensor, scale: Tensor | None, residual: Tensor | None) -> bool:
        usual = self.affine and self.running_mean is not None and x.size(1) >= LANES
        fitting = (residual is None or residual.shape == x.shape) and (
            scale is None or (scale.shape == (x.size(0), 1) and not scale.requires_grad)
        )
        return usual and fitting and fusible(x, scale, residual, self.weight, self.running_mean)

    def _fused(
        self, x: Tensor, scale: Tensor | None, relu: bool, residual: Tensor | None, of_rows: bool, momentum: float
    ) -> Tensor:
        running_mean, running_var = self.running_mean, self.running_var
        assert running_mean is not None
        assert running_var is not None
        given = None if of_rows else (running_mean, running_var)
        y, mean, variance = normalize(x, self.weight, self.bias, residual, scale, given, self.eps, relu)
        if of_rows:
            rows = x.size(0)
            with torch.no_grad():
                running_mean.lerp_(mean, momentum)
                running_var.lerp_(variance * (rows / (rows - 1)), momentum)
        return y


class _SumOverProcesses(torch.autograd.Function):
    """The sum of what every process gives; each then has a gradient for it, and their sum is that of what was given."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.clone()
        distributed.all_reduce(total)
        return total


def synchronise(network: nn.Module) -> None:
    """Let every normalisation of a network take the rows of all processes that train it together."""
    for norm in network.modules():
        if isinstance(norm, BatchNorm):
            norm.synchronised = True


@contextmanager
def unchanged_statistics(*norms: BatchNorm) -> Iterator[None]:
    """What is computed in the block has statistics of its own to change, which are forgotten afterwards."""
    before = [norm._buffers for norm in norms]
    for norm in norms:
        norm._buffers = {name: None if x is None else x.clone() for name, x in norm._buffers.items()}
    try:
        yield
    finally:
        for norm, buffers in zip(norms, before, strict=True):
            norm._buffers = buffers


def center_and_normalize(p: Tensor, batch: Tensor, num_graphs: int, eps: float = 1e-6) -> Tensor:
    r"""Per graph and column: mean zero and norm one.

    .. math:: \tilde p = p - \mathrm{mean}(p), \qquad p' = \tilde p / \sqrt{\lVert \tilde p \rVert^2 + \epsilon}

    A column that is constant in a graph, as any column of a one-node graph is, becomes zero.

    Args:
        p: ``[N, k]``.
        batch: ``[N]``, the graph of each node.
        num_graphs: B.
        eps: under the root, so that value and gradient stay finite.

    """
    zeros = p.new_zeros(num_graphs, p.size(1))
    count = torch.bincount(batch, minlength=num_graphs).clamp(min=1).unsqueeze(-1).to(p.dtype)
    p = p - (zeros.index_add(0, batch, p) / count).index_select(0, batch)
    norm = torch.sqrt(zeros.index_add(0, batch, p * p) + eps)
    return p / norm.index_select(0, batch)
