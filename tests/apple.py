"""A device that, like Apple's, has no float64: tensors on it say that they are on ``mps``, and compute on the CPU.

Inside :func:`apple_device` every operation on such tensors, and every new tensor for the device ``mps``, passes through
here. Float64 is refused as PyTorch does it there, and so are operations on tensors of both devices.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

MPS, CPU = torch.device("mps"), torch.device("cpu")
_BETWEEN_DEVICES = {
    "aten::copy_",
    "aten::index.Tensor",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
}


class OnApple(Tensor):
    """A tensor that says it is on ``mps``; ``inside`` holds its values."""

    inside: Tensor

    @staticmethod
    def __new__(cls, inside: Tensor) -> "OnApple":
        if inside.dtype in (torch.float64, torch.complex128):
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")
        one = Tensor._make_wrapper_subclass(
            cls, inside.size(), strides=inside.stride(), storage_offset=inside.storage_offset(), dtype=inside.dtype
        )
        one.inside = inside
        return one  # type: ignore[return-value]

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return MPS

    def __repr__(self, **_: Any) -> str:
        return f"OnApple({self.inside})"

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(operation, args, kwargs or {})


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(operation, args, kwargs or {})


def _run(operation: Any, args: Any, kwargs: Any) -> Any:
    """Compute with what is inside, and put the result on the device again."""
    before: dict[int, OnApple] = {}
    elsewhere: list[Tensor] = []

    def unwrap(value: Any) -> Any:
        if isinstance(value, OnApple):
            before[id(value.inside)] = value
            return value.inside
        if isinstance(value, Tensor) and value.dim():
            elsewhere.append(value)
        return _or_cpu(value)

    def wrap(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return before[id(value)] if id(value) in before else OnApple(value)

    device = kwargs.get("device")
    if operation.name().startswith("aten::new_"):
        device = None  # that of the tensor, which autograd takes for the CPU
    args, kwargs = tree_map(unwrap, args), tree_map(unwrap, kwargs)
    if before and elsewhere and operation.name() not in _BETWEEN_DEVICES:
        raise RuntimeError(f"Expected all tensors to be on the same device: {operation.name()}")
    result = operation(*args, **kwargs)
    on_apple = bool(before) if device is None else device.type == "mps"
    return tree_map(wrap, result) if on_apple else result


class _Moves(TorchFunctionMode):
    """What moves or makes a tensor without an operation, or not at all where PyTorch was built without the device."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is Tensor.cpu and isinstance(args[0], OnApple):
            return _value_of(args[0]).clone()
        if function is Tensor.new_tensor and isinstance(args[0], OnApple):
            return OnApple(function(*args, **kwargs))
        if function is Tensor.to:
            x, *rest = args
            if rest and isinstance(rest[0], Tensor):
                rest = [rest[0].device, rest[0].dtype, *rest[1:]]
            devices = [
                one for one in (*rest, *kwargs.values()) if isinstance(one, torch.device) or one in ("mps", "cpu")
            ]
            if devices and (isinstance(x, OnApple) or torch.device(devices[0]) == MPS):
                moved = _value_of(x).to(*map(_or_cpu, rest), **{name: _or_cpu(one) for name, one in kwargs.items()})
                return OnApple(moved) if torch.device(devices[0]) == MPS else moved
        return function(*args, **kwargs)


def _value_of(x: Tensor) -> Tensor:
    assert not (x.requires_grad and torch.is_grad_enabled()), "no gradient crosses the border of devices here"
    return x.detach().inside if isinstance(x, OnApple) else x.detach()


def _or_cpu(value: Any) -> Any:
    return CPU if isinstance(value, str | torch.device) and str(value) == "mps" else value


@contextmanager
def apple_device() -> Iterator[torch.device]:
    """The device ``mps``, which has no float64."""
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # a module that moves gets new parameters
    no_inference = patch("torch._C._InferenceMode", lambda _: torch.no_grad())  # in it such a tensor has no views
    try:
        with _Operations(), _Moves(), no_inference:
            yield MPS
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
