"""How a network is trained, as a value."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from lspe.config import Strict, unknown_name
from lspe.own_parts import path_of

PAPER_SEEDS = (41, 95, 12, 35)
FEWEST_EPOCHS = 20
"""However large a set is."""

Seed = Annotated[int, Field(ge=0, lt=2**63)]
ProtocolKind = Literal["paper", "fast"]
ReportedWeights = Literal["last", "best"]
OPTIMIZERS = ("adam", "adamw", "nadam", "radam", "sgd")
Schedule = Literal["plateau", "cosine", "onecycle", "none"]
PositiveFloat = Annotated[float, Field(gt=0)]


def _known_optimizer(name: Any) -> Any:
    if isinstance(name, str) and name not in OPTIMIZERS and ":" not in name:
        raise ValueError(unknown_name("optimizer", name, OPTIMIZERS) + ", or one's own: my_module:MyOptimizer")
    return path_of(name) if isinstance(name, type) else name


class PositionalLoss(Strict):
    """α and λ of the positional loss, and how it is scaled (see :func:`lspe.nn.positional_loss`)."""

    alpha: PositiveFloat
    weight: Annotated[float, Field(ge=0)]
    scaling: Literal["paper", "released"] = "paper"


class _Protocol(Strict):
    """What both protocols are made of; they differ in the values from which they begin.

    - ``optimizer``: ``adam``, ``adamw``, ``nadam``, ``radam``, ``sgd``, or one's own ``my_module:MyOptimizer``, with
      ``optimizer_args`` beside ``lr`` and ``weight_decay``; ``decay`` says on what the latter pulls: on ``all``
      parameters, or on ``weights`` only, not on biases and what else is a vector (normalisations).
    - ``schedule``: how the learning rate goes. ``plateau``: down by ``factor`` when the validation loss has not fallen
      for ``patience`` epochs; below ``min_lr`` training stops. The others go by steps: ``cosine`` to zero, ``onecycle``
      as torch's ``OneCycleLR``, ``none``: as it is. They begin with a ``warmup``, a part of all steps; with a
      ``patience`` training stops when the validation loss has not fallen for so many epochs.
    - ``clip``: the greatest norm of a gradient. ``ema``: the weights that count are an exponential moving average with
      this decay.
    - Training ends after ``max_epochs`` or ``max_hours``. With ``max_steps`` a large set is gone through less often: as
      many epochs as make up so many steps, but not fewer than ``FEWEST_EPOCHS``.
    - ``report`` names the weights whose score counts: those of the last epoch or of the best validation score; both are
      always written down.
    """

    optimizer: Annotated[str, BeforeValidator(_known_optimizer)]
    optimizer_args: dict[str, Any] = Field(default_factory=dict)
    lr: PositiveFloat = 1e-3
    weight_decay: Annotated[float, Field(ge=0)]
    decay: Literal["all", "weights"] = "all"
    schedule: Schedule
    warmup: Annotated[float, Field(ge=0, lt=1)]
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    patience: Annotated[int, Field(ge=0)] | None
    min_lr: PositiveFloat = 1e-6
    clip: PositiveFloat | None
    ema: Annotated[float, Field(ge=0, lt=1)] | None
    max_epochs: Annotated[int, Field(ge=1)]
    max_steps: Annotated[int, Field(ge=1)] | None = None
    max_hours: PositiveFloat | None = None
    report: ReportedWeights = "last"

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.schedule == "plateau" and (self.patience is None or self.warmup):
            raise ValueError("schedule 'plateau' takes a patience, 25 for instance, and no warmup: warmup=0")
        if self.schedule == "onecycle" and not self.warmup:
            raise ValueError("schedule 'onecycle' needs a warmup, the part of all steps in which the rate rises: 0.3")
        if self.schedule != "plateau" and self.patience == 0:
            raise ValueError("patience 0 would stop after the first epoch: choose 1 or more, or null for none")
        return self

    @property
    def goes_by_steps(self) -> bool:
        """Whether the learning rate follows from the step, and not from the validation loss."""
        return self.schedule != "plateau"

    @property
    def may_be_prolonged(self) -> bool:
        """Whether what comes first is the same however long it will go on."""
        return self.schedule == "plateau" or (self.schedule == "none" and not self.warmup)

    def learning_rate(self, step: int, steps: int) -> float:
        """At ``step`` out of ``steps``: up for the first ``warmup`` of them, then as the schedule says."""
        if self.schedule == "onecycle":
            return self.lr * _one_cycle(step, steps, self.warmup)
        warm = self.warmup * steps
        if step < warm:
            return self.lr * min((step + 1) / warm, 1.0)
        if self.schedule == "none":
            return self.lr
        return self.lr * 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))


class PaperProtocol(_Protocol):
    """Adam; the learning rate halves on a plateau. The values are those of :class:`_Protocol`."""

    kind: Literal["paper"] = "paper"
    optimizer: Annotated[str, BeforeValidator(_known_optimizer)] = "adam"
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    schedule: Schedule = "plateau"
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.0
    patience: Annotated[int, Field(ge=0)] | None = 25
    clip: PositiveFloat | None = None
    ema: Annotated[float, Field(ge=0, lt=1)] | None = None
    max_epochs: Annotated[int, Field(ge=1)] = 1000


class FastProtocol(_Protocol):
    """AdamW; a short warm-up, then a cosine to zero; averaged weights. The values are those of :class:`_Protocol`."""

    kind: Literal["fast"] = "fast"
    optimizer: Annotated[str, BeforeValidator(_known_optimizer)] = "adamw"
    weight_decay: Annotated[float, Field(ge=0)] = 1e-5
    schedule: Schedule = "cosine"
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    patience: Annotated[int, Field(ge=0)] | None = None
    clip: PositiveFloat | None = 5.0
    ema: Annotated[float, Field(ge=0, lt=1)] | None = 0.999
    max_epochs: Annotated[int, Field(ge=1)] = 100


def _one_cycle(step: int, steps: int, warmup: float) -> float:
    """The learning rate as a part of its greatest, as ``torch.optim.lr_scheduler.OneCycleLR`` has it from the start."""
    first, last = 1 / 25, 1 / 25e4
    top, end = warmup * steps - 1, steps - 1
    if step <= top:
        return _cosine(first, 1.0, step / top)
    return _cosine(1.0, last, (step - top) / (end - top))


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * part))


Protocol = Annotated[PaperProtocol | FastProtocol, Field(discriminator="kind")]


class Training(Strict):
    """Everything about training that is not the network or the data.

    ``standardize``: targets of a regression are brought to mean 0 and standard deviation 1 of the training split;
    predictions and scores are in the original units all the same. ``best_by``: which validation figure tells the
    best epoch. ``members``: so many networks predict as one, each with another part of the data as its validation, or
    of a benchmark, whose division is given, with another seed only; ``null``: by the size of the table. ``forest``:
    trees on descriptors learn beside them, and both are blended. ``balance``: how much more the rarer of yes and no
    counts in the loss: of each label a yes weighs (no / yes)^balance, with 1 all of them as much as all no; predicted
    probabilities stay those of the table. ``hidden_share``: of links, how many of the training
    edges each epoch hides and asks for; with 0 all of them are asked for while they are seen.

    ``neighbours``: targets of nodes are learned ``nodes_per_step`` at a time, each from a sample of its neighbourhood:
    so many edges into each of these nodes, so many into each node where those begin, one number for each layer.
    ``[]``: from whole graphs, ``batch_size`` at a time; ``null``: from samples where a graph is large
    (:mod:`lspe.experiment.sampling`).

    ``accumulate``: so many batches make one step, with the mean of their gradients. ``precision``: ``bf16`` computes
    the forward pass of training in bfloat16 where torch's autocast does; weights, validation and predictions stay
    float32.
    ``sync_batch_norm``: several processes normalise by the whole batch, not each by its part, so that the result does
    not depend on their number; layers are then computed in plain PyTorch.
    """

    batch_size: Annotated[int, Field(ge=1)] = 128
    neighbours: tuple[Annotated[int, Field(ge=1)], ...] | None = None
    nodes_per_step: Annotated[int, Field(ge=1)] = 256
    accumulate: Annotated[int, Field(ge=1)] = 1
    precision: Literal["float32", "bf16"] = "float32"
    standardize: bool = False
    protocol: Protocol = PaperProtocol()
    best_by: Literal["score", "loss"] = "score"
    members: Annotated[int, Field(ge=1)] | None = 1
    forest: bool = False
    balance: Annotated[float, Field(ge=0, le=1)] = 0.0
    sync_batch_norm: bool = False
    positional_loss: PositionalLoss | None = None
    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.2
    seeds: tuple[Seed, ...] = PAPER_SEEDS
