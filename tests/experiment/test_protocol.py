"""The values of the protocols; the learning rate of the fast one against torch's own."""

import re
from pathlib import Path

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from lspe.experiment.protocol import FastProtocol, PaperProtocol


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


def test_the_page_shows_the_values_from_which_each_protocol_begins() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", page, re.MULTILINE)
    shown = {name: (paper.strip("`"), fast.strip("`")) for name, paper, fast in rows}
    assert len(shown) == 11
    for name, cells in shown.items():
        for cell, protocol in zip(cells, (PaperProtocol(), FastProtocol()), strict=True):
            value = getattr(protocol, name)
            if cell == "none":
                assert not value, name
            else:
                assert cell == str(value) or float(cell) == value, name
