"""Fused operators give what their plain twins give: values and gradients, on every kind of graph."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Batch, Data

from lspe.nn import PNA, SAN, GatedGCN, GraphiT, Topology, TowerPNA
from lspe.ops import use
from tests.graphs import CORNER_CASES, from_edges, random_batches
from tests.ops import cases
from tests.ops.cases import Case

any_graph = {"directed": True, "self_loops": True, "parallel_edges": True}


def largest_difference(ours: list[torch.Tensor], plain: list[torch.Tensor]) -> float:
    """Over all tensors, relative to the largest number in each."""
    assert [x.shape for x in ours] == [x.shape for x in plain]
    return max(
        ((x.double() - y).abs().max() / (1 + y.abs().max())).item()
        for x, y in zip(ours, plain, strict=True)
        if y.numel()
    )


def assert_equal_to_plain(case: Case) -> None:
    """In double to the last digits; in single as near to the plain result in double as the plain one in single."""
    with use("plain"):
        expected = case.results(torch.float64)
        rounding = largest_difference(case.results(torch.float32), expected)
    with use("fused"):
        assert largest_difference(case.results(torch.float64), expected) < 1e-11
        assert largest_difference(case.results(torch.float32), expected) < 5e-5 + 3 * rounding


@settings(max_examples=25, deadline=None)
@given(random_batches(max_nodes=12) | random_batches(max_nodes=9, **any_graph))
def test_random_batches(batch: Batch) -> None:
    for case in cases.on_graphs(batch).values():
        assert_equal_to_plain(case)


@pytest.mark.parametrize("name", CORNER_CASES)
def test_corner_cases(name: str) -> None:
    for case in cases.on_graphs(CORNER_CASES[name]).values():
        assert_equal_to_plain(case)


@pytest.mark.parametrize("width", [16, 17, 33])
def test_widths(width: int) -> None:
    batch = Batch.from_data_list([CORNER_CASES["decalin"], CORNER_CASES["one node"], CORNER_CASES["star"]])
    assert_equal_to_plain(cases.gate(batch, positions=True, width=width))
    assert_equal_to_plain(cases.principal(batch, towers=1, width=width))
    assert_equal_to_plain(cases.attention(batch, kernel=False, heads=1, width=width))
    assert_equal_to_plain(cases.norm(21, training=True, width=width))
    assert_equal_to_plain(cases.activation(21, width=width))


def large_graph(nodes: int) -> Data:
    """A hub that all others point to, and a random walk through all of them; edges in no order."""
    generator = torch.Generator().manual_seed(0)
    walk = torch.randperm(nodes, generator=generator)
    to_hub = torch.stack([torch.arange(1, nodes), torch.zeros(nodes - 1, dtype=torch.long)])
    edge_index = torch.cat([torch.stack([walk[:-1], walk[1:]]), to_hub], dim=1)
    return Data(edge_index=edge_index[:, torch.randperm(edge_index.size(1), generator=generator)], num_nodes=nodes)


@pytest.mark.parametrize("name", cases.on_graphs(from_edges(2, [(0, 1)])))
def test_one_large_graph(name: str) -> None:
    assert_equal_to_plain(cases.on_graphs(large_graph(500))[name])


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 400), st.tuples(*[st.booleans()] * 4))
def test_norm(rows: int, options: tuple[bool, bool, bool, bool]) -> None:
    training, relu, residual, scaled = options
    assert_equal_to_plain(cases.norm(rows, training=training, relu=relu, residual=residual, scaled=scaled))


@pytest.mark.parametrize("residual", [True, False])
def test_tanh(residual: bool) -> None:
    assert_equal_to_plain(cases.activation(70, residual=residual))


@pytest.mark.parametrize("training", [True, False])
def test_norm_is_that_of_pytorch(training: bool) -> None:
    """Against nn.BatchNorm1d itself, its running statistics too."""
    case = cases.norm(300, training=training, relu=False, residual=False, scaled=False)
    x, weight, bias, _ = case.inputs
    module = nn.BatchNorm1d(cases.WIDTH).double().train(training)
    module.load_state_dict({"weight": weight, "bias": bias}, strict=False)
    module.running_mean, module.running_var = cases.random(18, seed=5), cases.random(18, seed=6).abs()
    with use("fused"):
        y, mean, variance = case.run(*case.inputs)
    torch.testing.assert_close(y, module(x))
    torch.testing.assert_close(mean, module.running_mean)
    torch.testing.assert_close(variance, module.running_var)


def test_equal_messages_share_the_gradient_of_their_maximum() -> None:
    """With whole numbers ties are ties in both."""
    graph = from_edges(5, [(0, i) for i in range(1, 5)] + [(1, 2)])
    case = cases.principal(graph, towers=1, aggregators=("max", "min", "mean"))
    generator = torch.Generator().manual_seed(0)
    case.inputs = [torch.randint(-1, 2, x.shape, generator=generator).double() for x in case.inputs]
    case.inputs[0][2:] = case.inputs[0][1]
    case.inputs[1][:] = 1.0
    with use("plain"):
        expected = case.results(torch.float64)
    with use("fused"):
        for ours, theirs in zip(case.results(torch.float64), expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)


LAYERS = {
    "gatedgcn": lambda: GatedGCN(20, size_norm=True),
    "gatedgcn-lspe": lambda: GatedGCN(20, lspe=True, size_norm=True),
    "gatedgcn-lspe without residual": lambda: GatedGCN(20, lspe=True, residual=False),
    "pna-lspe": lambda: PNA(20, 20, delta=1.1, lspe=True),
    "tower-pna-lspe": lambda: TowerPNA(20, 20, delta=1.1, towers=5, lspe=True),
    "san-lspe": lambda: SAN(20, 4, lspe=True),
    "graphit": lambda: GraphiT(20, 4),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, training: bool) -> None:
    """All operators of a layer together, its parameters' gradients and buffers with them."""
    torch.manual_seed(0)
    layer = LAYERS[name]().double().train(training)
    batch = Batch.from_data_list(list(CORNER_CASES.values()))
    inputs = [cases.random(rows, 20, seed=rows) for rows in (batch.num_nodes, batch.num_nodes, batch.num_edges)]
    graph = Topology.of(batch).with_added_pair(cases.random(20, seed=1))
    arguments = [inputs[0], inputs[1] if layer.lspe else None, inputs[2], graph]
    state = {key: value.clone() for key, value in layer.state_dict().items()}
    results = []
    for choice in ("plain", "fused"):
        layer.load_state_dict(state)
        layer.zero_grad()
        with use(choice):
            h, p, e = layer(*arguments)
            (h.sin().sum() + (0 if p is None else p.sin().sum()) + e.sin().sum()).backward()
        gradients = [parameter.grad.clone() for parameter in layer.parameters() if parameter.grad is not None]
        results.append([h.detach(), e.detach(), *gradients, *[b.clone().double() for b in layer.buffers()]])
    assert largest_difference(results[1], results[0]) < 1e-11
