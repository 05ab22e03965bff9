"""What every network has, whatever its layers are, as a value."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from torch import nn

from lspe.config import Strict
from lspe.data.words import OptionalDescriptorKind
from lspe.encodings.kinds import NONE, check_encoding
from lspe.features import WIDEST
from lspe.nn.feed_forward import Normed
from lspe.nn.network import Final, check_combination, check_signs
from lspe.nn.normalisation import Normalisation
from lspe.nn.readout import Readout
from lspe.nn.signs import Signs

Probability = Annotated[float, Field(ge=0, lt=1)]
MOST_LAYERS = 10_000
"""Beyond any network; a slip of the keyboard is said at once."""


class NetworkConfig(Strict):
    """Width, depth, encodings, positions and readout; the layers are those of each network's own.

    ``edge_sum``: the sum of a node's edges is added to what h begins with. ``head_layers``: hidden ones behind
    the readout, each half as wide as the one before. ``norm``: what normalises inside the layers and feed-forward
    blocks. ``dropout`` is that in the layers, ``head_dropout`` that behind them; ``null``: by the task
    (:func:`lspe.experiment.data.fit_to_data`), more for classes than for numbers. ``descriptors`` stand beside the
    readout; ``null``: RDKit's, but of several networks that tell classes every second has none, so that they err less
    alike.
    """

    layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)]
    hidden_dim: Annotated[int, Field(ge=4, le=WIDEST)]
    lspe: bool = False
    encoding: str = NONE
    k: Annotated[int, Field(ge=0, le=WIDEST)] = 0
    signs: Signs = "random"
    pair_encoding: str = NONE
    pair_k: Annotated[int, Field(ge=0, le=WIDEST)] = 0
    normalize_encoding: bool = False
    edge_sum: bool = False
    final: Final = "structure"
    readout: Readout = "mean"
    dropout: Probability | None = 0.0
    head_layers: Annotated[int, Field(ge=0, le=6)] = 2
    head_dropout: Probability | None = 0.0
    residual: bool = True
    feed_forward: Literal["none"] | Normed = "none"
    norm: Normalisation = "batch"
    normalize_positions: bool = False
    position_epsilon: Annotated[float, Field(gt=0)] = 1e-6
    descriptors: OptionalDescriptorKind | None = "none"
    extra: Annotated[int, Field(ge=0, le=WIDEST)] = 0

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        check_combination(self.encoding, self.k, self.lspe, self.final)
        if self.encoding != NONE:
            check_signs(check_encoding(self.encoding, self.k, "node"), self.signs, self.normalize_encoding)
        if self.pair_encoding != NONE:
            check_encoding(self.pair_encoding, self.pair_k, "pair")
        for what in ("heads", "towers"):
            parts = getattr(self, what, None)
            if parts and self.hidden_dim % parts:
                raise ValueError(
                    f"{parts} {what} cannot share hidden_dim={self.hidden_dim} evenly: choose a number that divides it"
                )
        return self

    @property
    def drops(self) -> float:
        """The dropout in the layers; none where it is left to a task that is not known yet."""
        return self.dropout or 0.0

    @property
    def beside(self) -> OptionalDescriptorKind:
        """The descriptors beside the readout."""
        return self.descriptors or "rdkit"

    @property
    def edge_width(self) -> int:
        """The width of e."""
        return self.hidden_dim

    @property
    def encodings(self) -> tuple[tuple[str, int], ...]:
        """The encodings that the network reads from the graphs, and their numbers of columns."""
        both = (self.encoding, self.k), (self.pair_encoding, self.pair_k)
        return tuple((kind, k) for kind, k in both if kind != NONE)

    def build_layers(self) -> list[nn.Module]:
        """The layers, with fresh weights."""
        raise NotImplementedError
