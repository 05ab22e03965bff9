"""Properties that every layer has, on graphs with isolated nodes, without edges and of one node."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch_geometric.data import Batch

from lspe import ops, testing
from lspe.nn import GatedGCN, Topology
from lspe.ops.choice import Choice
from tests.graphs import CORNER_CASES, random_batches
from tests.nn.builders import LAYERS, call, call_nodes, make_layer, with_inputs

layers = pytest.mark.parametrize("name", LAYERS)
quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@layers
@given(batch=random_batches())
@quick
def test_permutation_equivariance(name: str, batch: Batch) -> None:
    layer = make_layer(name)
    data = with_inputs(batch, layer)
    for mode in (True, False):
        layer.train(mode)
        testing.check_permutation_equivariance(lambda d: call_nodes(layer, d), data, tolerance=1e-9)


@layers
@given(batch=random_batches(min_graphs=2))
@quick
def test_batch_equals_singles(name: str, batch: Batch) -> None:
    layer = make_layer(name).eval()
    graphs = [with_inputs(graph, layer, seed) for seed, graph in enumerate(batch.to_data_list())]
    testing.check_batch_equals_singles(lambda d: call_nodes(layer, d), graphs, tolerance=1e-9)


@layers
@given(batch=random_batches())
@quick
def test_values_and_gradients_are_finite(name: str, batch: Batch) -> None:
    layer = make_layer(name)
    data = with_inputs(batch, layer)
    testing.check_finite(lambda d: call_nodes(layer, d), data, layer)
    h, p, e = call(layer, data)
    assert h.shape == data.h.shape
    assert e.shape == data.edge_attr.shape
    assert (p is None) == (not layer.lspe)


@layers
def test_gradcheck(name: str) -> None:
    layer = make_layer(name)
    graphs = Batch.from_data_list([CORNER_CASES[key] for key in ("star", "first and last node isolated", "one node")])
    data = with_inputs(graphs, layer)
    inputs = [data[key].requires_grad_() for key in ("h", "p", "edge_attr") if key in data]

    def function(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(out for out in call(layer, data) if out is not None)

    for mode in (True, False):
        layer.train(mode)
        assert torch.autograd.gradcheck(function, (*inputs, *layer.parameters()), atol=1e-6, fast_mode=True)


@layers
def test_one_row_leaves_the_statistics_alone(name: str) -> None:
    """One node has no variance: the running statistics stay what they are, and nothing fails."""
    layer = make_layer(name).train()
    before = {key: value.clone() for key, value in layer.named_buffers()}
    call(layer, with_inputs(Batch.from_data_list([CORNER_CASES["one node"]]), layer))
    for key, value in layer.named_buffers():
        assert torch.equal(value, before[key]), key


@pytest.mark.parametrize("name", [name for name in LAYERS if "lspe" in name or "wrapped" in name])
def test_positions_do_not_see_the_structure(name: str) -> None:
    """f_p takes p and e only: another h leaves p as it is (in GatedGCN h enters through the gate alone)."""
    layer = make_layer(name).eval()
    data = with_inputs(CORNER_CASES["decalin"], layer)
    _, p, _ = call(layer, data)
    data.h = data.h + 1
    h, p_again, _ = call(layer, data)
    if name == "gatedgcn-lspe":
        assert (p - p_again).abs().max() > 1e-6
    else:
        assert torch.equal(p, p_again)
    data.p = data.p + 1
    assert (call(layer, data)[0] - h).abs().max() > 1e-6, "the structure has to see the positions"


@pytest.mark.parametrize("operators", ["plain", "fused"])
def test_what_is_dropped_of_a_branch_leaves_the_stream(operators: Choice) -> None:
    graphs = Batch.from_data_list([CORNER_CASES[key] for key in ("star", "first and last node isolated", "one node")])
    given = [torch.randn(rows, 16) for rows in (graphs.num_nodes, graphs.num_nodes, graphs.num_edges)]
    with ops.use(operators):
        kept = GatedGCN(16, lspe=True, dropout=1.0, drop="branch")(*given, Topology.of(graphs))
        nothing = GatedGCN(16, lspe=True, dropout=1.0, drop="stream")(*given, Topology.of(graphs))
    torch.testing.assert_close(list(kept), given)
    assert not any(stream.any() for stream in nothing)


def test_the_pair_that_a_layer_asks_for_has_the_gradients_of_where_it_was_given() -> None:
    """Also where the layer is in a checkpoint, which runs it without them first."""
    weight = torch.ones(3, requires_grad=True)
    graph = Topology(torch.tensor([[0], [1]]), 2)
    given = graph.with_added_pair(lambda: 2 * weight)
    with torch.no_grad():
        assert given.added_pair.requires_grad
        without = graph.with_added_pair(lambda: 2 * weight)
    assert not without.added_pair.requires_grad
    assert torch.is_grad_enabled()
