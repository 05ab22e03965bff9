"""The operators as PyTorch sees them: gradients, registration, recorded graphs."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from lspe.experiment import build_network, load_preset
from lspe.nn import GatedGCN, Topology
from lspe.ops import Edges, use
from tests.graphs import CORNER_CASES
from tests.ops import cases

BATCH = Batch.from_data_list([CORNER_CASES["star"], CORNER_CASES["one node"], CORNER_CASES["path"]])
CASES = {
    "gate with positions": cases.gate(BATCH, positions=True, width=3),
    "gate": cases.gate(BATCH, positions=False, width=3),
    "aggregation": cases.principal(BATCH, towers=2, width=4, aggregators=("mean", "max", "min", "std", "sum")),
    "attention with numbers": cases.attention(BATCH, kernel=False, heads=2, width=4),
    "attention with a kernel": cases.attention(BATCH, kernel=True, heads=2, width=4),
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
def test_second_derivatives_are_refused(name: str) -> None:
    case = CASES[name]
    inputs = [x.clone().requires_grad_() for x in case.inputs]
    with use("fused"):
        (first,) = torch.autograd.grad(case.run(*inputs)[0].square().sum(), inputs[0], create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first.sum().backward()


class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
    """Keeps the calls of our operators with their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[torch._ops.OpOverload, tuple[object, ...]]] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if function.namespace == "lspe":
            self.calls.append((function, args))
        return function(*args, **(kwargs or {}))


def recorded_calls(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> list[tuple[torch._ops.OpOverload, tuple[object, ...]]]:
    """Every operator that a case and its gradient call, through torch.library."""
    monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)
    with use("fused"), Recorder() as recorder:
        CASES[name].results(torch.float32)
    monkeypatch.undo()
    return recorder.calls


@pytest.mark.parametrize("name", CASES)
def test_registration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schema, fake tensors, autograd and compilation of each operator, by PyTorch's own check."""
    calls = recorded_calls(monkeypatch, name)
    assert len(calls) >= 2
    for function, arguments in calls:
        fresh = tuple(
            x.detach().clone().requires_grad_(x.is_floating_point()) if isinstance(x, Tensor) else x for x in arguments
        )
        if function._schema.name.endswith("_backward"):
            fresh = tuple(x.detach() if isinstance(x, Tensor) else x for x in fresh)
        torch.library.opcheck(function, fresh)


def test_the_short_way_and_the_recorded_one_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in CASES.values():
        with use("fused"):
            short = case.results(torch.float32)
            monkeypatch.setattr("torch.compiler.is_compiling", lambda: True)
            recorded = case.results(torch.float32)
            monkeypatch.undo()
        assert all(torch.equal(x, y) for x, y in zip(short, recorded, strict=True))


class OneLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = GatedGCN(20, lspe=True, size_norm=True)

    def forward(self, h: Tensor, p: Tensor, e: Tensor, edge_index: Tensor, batch: Tensor) -> tuple[Tensor, ...]:
        graph = Topology(edge_index, h.size(0), batch, num_graphs=len(BATCH))
        return self.layer(h, p, e, graph)  # type: ignore[no-any-return]


def test_export() -> None:
    """A layer exported with a free number of nodes and edges, and run on other graphs."""
    torch.manual_seed(0)
    layer = OneLayer().eval()

    def arguments(batch: Batch) -> tuple[Tensor, ...]:
        h, p = torch.randn(2, batch.num_nodes, 20)
        return h, p, torch.randn(batch.num_edges, 20), batch.edge_index, batch.batch

    nodes, edges = torch.export.Dim("nodes"), torch.export.Dim("edges")
    shapes = ({0: nodes}, {0: nodes}, {0: edges}, {1: edges}, {0: nodes})
    with use("fused"):
        program = torch.export.export(layer, arguments(BATCH), dynamic_shapes=shapes)
    assert "lspe.gated_convolution" in str(program.graph)
    others = arguments(Batch.from_data_list([CORNER_CASES["decalin"]] * 3))
    with torch.no_grad():
        for ours, exported in zip(layer(*others), program.module()(*others), strict=True):
            torch.testing.assert_close(exported, ours)


def test_an_edge_outside_the_graph() -> None:
    edges = torch.tensor([[0, 1], [1, 3]])
    with pytest.raises(IndexError, match="edge 1 ends in node 3, but the nodes are 0 to 2"):
        _ = Edges(edges, 3).by_target


def test_an_edge_between_two_graphs() -> None:
    batch = Batch.from_data_list([CORNER_CASES["one edge"]] * 2)
    batch.edge_index[0, 1] = 3
    case = cases.attention(batch, kernel=False)
    with use("fused"), pytest.raises(ValueError, match=r"edge 1 \(3 → 0\) joins two graphs"):
        case.results(torch.float64)


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
