"""How a network is trained, as a value."""

import math
from typing import Annotated, Literal

from pydantic import Field

from lspe.config import Strict

PAPER_SEEDS = (41, 95, 12, 35)
FEWEST_EPOCHS = 20
"""However large a set is."""

Seed = Annotated[int, Field(ge=0, lt=2**63)]
ProtocolKind = Literal["paper", "fast"]
ReportedWeights = Literal["last", "best"]
PositiveFloat = Annotated[float, Field(gt=0)]


class PositionalLoss(Strict):
    """α and λ of the positional loss, and how it is scaled (see :func:`lspe.nn.positional_loss`)."""

    alpha: PositiveFloat
    weight: Annotated[float, Field(ge=0)]
    scaling: Literal["paper", "released"] = "paper"


class PaperProtocol(Strict):
    """Adam; the learning rate falls by ``factor`` when the validation loss has not for ``patience`` epochs.

    Training stops below ``min_lr``, after ``max_hours`` or ``max_epochs``. ``report`` names the weights whose score
    counts: those of the last epoch or of the best validation score; both are always written down.
    """

    kind: Literal["paper"] = "paper"
    lr: PositiveFloat = 1e-3
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    patience: Annotated[int, Field(ge=0)] = 25
    min_lr: PositiveFloat = 1e-6
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    max_hours: PositiveFloat | None = None
    max_epochs: Annotated[int, Field(ge=1)] = 1000
    report: ReportedWeights = "last"


class FastProtocol(Strict):
    """AdamW; a short warm-up, then a cosine to zero over a fixed number of epochs.

    Gradients are clipped to norm ``clip``; the weights that count are an exponential moving average of decay ``ema``.
    With ``max_steps`` a large set is gone through less often: as many epochs as make up so many steps, but not fewer
    than ``FEWEST_EPOCHS``. With ``patience`` training stops when the validation loss has not fallen for so many epochs.
    """

    kind: Literal["fast"] = "fast"
    lr: PositiveFloat = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 1e-5
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    clip: PositiveFloat = 5.0
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.999
    max_epochs: Annotated[int, Field(ge=1)] = 100
    max_steps: Annotated[int, Field(ge=1)] | None = None
    patience: Annotated[int, Field(ge=1)] | None = None
    max_hours: PositiveFloat | None = None
    report: ReportedWeights = "last"

    def learning_rate(self, step: int, steps: int) -> float:
        """At ``step`` out of ``steps``: up in a straight line for the first ``warmup`` of them, then down a cosine."""
        warm = self.warmup * steps
        if step < warm:
            return self.lr * min((step + 1) / warm, 1.0)
        return self.lr * 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))


Protocol = Annotated[PaperProtocol | FastProtocol, Field(discriminator="kind")]


class Training(Strict):
    """Everything about training that is not the network or the data.

    ``standardize``: targets of a regression are brought to mean 0 and standard deviation 1 of the training split;
    predictions and scores are in the original units all the same. ``best_by``: which validation figure tells the
    best epoch. ``members``: so many networks, each with another part of the data as its validation, predict as one;
    ``null``: by the size of the table. ``forest``: trees on descriptors learn beside them, and both are blended.
    ``sync_batch_norm``: several processes normalise by the whole batch, not each by its part, so that the result does
    not depend on their number; layers are then computed in plain PyTorch.
    """

    batch_size: Annotated[int, Field(ge=1)] = 128
    standardize: bool = False
    protocol: Protocol = PaperProtocol()
    best_by: Literal["score", "loss"] = "score"
    members: Annotated[int, Field(ge=1)] | None = 1
    forest: bool = False
    sync_batch_norm: bool = False
    positional_loss: PositionalLoss | None = None
    seeds: tuple[Seed, ...] = PAPER_SEEDS
