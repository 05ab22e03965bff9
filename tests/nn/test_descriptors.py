"""Descriptors beside the readout."""

import pytest
import torch

from lspe.data import smiles_to_data
from lspe.encodings import RandomWalkEncoding
from lspe.experiment import build_network, override, read_experiment
from lspe.nn.descriptors import LARGEST, DescriptorInput


def test_they_are_standardised_and_what_is_not_defined_is_the_mean() -> None:
    values = torch.tensor([[1.0, 5.0, torch.nan], [3.0, 5.0, torch.nan], [torch.nan, 5.0, torch.nan]])
    layer = DescriptorInput(3, 3)
    layer.standardize_by(values)
    with torch.no_grad():
        layer.map.weight.copy_(torch.eye(3))
        layer.map.bias.fill_(LARGEST)
    out = layer(torch.cat([values, torch.full((1, 3), 1e6)])) - LARGEST
    expected = torch.tensor([[-1.0, 0, 0], [1, 0, 0], [0, 0, 0], [LARGEST] * 3])
    torch.testing.assert_close(out, expected)


def test_a_network_takes_them_and_says_so() -> None:
    network = build_network(override(read_experiment("own/gatedgcn-lspe"), ["model.descriptors=rdkit"])).eval()
    phenol = RandomWalkEncoding(16)(smiles_to_data("c1ccccc1O"))
    with pytest.raises(ValueError, match="the data have no 'descriptors'"):
        network(phenol)
    phenol.descriptors = torch.zeros(1, 206)
    before = network(phenol)
    phenol.descriptors = torch.ones(1, 206)
    assert (network(phenol) != before).all()
