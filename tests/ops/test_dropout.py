"""Dropout: what is dropped, how often, and that nothing tells where."""

import pytest
import torch
from torch import Tensor

from lspe.ops import dropout, use

ROWS, WIDTH = 2000, 61


@pytest.fixture(autouse=True)
def fused() -> object:
    with use("fused"):
        yield


def zeros(p: float, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return (dropout(torch.ones(ROWS, WIDTH), p, True) == 0).double()


@pytest.mark.parametrize("p", [0.1, 0.4, 0.5, 0.9])
def test_as_many_are_dropped_as_asked_for_in_every_row_and_column(p: float) -> None:
    """Five standard deviations of as many throws of a coin; 2,061 of them are looked at."""
    dropped = zeros(p)
    for found, throws in ((dropped.mean(), ROWS * WIDTH), (dropped.mean(0), ROWS), (dropped.mean(1), WIDTH)):
        assert ((found - p).abs() <= 5 * (p * (1 - p) / throws) ** 0.5 + 1 / throws).all()


def test_neighbours_rows_and_seeds_are_independent() -> None:
    centred = zeros(0.4) - 0.4
    other = zeros(0.4, seed=1) - 0.4
    limit = 5 * 0.24 / (ROWS * WIDTH) ** 0.5
    for a, b in ((centred[:, 1:], centred[:, :-1]), (centred[1:], centred[:-1]), (centred, other)):
        assert abs((a * b).mean()) < limit


def test_what_stays_keeps_the_mean_and_gets_the_same_gradient() -> None:
    x = torch.randn(50, WIDTH, requires_grad=True)
    y = dropout(x, 0.25, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(y, x * gradient)
    torch.testing.assert_close(gradient.unique(), torch.tensor([0, 4 / 3]))


def test_the_generator_of_pytorch_decides() -> None:
    assert torch.equal(zeros(0.4, seed=3), zeros(0.4, seed=3))
    torch.manual_seed(3)
    first, second = (dropout(torch.ones(10, WIDTH), 0.4, True) for _ in range(2))
    assert not torch.equal(first, second)


def test_the_ends() -> None:
    x = torch.randn(3, 5)
    assert dropout(x, 0.0, True) is x
    assert dropout(x, 0.9, False) is x
    assert not dropout(x, 1.0, True).any()
    assert dropout(x[:0], 0.5, True).shape == (0, 5)


def test_rows_with_gaps_between_them_and_columns_first() -> None:
    x = torch.randn(20, 64)
    for view in (x[:, :50], x[:, ::2], x.T):
        torch.manual_seed(0)
        expected = dropout(view.contiguous(), 0.3, True)
        torch.manual_seed(0)
        assert torch.equal(dropout(view, 0.3, True), expected)


def test_nan_is_not_hidden() -> None:
    assert dropout(torch.full((10, WIDTH), torch.nan), 0.9, True).isnan().all()
