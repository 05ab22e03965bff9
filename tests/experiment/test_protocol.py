"""The learning rate of the fast protocol, against torch's own."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from lspe.experiment.protocol import FastProtocol


def test_warm_up_is_a_line_and_the_rest_torchs_cosine() -> None:
    protocol = FastProtocol(lr=0.5, warmup=0.2)
    rates = [protocol.learning_rate(step, 50) for step in range(50)]
    assert torch.allclose(torch.tensor(rates[:10]), torch.arange(1, 11) * 0.05)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    cosine = CosineAnnealingLR(optimizer, T_max=40)
    expected = []
    for _ in range(40):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        cosine.step()
    assert torch.allclose(torch.tensor(rates[10:]), torch.tensor(expected))


def test_without_warm_up_the_first_step_has_the_full_rate() -> None:
    assert FastProtocol(lr=0.5, warmup=0.0).learning_rate(0, 10) == 0.5
