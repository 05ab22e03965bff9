"""Encodings of graphs on a device that has no float64, as Apple's: computed on the CPU, given back on the device."""

import pytest
import torch

from lspe.encodings import diffusion_kernel, laplacian_encoding, random_walk_encoding
from tests.apple import MPS, OnApple, apple_device

EDGES = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 0, 4, 3], [1, 2, 0, 4, 3, 0, 1, 2, 3, 4]])
BATCH = torch.tensor([0, 0, 0, 1, 1])
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 2.0, 0.5, 1.0, 1.0])
ENCODINGS = {
    "rwpe": lambda edges, weight, batch: random_walk_encoding(edges, None, 4, edge_weight=weight, batch=batch),
    "lappe": lambda edges, weight, batch: laplacian_encoding(edges, None, 2, edge_weight=weight, batch=batch).vectors,
    "kernel": lambda edges, weight, batch: diffusion_kernel(
        edges, None, beta=0.25, steps=3, edge_weight=weight, batch=batch
    ),
}


@pytest.mark.parametrize("kind", ENCODINGS)
def test_encodings_are_those_of_the_cpu(kind: str) -> None:
    expected = ENCODINGS[kind](EDGES, WEIGHT, BATCH)
    with apple_device() as device:
        result = ENCODINGS[kind](EDGES.to(device), WEIGHT.to(device), BATCH.to(device))
        assert isinstance(result, OnApple)
        back = result.cpu()
    assert torch.allclose(back, expected, rtol=1e-6, atol=1e-7)


def test_the_device_of_these_tests_refuses_what_apples_does() -> None:
    with apple_device() as device:
        x = torch.ones(3).to(device)
        assert (x.device, (x + 1).device, torch.zeros(2, device=device).device) == (MPS, MPS, MPS)
        with pytest.raises(TypeError, match="float64"):
            x.double()
        with pytest.raises(TypeError, match="float64"):
            torch.zeros(3, dtype=torch.float64, device=device)
        with pytest.raises(TypeError, match="float64"):
            torch.ones(3, dtype=torch.float64).to(device)
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(3)
        assert x.cpu().double().tolist() == [1.0, 1.0, 1.0]
