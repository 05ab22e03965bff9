"""Parameters as one vector: the same training as with single tensors, and states saved of these are read."""

import copy

import pytest
import torch
from torch import Tensor, nn

from lspe.training.flat import FlatParameters


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Tanh(), nn.Linear(7, 3))


def batches(count: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(16, 5, generator=generator) for _ in range(count)]


def step_singly(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Tensor, clip: float) -> None:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()


def step_flat(
    model: nn.Module, flat: FlatParameters, optimizer: torch.optim.Optimizer, batch: Tensor, clip: float
) -> None:
    flat.forget_gradients()
    model(batch).square().mean().backward()
    flat.gather_gradients()
    torch.nn.utils.clip_grad_norm_(flat.tensors, clip)
    optimizer.step()


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_same_as_single_tensors(kind: type[torch.optim.Optimizer]) -> None:
    """Also from the middle on, from the state that an optimiser of single tensors left."""
    options = {"lr": 0.01, "weight_decay": 0.1, "fused": True}
    single, whole, late = network(), network(), network()
    flat = FlatParameters(whole.parameters())
    of_single, of_whole = kind(single.parameters(), **options), kind(flat.tensors, **options)
    for number, batch in enumerate(batches(20)):
        if number == 10:
            late.load_state_dict(copy.deepcopy(single.state_dict()))
            of_late_parameters = FlatParameters(late.parameters())
            of_late = kind(of_late_parameters.tensors, **options)
            of_late.load_state_dict(of_late_parameters.state_of(copy.deepcopy(of_single.state_dict())))
        step_singly(single, of_single, batch, 0.5)
        step_flat(whole, flat, of_whole, batch, 0.5)
        if number >= 10:
            step_flat(late, of_late_parameters, of_late, batch, 0.5)
    for one, other, third in zip(single.parameters(), whole.parameters(), late.parameters(), strict=True):
        torch.testing.assert_close(other, one)
        torch.testing.assert_close(third, one)


def test_a_parameter_without_a_gradient_stays() -> None:
    model = network()
    flat = FlatParameters(model.parameters())
    before = [parameter.clone() for parameter in model.parameters()]
    model[3](torch.ones(2, 7)).sum().backward()
    flat.gather_gradients()
    torch.optim.Adam(flat.tensors, lr=0.1).step()
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert changed == [False] * 4 + [True] * 2
    assert flat.state_of(torch.optim.Adam(flat.tensors).state_dict())["state"] == {}


@pytest.mark.parametrize("clip", [0.01, 1e9])
def test_clipped_as_pytorch_does(clip: float) -> None:
    single, whole = network(), network()
    flat = FlatParameters(whole.parameters(), [0, 1, 1, 1, 0, 1])
    batch = batches(1)[0]
    flat.forget_gradients()
    for model in (single, whole):
        model(batch).square().mean().backward()
    flat.gather_gradients()
    flat.clip(clip)
    torch.nn.utils.clip_grad_norm_(single.parameters(), clip)
    for one, other in zip(single.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad)


def test_gradients_that_somebody_has_replaced_count() -> None:
    """As a callback may do it between the backward pass and the step."""
    model = network()
    flat = FlatParameters(model.parameters())
    flat.forget_gradients()
    model(batches(1)[0]).sum().backward()
    first, second, *_ = model.parameters()
    first.grad, second.grad = torch.full_like(first, 2.0), None
    third = model[1].weight.grad.clone()
    flat.gather_gradients()
    (vector,) = flat.tensors
    assert torch.equal(vector.grad[:35], torch.full((35,), 2.0))
    assert not vector.grad[35:42].any()
    assert torch.equal(vector.grad[42:49], third)
    flat.forget_gradients()
    assert not vector.grad.any()
    assert first.grad.data_ptr() == vector.grad.data_ptr()
