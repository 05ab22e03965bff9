"""From nodes to a prediction per graph in C: of small batches PyTorch's thirty operators take as long as a layer."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from lspe.ops.fused.layout import unit_rows
from lspe.ops.fused.library import library_for, threads
from lspe.ops.fused.operator import Operator

MOST_MAPS = 8
"""With those of positions and of both (``struct reading`` in csrc/api.h)."""


class Reading(NamedTuple):
    """What a readout is beside its parameters.

    ``scale``: what each part of the head's input is times the mean of a graph's nodes and their number; 0: the mean.
    ``seeds`` are those of the head's dropout.
    """

    scale: Sequence[float]
    dropout: float
    seeds: Sequence[int]


def predict(
    h: Tensor,
    p: Tensor,
    beside: Tensor | None,
    start: Tensor,
    reading: Reading,
    parameters: Sequence[Tensor],
    *,
    plain: Callable[[Tensor, Tensor, Tensor | None], Tensor],
) -> Tensor:
    """``plain(h, p, beside)``, in C, ``[B, outputs]``; graph b has the nodes ``start[b]`` to ``start[b + 1]``.

    The parameters are weight and bias of the map of p, of that of both, and of those of the head.
    """
    (output,) = _predict(
        h, p, beside, start, reading, parameters=parameters, plain=lambda h, p, beside, *_: (plain(h, p, beside),)
    )
    assert output is not None
    return output


def _forward(
    h: Tensor, p: Tensor, beside: Tensor | None, start: Tensor, reading: Reading, *parameters: Tensor
) -> list[Tensor]:
    graphs, weights = start.numel() - 1, parameters[::2]
    widths = (p.size(1), h.size(1), weights[0].size(0), weights[1].size(0), weights[2].size(1))
    out = h.new_empty(graphs, weights[-1].size(0))
    kept = h.new_empty(graphs, sum(widths) + sum(weight.size(0) for weight in weights[2:]))
    call = _common(h, p, beside, start, reading, parameters)
    library_for(h).call("readout_forward", **call, out=out, kept=kept)
    return [out, kept]


def _common(
    h: Tensor, p: Tensor, beside: Tensor | None, start: Tensor, reading: Reading, parameters: Sequence[Tensor]
) -> dict[str, Any]:
    """What both directions take."""
    return {
        "threads": threads(),
        "maps": len(parameters) // 2,
        "parts": len(reading.scale),
        "scale": reading.scale,
        "dropout": reading.dropout,
        "seed": reading.seeds,
        "start": start,
        "in": [unit_rows(h), unit_rows(p)],
        "beside": None if beside is None else unit_rows(beside),
        "map": [unit_rows(weight) for weight in parameters[::2]],
        "bias": parameters[1::2],
    }


def _gradient(
    arguments: Sequence[Any], kept: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    h, p, beside, start, reading, *parameters = arguments
    (made,), gradient = kept, gradients[0]
    assert gradient is not None
    of_h, of_p = h.new_empty(h.shape), p.new_empty(p.shape)
    of_beside = None if beside is None else beside.new_empty(beside.shape)
    of_parameters = h.new_empty(sum(parameter.numel() for parameter in parameters))
    library_for(h).call(
        "readout_backward",
        **_common(h, p, beside, start, reading, parameters),
        out=unit_rows(gradient),
        kept=made,
        out_gradient=unit_rows(gradient),
        in_gradient=[of_h, of_p],
        beside_gradient=of_beside,
        gradients=made.new_empty(made.shape),
        parameters_gradient=of_parameters,
    )
    return [of_h, of_p, of_beside, None, None, of_parameters]


_predict = Operator(_forward, gradient=_gradient)
