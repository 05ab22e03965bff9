"""The operators as PyTorch sees them: gradients, gradients of gradients, recorded graphs."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from lspe.experiment import build_network, load_preset
from lspe.nn import SAN, GatedGCN, Topology
from lspe.ops import Edges, use
from tests.graphs import CORNER_CASES
from tests.ops import cases

BATCH = Batch.from_data_list([CORNER_CASES["star"], CORNER_CASES["one node"], CORNER_CASES["path"]])
CASES = {
    "gate with positions": cases.gate(BATCH, positions=True, width=16, training=True),
    "gate without residual": cases.gate(BATCH, positions=True, width=17, residual=False),
    "gate": cases.gate(BATCH, positions=False, width=16),
    "aggregation": cases.principal(BATCH, towers=2, width=4, aggregators=("mean", "max", "min", "std", "sum")),
    "attention with numbers": cases.attention(BATCH, kernel=False, heads=2, width=4),
    "attention with a kernel": cases.attention(BATCH, kernel=True, heads=2, width=4),
    "messages": cases.messages(BATCH, width=4),
    "aggregation of types": cases.principal(BATCH, towers=2, width=4, types=True),
    "attention of types": cases.attention(BATCH, kernel=True, heads=2, width=4, types=True),
    "messages of types": cases.messages(BATCH, width=4, types=True),
    "norm in training": cases.norm(6, training=True, width=16),
    "norm in evaluation": cases.norm(6, training=False, width=16),
    "tanh": cases.activation(3, width=16),
    "dropout": cases.dropped(3, width=16),
}


@pytest.mark.parametrize("name", CASES)
def test_hand_written_gradients(name: str) -> None:
    """Against differences, in double."""
    case = CASES[name]
    inputs = [x.clone().requires_grad_() for x in case.inputs]
    with use("fused"):
        assert torch.autograd.gradcheck(lambda *x: case.run(*x)[0], inputs, fast_mode=True)


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name: str) -> None:
    """Gradients that are differentiated again are those of the plain twin."""
    case = CASES[name]
    found = []
    for choice in ("plain", "fused"):
        inputs = [x.clone().requires_grad_() for x in case.inputs]
        with use(choice if name != "dropout" else "fused"):
            loss = case.run(*inputs)[0].square().sum()
        first = torch.autograd.grad(loss, inputs, create_graph=True, materialize_grads=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), inputs, materialize_grads=True))
    for plain, fused in zip(*found, strict=True):
        torch.testing.assert_close(fused, plain, rtol=1e-9, atol=1e-9)


class OneLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = GatedGCN(20, lspe=True, size_norm=True)

    def forward(self, h: Tensor, p: Tensor, e: Tensor, edge_index: Tensor, batch: Tensor) -> tuple[Tensor, ...]:
        graph = Topology(edge_index, h.size(0), batch, num_graphs=len(BATCH))
        return self.layer(h, p, e, graph)  # type: ignore[no-any-return]


def test_export() -> None:
    """A layer exported with a free number of nodes and edges, in PyTorch's own operators, and run on other graphs."""
    torch.manual_seed(0)
    layer = OneLayer().eval()

    def arguments(batch: Batch) -> tuple[Tensor, ...]:
        h, p = torch.randn(2, batch.num_nodes, 20)
        return h, p, torch.randn(batch.num_edges, 20), batch.edge_index, batch.batch

    nodes, edges = torch.export.Dim("nodes"), torch.export.Dim("edges")
    shapes = ({0: nodes}, {0: nodes}, {0: edges}, {1: edges}, {0: nodes})
    program = torch.export.export(layer, arguments(BATCH), dynamic_shapes=shapes)
    assert "lspe" not in str(program.graph)
    others = arguments(Batch.from_data_list([CORNER_CASES["decalin"]] * 3))
    with torch.no_grad():
        for ours, exported in zip(layer(*others), program.module()(*others), strict=True):
            torch.testing.assert_close(exported, ours)


def test_an_edge_outside_the_graph() -> None:
    with pytest.raises(IndexError, match="edge 1 goes from 1 to 3, but the nodes are 0 to 2"):
        Edges(torch.tensor([[0, 1], [1, 3]]), 3)


@pytest.mark.parametrize("choice", ["plain", "fused"])
def test_an_edge_between_two_graphs(choice: Literal["plain", "fused"]) -> None:
    batch = Batch.from_data_list([CORNER_CASES["one edge"]] * 2)
    batch.edge_index[0, 1] = 3
    h, e = torch.randn(4, 16), torch.randn(4, 16)
    with use(choice), pytest.raises(ValueError, match=r"edge 1 \(3 → 0\) joins two graphs"):
        SAN(16, 2)(h, None, e, Topology.of(batch).with_added_pair(torch.zeros(16)))


def test_a_network_trains_with_either() -> None:
    """Twenty steps of a network from the same start end at the same loss."""
    preset = load_preset("zinc/gatedgcn-lspe")
    preset = preset.model_copy(update={"model": preset.model.model_copy(update={"layers": 3, "hidden_dim": 20})})
    torch.manual_seed(0)
    batch = Batch.from_data_list([CORNER_CASES["decalin"], CORNER_CASES["bicyclopentyl"], CORNER_CASES["tree"]])
    batch.x = torch.randint(0, 28, (batch.num_nodes,))
    batch.edge_attr = torch.randint(1, 4, (batch.num_edges,))
    batch.random_walk_pe = torch.rand(batch.num_nodes, preset.model.k)
    start = build_network(preset).state_dict()
    losses = []
    for choice in ("plain", "fused"):
        network = build_network(preset)
        network.load_state_dict(start)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        with use(choice):
            for _ in range(20):
                optimizer.zero_grad()
                loss = (network(batch).squeeze() - torch.tensor([1.0, -1.0, 0.5])).abs().mean()
                loss.backward()
                optimizer.step()
        losses.append(loss.item())
    assert losses[0] < 0.9
    assert losses[1] == pytest.approx(losses[0], abs=1e-3)
