"""Clipping, Adam and the average in one pass give what PyTorch's own give, and take their state."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Adam, AdamW, Optimizer

from lspe.ops import use
from lspe.training.average import MovingAverage
from lspe.training.flat import FlatParameters
from lspe.training.one_pass import step_at_once


class Trained:
    """A network with an optimiser of its vectors and an average."""

    def __init__(self, kind: type[Optimizer], dtype: torch.dtype, groups: int, **options: Any) -> None:
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(70, 90), nn.Tanh(), nn.BatchNorm1d(90), nn.Linear(90, 3)).to(dtype)
        of = [number % groups for number, _ in enumerate(self.network.parameters())]
        self.flat = FlatParameters(self.network.parameters(), of)
        decays = (0.1, 0.0)
        given = [{"params": one, "weight_decay": decay} for one, decay in zip(self.flat.groups, decays, strict=False)]
        self.optimizer = kind(given, lr=0.02, **options)
        self.average = MovingAverage(self.network, self.flat, 0.9)

    def gradients(self, number: int) -> None:
        generator = torch.Generator().manual_seed(number)
        weight = self.network[0].weight
        x = torch.randn(16, 70, generator=generator).to(weight.dtype)
        self.flat.forget_gradients()
        self.network(x).square().sum().backward()
        self.flat.gather_gradients()

    def step(self, clip: float | None) -> None:
        """As PyTorch does it."""
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(self.flat.tensors, clip)
        self.optimizer.step()
        self.average.update()

    def values(self) -> list[torch.Tensor]:
        states = [self.optimizer.state[tensor][name] for tensor in self.flat.tensors for name in ("exp_avg", "step")]
        return [*self.network.state_dict().values(), *self.average.network.state_dict().values(), *states]


@pytest.mark.parametrize("kind", [Adam, AdamW])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("groups", "clip"), [(1, None), (1, 1e9), (2, 0.3)])
def test_as_pytorch_does(kind: type[Optimizer], dtype: torch.dtype, groups: int, clip: float | None) -> None:
    ours, torchs = (Trained(kind, dtype, groups, betas=(0.8, 0.95), eps=1e-5, fused=True) for _ in range(2))
    served = []
    for number in range(12):
        ours.gradients(number)
        torchs.gradients(number)
        forget = number % 2 == 0
        served.append(step_at_once(ours.optimizer, ours.flat, clip, ours.average, forget=forget))
        if not served[-1]:
            ours.step(clip)
        torchs.step(clip)
        assert ours.flat.gradient.any() != (forget and served[-1])
    assert served == [False] + [True] * 11  # PyTorch makes the state in its first step
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 1e-11, "atol": 1e-12}
    for one, other in zip(ours.values(), torchs.values(), strict=True):
        torch.testing.assert_close(one, other, **tolerance)


def test_its_state_is_pytorchs() -> None:
    """What one has begun the other goes on with."""
    ours = Trained(AdamW, torch.float64, 1)
    for number in range(4):
        ours.gradients(number)
        if not step_at_once(ours.optimizer, ours.flat, None, ours.average):
            ours.step(None)
    later = Trained(AdamW, torch.float64, 1)
    later.network.load_state_dict(ours.network.state_dict())
    later.optimizer.load_state_dict(copy.deepcopy(ours.optimizer.state_dict()))
    for one in (ours, later):
        one.gradients(9)
    assert step_at_once(ours.optimizer, ours.flat, None, None)
    later.optimizer.step()
    torch.testing.assert_close(ours.network.state_dict(), later.network.state_dict())


def test_a_gradient_that_is_no_number_is_not_hidden() -> None:
    one = Trained(Adam, torch.float32, 1)
    one.gradients(0)
    one.step(None)
    one.gradients(1)
    one.flat.gradient[3] = torch.nan
    assert step_at_once(one.optimizer, one.flat, 1.0, None)
    assert one.network[0].weight.flatten()[3].isnan()


def begun(kind: type[Optimizer], **options: Any) -> Trained:
    one = Trained(kind, torch.float32, 1, **options)
    one.gradients(0)
    one.step(None)
    one.gradients(1)
    return one


def test_what_it_does_not_serve_is_left_alone() -> None:
    listened_to = begun(Adam)
    listened_to.optimizer.register_step_post_hook(lambda *_: None)
    for one in (listened_to, begun(Adam, amsgrad=True), begun(AdamW, maximize=True), begun(torch.optim.NAdam)):
        before = [value.clone() for value in one.values()]
        assert not step_at_once(one.optimizer, one.flat, 0.1, one.average)
        for value, old in zip(one.values(), before, strict=True):
            assert torch.equal(value, old)
    ordinary = begun(Adam)
    with use("plain"):
        assert not step_at_once(ordinary.optimizer, ordinary.flat, None, None)
    assert step_at_once(ordinary.optimizer, ordinary.flat, None, None)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_bits_for_any_number_of_threads(threads: int) -> None:
    usual, found = torch.get_num_threads(), []
    for count in (1, threads):
        one = begun(AdamW)
        torch.set_num_threads(count)
        try:
            assert step_at_once(one.optimizer, one.flat, 0.3, one.average)
        finally:
            torch.set_num_threads(usual)
        found.append(one.values())
    for alone, together in zip(*found, strict=True):
        assert torch.equal(alone, together)
