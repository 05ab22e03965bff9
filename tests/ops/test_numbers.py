"""Extreme numbers, accuracy of the functions, and the same bits for any number of threads."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from lspe.nn import GatedGCN, Topology
from lspe.ops import tanh_residual, use
from tests.graphs import CORNER_CASES
from tests.ops import cases

BATCH = Batch.from_data_list([CORNER_CASES[name] for name in ("decalin", "star", "one node", "tree")] * 3)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
def test_extreme_gates(size: float) -> None:
    """Gates that are 0 or 1 as nearly as the numbers allow: nothing overflows, and the plain result is met."""
    case = cases.gate(BATCH, positions=True)
    case.inputs[1] *= size
    with use("plain"):
        expected = case.results(torch.float64)
    with use("fused"):
        ours = case.results(torch.float32)
    for x, y in zip(ours, expected, strict=True):
        assert x.isfinite().all()
        torch.testing.assert_close(x.double() / (1 + y.abs().max()), y / (1 + y.abs().max()), rtol=0, atol=1e-4)


def test_extreme_scores() -> None:
    """Scores far outside the clamp have a weight, and no gradient."""
    case = cases.attention(BATCH, kernel=False)
    case.inputs[0] *= 1e4
    with use("plain"):
        expected = case.results(torch.float64)
    with use("fused"):
        for x, y in zip(case.results(torch.float64), expected, strict=True):
            torch.testing.assert_close(x, y)
        assert all(x.isfinite().all() for x in case.results(torch.float32))


@pytest.mark.parametrize("value", [0.0, 0.1, 3.0, 1e4, -1e6])
def test_constant_features_have_no_variance(value: float) -> None:
    """Not even by rounding: BN leaves its bias, and gradients stay finite."""
    case = cases.norm(1000, training=True, relu=False, residual=False, scaled=False)
    case.inputs[0][:] = value
    with use("fused"):
        y, _, _, of_x, *_ = case.results(torch.float32)
    assert (y == case.inputs[2].float()).all()
    assert of_x.isfinite().all()


def test_variance_far_from_zero() -> None:
    """A spread of one around 10,000: the mean square and the square of the mean agree in all their digits."""
    case = cases.norm(1000, training=True, relu=False, residual=False, scaled=False)
    case.inputs[0][:] = (case.inputs[0] + 1e4).float()
    with use("plain"):
        expected = case.results(torch.float64)[0]
    with use("fused"):
        y = case.results(torch.float32)[0]
    torch.testing.assert_close(y.double(), expected, rtol=0, atol=2e-3)


def test_equal_messages_have_the_least_deviation() -> None:
    case = cases.principal(BATCH, towers=1, aggregators=("std",), scalers=1)
    case.inputs[0][:] = 1e3
    case.inputs[1][:] = 1e3
    with use("fused"):
        results = case.results(torch.float32)
    with use("plain"):
        expected = case.results(torch.float64)
    torch.testing.assert_close(results[0].double(), expected[0], rtol=1e-4, atol=1e-2)
    assert all(x.isfinite().all() for x in results)


@pytest.mark.parametrize(
    "name", ["gate with positions", "aggregation", "attention with numbers", "messages", "messages of types"]
)
def test_nan_is_not_hidden(name: str) -> None:
    """One number that is not one shows in the result of its node and neighbours, and only in their graph."""
    case = cases.on_graphs(BATCH)[name]
    case.inputs[0][0, 0] = torch.nan
    with use("fused"):
        out = case.run(*(x.float() for x in case.inputs))[0]
    with use("plain"):
        expected = case.run(*(x.float() for x in case.inputs))[0]
    assert out[0].isnan().any()
    assert torch.equal(out.isnan(), expected.isnan())


def test_functions_are_accurate_to_single_precision() -> None:
    x = torch.linspace(-20, 20, 160_000).view(-1, 16)
    tiny = torch.logspace(-30, -1, 1600).view(-1, 16)
    with use("fused"):
        for values in (x, tiny, -tiny):
            torch.testing.assert_close(
                tanh_residual(values, None).double(), torch.tanh(values.double()), rtol=4e-7, atol=0
            )


def test_sigmoid_is_accurate_to_single_precision() -> None:
    """One edge from node 2i + 1 to node 2i with value 1 and these logits: the sum is σ / (σ + ε)."""
    logits = torch.linspace(-30, 30, 16 * 1000).view(-1, 16)
    count = logits.size(0)
    edge_index = torch.arange(2 * count).view(-1, 2).flip(1).T
    layer = GatedGCN(16, residual=False).eval()
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    for norm in (layer.norm_h, layer.norm_e):
        nn.init.ones_(norm.weight)
        norm.eps = 0.0
    nn.init.ones_(layer.A2.bias)
    nn.init.eye_(layer.B3.weight)
    with use("fused"), torch.no_grad():
        out, *_ = layer(torch.zeros(2 * count, 16), None, logits, Topology(edge_index, 2 * count))
    gate = torch.sigmoid(logits.double())
    torch.testing.assert_close(out[::2].double(), gate / (gate + 1e-6), rtol=5e-7, atol=0)


@pytest.mark.parametrize("name", [*cases.on_graphs(BATCH), "norm", "tanh", "dropout"])
def test_bits_do_not_depend_on_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only our own work is split here: products of matrices are PyTorch's."""
    others = {
        "norm": cases.norm(1000, training=True),
        "tanh": cases.activation(1000),
        "dropout": cases.dropped(1000),
    }
    case = others.get(name) or cases.on_graphs(Batch.from_data_list(BATCH.to_data_list() * 8))[name]

    def with_threads(count: int) -> list[Tensor]:
        for module in ("gate", "principal", "tower_layers", "attention", "relu_sum", "norm", "tanh", "dropout"):
            monkeypatch.setattr(f"lspe.ops.fused.{module}.threads", lambda: count)
        with use("fused"):
            return case.results(torch.float32)

    alone = with_threads(1)
    for count in (2, 3):
        assert all(torch.equal(x, y) for x, y in zip(with_threads(count), alone, strict=True))
