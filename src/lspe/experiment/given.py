"""A network that is given as an object in Python, as a value: what it takes and gives, not how it is made."""

from typing import TYPE_CHECKING, Literal

from torch import nn

from lspe.errors import UserError
from lspe.experiment.network_base import NetworkConfig
from lspe.nn.network import Network

if TYPE_CHECKING:
    from lspe.experiment.value import Experiment


class GivenConfig(NetworkConfig):
    """A network that was given as an object; ``made_of`` names its layers, for people."""

    name: Literal["object"]
    made_of: str

    def build_layers(self) -> list[nn.Module]:
        raise UserError(
            f"it was given as an object in Python (layers of {self.made_of}): give it again, "
            "lspe.load(folder, network=network) or lspe.train(folder, network=network, resume=True)"
        )


def with_network(experiment: "Experiment", network: Network) -> "Experiment":
    """The same experiment with a network that is there already."""
    if not isinstance(network, Network):
        raise UserError(
            f"network is a {type(network).__name__}, not an lspe.nn.Network: put its parts together as "
            "Network(embedder, layers, head, dim=…)"
        )
    model = GivenConfig(
        name="object",
        made_of=", ".join(sorted({type(layer).__name__ for layer in network.layers})),
        layers=len(network.layers),
        hidden_dim=network.dim,
        lspe=network.lspe,
        encoding=network.encoding,
        k=network.k,
        signs=network.signs,
        pair_encoding=network.pair_encoding,
        pair_k=network.pair_k,
        normalize_encoding=network.normalize_encoding,
        final=network.final,
        readout=network.readout,
        normalize_positions=network.normalize_positions,
        position_epsilon=network.position_epsilon,
        descriptors="none" if network.descriptors is None else experiment.model.descriptors,
    )
    return experiment.model_copy(update={"model": model})
