"""The smallest, widest and most uneven batches, with any number of threads: what the plain twins give, nothing else."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINEConv

from lspe.encodings import laplacian_encoding, random_walk_encoding
from lspe.nn import LSPE, PNA, SAN, GatedGCN, GraphiT, Topology, TowerPNA
from lspe.ops import dropout, use
from tests.graphs import from_edges

DEGREE = 10_000
GRAPHS: dict[str, Data] = {
    "no graph": Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0, batch=torch.empty(0).long()),
    "one node": from_edges(1, []),
    "nodes without edges": from_edges(40, []),
    "a loop": Data(edge_index=torch.zeros(2, 1, dtype=torch.long), num_nodes=1),
    "many graphs": Batch.from_data_list([from_edges(3, [(0, 1)]), from_edges(1, []), from_edges(2, [(0, 1)])] * 300),
}


def star() -> Data:
    """One node of degree 10,000."""
    return from_edges(DEGREE + 1, [(0, leaf) for leaf in range(1, DEGREE + 1)])


def layers(width: int) -> list[nn.Module]:
    torch.manual_seed(0)
    sparse = [GatedGCN(width, lspe=True, size_norm=True), GatedGCN(width), PNA(width, width, delta=1.0, lspe=True)]
    sparse.append(TowerPNA(width, width, delta=1.0, towers=3 if width % 3 == 0 else 1, lspe=True))
    gine_h, gine_p = (GINEConv(nn.Linear(inputs, width), edge_dim=width) for inputs in (2 * width, width))
    return [*sparse, LSPE(gine_h, gine_p), SAN(width, 1, lspe=True), GraphiT(width, width)]


def results(layer: nn.Module, data: Data, width: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    graph = Topology.of(data).with_added_pair(random(width))
    rows = graph.num_nodes, graph.num_nodes, graph.edges.count
    h, p, e = (random(count, width).requires_grad_() for count in rows)
    outputs = [x for x in layer(h, p if layer.lspe else None, e, graph) if x is not None]
    loss = sum(x.square().sum() for x in outputs)
    wanted = [h, e, *layer.parameters()]
    gradients = torch.autograd.grad(loss, wanted, materialize_grads=True, allow_unused=True)
    return [x.detach() for x in (*outputs, *gradients)]


def assert_same(layer: nn.Module, data: Data, width: int) -> None:
    layer = layer.double().eval()
    with use("plain"):
        expected = results(layer, data, width, torch.float64)
    with use("fused" if width >= 16 else "auto"):  # narrower normalisations are left to PyTorch
        for ours, plain in zip(results(layer, data, width, torch.float64), expected, strict=True):
            torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-9)


@pytest.fixture(params=[1, 2, 8])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    for module in (
        "gate",
        "principal",
        "tower_layers",
        "attention",
        "full",
        "relu_sum",
        "norm",
        "tanh",
        "dropout",
        "small_graphs",
    ):
        monkeypatch.setattr(f"lspe.ops.fused.{module}.threads", lambda: request.param)
    return int(request.param)


@pytest.mark.parametrize("width", [1, 3, 257])
@pytest.mark.parametrize("name", GRAPHS)
def test_layers(name: str, width: int, threads: int) -> None:
    for layer in layers(width):
        assert_same(layer, GRAPHS[name], width)


@pytest.mark.parametrize("width", [1, 17])
def test_a_node_of_degree_10000(width: int, threads: int) -> None:
    for layer in layers(width)[:5]:  # full attention over all pairs of them would take gigabytes
        assert_same(layer, star(), width)


def test_dropout_of_anything(threads: int) -> None:
    for rows in (0, 1, 1000):
        for width in (0, 1, 257):
            out = dropout(torch.ones(rows, width), 0.5, True)
            assert out.shape == (rows, width)
            assert set(out.unique().tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("name", GRAPHS)
def test_encodings(name: str, threads: int) -> None:
    data = GRAPHS[name]
    for k in (1, 2, 7):
        with use("plain"):
            expected = random_walk_encoding(data.edge_index, data.num_nodes, k, batch=data.batch)
            values = laplacian_encoding(data.edge_index, data.num_nodes, k, batch=data.batch).values
        with use("fused"):
            ours = random_walk_encoding(data.edge_index, data.num_nodes, k, batch=data.batch)
            vectors, ours_values = laplacian_encoding(data.edge_index, data.num_nodes, k, batch=data.batch)
        torch.testing.assert_close(ours, expected)
        torch.testing.assert_close(ours_values, values)
        assert vectors.isfinite().all()
