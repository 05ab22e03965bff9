"""The weights of another run as a start."""

from __future__ import annotations

from typing import Any

from lspe.nn import Network
from lspe.training.module import TrainingError

_MAY_DIFFER = ("embedder.", "head.", "descriptors.")
"""The tables of the features, the head and what takes descriptors: other data and another task have others."""

_OF_LAYERS = ("heads", "towers", "aggregators", "scalers")
"""What tells which weight means what where all shapes are equal."""


def transfer(source: Network, target: Network) -> list[str]:
    """Give ``target`` the weights of ``source``; the names of those that were left fresh.

    Fresh stay the feature tables and the parts of the head that have another shape, because the data or the task are
    others. Everything else must be the same network.
    """
    old, new = source.state_dict(), target.state_dict()
    fitting = {name: old[name] for name in new if name in old and old[name].shape == new[name].shape}
    unfit = [name for name in {**new, **old} if name not in fitting and not name.startswith(_MAY_DIFFER)]
    different = _different_traits(source, target)
    if not different:
        different = [f"{name} {_shape(old.get(name))}, here {_shape(new.get(name))}" for name in unfit]
    if different:
        shown = "; ".join(different[:8]) + (f" and {len(different) - 8} more" if len(different) > 8 else "")
        raise TrainingError(
            f"the other run's weights do not fit this network: {shown}. Start from a run of the same network, "
            "or train this one from fresh weights"
        )
    target.load_state_dict(fitting, strict=False)
    return [name for name in new if name not in fitting]


def _different_traits(source: Network, target: Network) -> list[str]:
    old, new = _traits(source), _traits(target)
    return [f"{name} {old[name]}, here {new[name]}" for name in new if old[name] != new[name]]


def _traits(network: Network) -> dict[str, Any]:
    """What the weights of a network belong to, in words."""
    traits: dict[str, Any] = {
        "kind of layer": ", ".join(sorted({type(layer).__name__ for layer in network.layers})),
        "number of layers": len(network.layers),
        "width": network.dim,
        "lspe": network.lspe,
        "encoding": network.encoding,
        "k": network.k,
        "signs": network.signs,
        "pair_encoding": network.pair_encoding,
        "normalize_encoding": network.normalize_encoding,
        "final": network.final,
    }
    for name in _OF_LAYERS:
        of_layers = [str(getattr(part, name)) for part in network.layers.modules() if hasattr(part, name)]
        traits[name] = ", ".join(sorted(set(of_layers))) or "none"
    return traits


def _shape(weight: Any) -> str:
    return "not there" if weight is None else str(list(weight.shape))
