"""What is predicted: the loss that training lowers, and the meaning of what a network says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lspe.data.packed.targets import UNKNOWN_CLASS
from lspe.experiment.task import Task

if TYPE_CHECKING:
    from lspe.training.scores import Scores


@dataclass(frozen=True)
class TargetScaling:
    """Mean and standard deviation of each target over the training split."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def of(cls, y: Tensor) -> TargetScaling:
        """The scaling of targets ``[B, T]``; NaN is no value, and a target that never changes keeps its unit."""
        mean, std = [], []
        for column in y.double().T:
            known = column[~column.isnan()]
            spread = float(known.std(unbiased=False)) if known.numel() else 0.0
            mean.append(float(known.mean()) if known.numel() else 0.0)
            std.append(spread if spread > 0 else 1.0)
        return cls(tuple(mean), tuple(std))

    def shrink(self, y: Tensor) -> Tensor:
        """Original units → mean 0, standard deviation 1."""
        return (y - y.new_tensor(self.mean)) / y.new_tensor(self.std)

    def restore(self, y: Tensor) -> Tensor:
        """The inverse of :meth:`shrink`."""
        return y * y.new_tensor(self.std) + y.new_tensor(self.mean)

    def to_dict(self) -> dict[str, list[float]]:
        """Plain values, for JSON."""
        return {"mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TargetScaling:
        """The inverse of :meth:`to_dict`."""
        return cls(tuple(values["mean"]), tuple(values["std"]))


class Objective:
    r"""The loss of a task and the meaning of a network's output.

    - ``regression``: :math:`|o - y|` where the mean absolute error counts, :math:`(o - y)^2` otherwise, of targets
      that may be standardised (:class:`TargetScaling`);
    - ``binary``: cross-entropy of each yes/no label with its logit; where rare labels are to count for more, a yes
      weighs :math:`w` and the logit is :math:`o + \log w` (``class_weights`` [T]), so that what makes the loss least is
      still the o of how frequent a yes is;
    - ``multiclass``: cross-entropy of the class; where the balanced accuracy counts, each class weighs as much as any
      other over the training targets (``class_weights`` [C]).

    Targets that are NaN, or class -1, are not known: they count neither in the loss nor in the scores.
    """

    def __init__(
        self,
        task: Task,
        scaling: TargetScaling | None = None,
        class_weights: tuple[float, ...] | None = None,
    ) -> None:
        self.task = task
        self.scaling = scaling
        self.class_weights = class_weights

    @classmethod
    def of(cls, task: Task, y: Tensor, *, standardize: bool = False, balance: float = 0.0) -> Objective:
        """The objective of training on targets ``y``; rare labels count for more by ``balance``, from 0 to 1."""
        if task.kind == "regression" and standardize:
            return cls(task, scaling=TargetScaling.of(y))
        if task.metric == "balanced_accuracy":
            return cls(task, class_weights=_balancing_weights(y, task.outputs))
        if task.kind == "binary" and balance > 0:
            return cls(task, class_weights=_weights_of_yes(y, balance))
        return cls(task)

    def loss(self, output: Tensor, y: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The sum of the losses of all known targets, and the sum of their weights: the loss is their ratio.

        Both sums can be added over batches and over processes, so the mean is that of the whole however it was
        divided.

        Args:
            output: ``[R, outputs]``, a row per graph or node.
            y: ``[R, T]``, or ``[R]`` classes.
            weight: ``[R]``, how much each of them counts; 1 if not given.

        """
        if self.task.kind == "multiclass":
            y = y.view(-1)
            each = F.cross_entropy(output, y, reduction="none", ignore_index=UNKNOWN_CLASS).unsqueeze(-1)
            share = self._share_of_classes(y, output.dtype).unsqueeze(-1)
            each = each * share
        else:
            known = ~y.isnan()
            y = torch.where(known, y, torch.zeros_like(y))
            share = known.to(output.dtype)
            if self.class_weights is not None:
                weights = output.new_tensor(self.class_weights)
                output = output + weights.log()
                share = share * torch.where(y > 0, weights, torch.ones_like(weights))
            each = self._each(output, y) * share
        if weight is not None:
            each = each * weight.view(-1, 1)
            share = share * weight.view(-1, 1)
        return each.sum(), share.sum()

    def _share_of_classes(self, y: Tensor, dtype: torch.dtype) -> Tensor:
        """``[R]``: how much a target of each class counts."""
        known = y != UNKNOWN_CLASS
        if self.class_weights is None:
            return known.to(dtype)
        weights = torch.tensor(self.class_weights, dtype=dtype, device=y.device)
        return torch.where(known, weights[y.clamp(min=0)], 0.0)

    def known(self, y: Tensor) -> Tensor:
        """``[R]``: which rows of targets have at least one that is known."""
        if self.task.kind == "multiclass":
            return y.view(-1) != UNKNOWN_CLASS
        return ~y.isnan().all(dim=-1)

    def _each(self, output: Tensor, y: Tensor) -> Tensor:
        if self.task.kind == "binary":
            return F.binary_cross_entropy_with_logits(output, y, reduction="none")
        if self.scaling is not None:
            y = self.scaling.shrink(y)
        difference = output - y
        return difference.abs() if self.task.metric == "mae" else difference.square()

    def predict(self, output: Tensor) -> Tensor:
        """Values in original units, or probabilities."""
        if self.task.kind == "binary":
            return output.sigmoid()
        if self.task.kind == "multiclass":
            return output.softmax(dim=-1)
        return self.scaling.restore(output) if self.scaling is not None else output

    def constant(self, y: Tensor) -> Tensor:
        """``[outputs]``: what a predictor says that has seen the training targets ``y`` and nothing else.

        Their mean, or how frequent each label or class is.
        """
        if self.task.kind == "multiclass":
            return torch.bincount(y[self.known(y)].view(-1), minlength=self.task.outputs).double().log()
        mean = y.double().nanmean(dim=0).nan_to_num()
        if self.task.kind == "binary":
            return mean.logit(eps=1e-6)
        return mean if self.scaling is None else self.scaling.shrink(mean)

    def scores(self) -> Scores:
        """An empty collection of outputs and targets, to be filled batch by batch."""
        from lspe.training.scores import Scores  # torchmetrics takes long to load, and predicting needs no scores

        return Scores(self)


def _balancing_weights(y: Tensor, classes: int) -> tuple[float, ...]:
    """Of each class, such that all classes that occur weigh the same and a target weighs 1 on average."""
    counts = torch.bincount(y[y != UNKNOWN_CLASS], minlength=classes).double()
    share = counts.sum() / (counts > 0).sum().clamp(min=1)
    return tuple(torch.where(counts > 0, share / counts.clamp(min=1), 0.0).tolist())


def _weights_of_yes(y: Tensor, balance: float) -> tuple[float, ...]:
    """Of each label ``[B, T]``, (no / yes)^balance; 1 where one of them does not occur."""
    known = (~y.isnan()).sum(dim=0).double()
    yes = (y > 0).sum(dim=0).double()
    no = known - yes
    both = (yes > 0) & (no > 0)
    return tuple(torch.where(both, (no / yes.clamp(min=1)).clamp(min=1e-12) ** balance, 1.0).tolist())
