"""A network in blocks gives what it gives on the whole graph."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv

from lspe.encodings import RandomWalkEncoding
from lspe.nn import LSPE, PNA, SAN, ContinuousEmbedder, EdgeSum, GatedGCN, Head, Network, Output, block_order, blocks
from lspe.nn.blocks import run_bounded, run_in_blocks
from tests.levels import random_graph

DIM = 16


def gat() -> LSPE:
    return LSPE(GATv2Conv(2 * DIM, DIM, edge_dim=DIM), GATv2Conv(DIM, DIM, edge_dim=DIM))


def gine() -> LSPE:
    update = nn.Sequential(nn.Linear(3 * DIM, DIM))
    convs = (GINEConv(nn.Linear(width, DIM), edge_dim=DIM) for width in (2 * DIM, DIM))
    return LSPE(*convs, dim=DIM, edge_update=update)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "gatedgcn": lambda: GatedGCN(DIM, lspe=True),
    "pna": lambda: PNA(DIM, DIM, delta=1.5, lspe=True, size_norm=False),
    "gat": gat,
    "gine": gine,
    "edge sum": lambda: EdgeSum(DIM, DIM),
}


def network_of(make: Callable[[], nn.Module], layers: int = 3, **options: object) -> Network:
    """Random weights, and statistics of BatchNorm that are not those it begins with."""
    torch.manual_seed(0)
    options = {"encoding": "rwpe", "k": 4, "lspe": True, "final": "structure+position", "readout": "none", **options}
    network = Network(
        ContinuousEmbedder(2, 1, DIM, DIM), [make() for _ in range(layers)], Head(DIM, 3), dim=DIM, **options
    ).double()
    for part in network.modules():
        if isinstance(part, nn.BatchNorm1d):
            nn.init.normal_(part.running_mean)
            nn.init.uniform_(part.running_var, 0.5, 2.0)
    return network.eval()


def graph(nodes: int = 200) -> Data:
    """With a hub, self loops, parallel edges, edges in one direction only and nodes without any."""
    data = random_graph(nodes, torch.Generator().manual_seed(1))
    hub = torch.stack([torch.arange(nodes // 2), torch.full((nodes // 2,), 7)])
    edges = torch.cat([data.edge_index, hub, hub[:, :5], torch.tensor([[3, 9], [3, 9]])], dim=1)
    edges = edges[:, (edges < nodes - 4).all(dim=0)]
    data.edge_index = edges[:, torch.randperm(edges.size(1), generator=torch.Generator().manual_seed(2))]
    data.edge_attr = torch.linspace(-1, 1, edges.size(1)).unsqueeze(1)
    return RandomWalkEncoding(4)(data)


def assert_same(one: Output, other: Output, rows: torch.Tensor | slice = slice(None)) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a[rows], b[rows], rtol=0, atol=1e-10)


@pytest.mark.parametrize("at_once", [1, 37, 500, 10**6])
@pytest.mark.parametrize("name", LAYERS)
def test_blocks_equal_the_whole(name: str, at_once: int) -> None:
    network, data = network_of(LAYERS[name]), graph()
    assert_same(run_in_blocks(network, data, edges_at_once=at_once), network.run(data))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("count", [1, 10, 200])
def test_only_what_is_asked_for_is_computed(name: str, count: int) -> None:
    network, data = network_of(LAYERS[name], layers=2), graph()
    targets = torch.zeros(200, dtype=torch.bool)
    targets[torch.randperm(200, generator=torch.Generator().manual_seed(3))[:count]] = True
    rows_seen = []
    network.layers[-1].register_forward_hook(lambda _, inputs, __: rows_seen.append(len(inputs[0])))
    found = run_in_blocks(network, data, targets, edges_at_once=300)
    assert_same(found, network.run(data), targets)
    assert not found.output[~targets].any()
    assert count > 10 or max(rows_seen[:-1]) < 200


@pytest.mark.parametrize(
    "options",
    [
        {"lspe": False, "final": "structure"},
        {"lspe": False, "final": "structure+encoding"},
        {"lspe": False, "final": "structure", "encoding": "none", "k": 0},
        {"normalize_positions": True},
        {"readout": "mean"},
    ],
    ids=str,
)
def test_every_use_of_positions_and_several_graphs(options: dict[str, object]) -> None:
    lspe = bool(options.get("lspe", True))
    network = network_of(lambda: GatedGCN(DIM, lspe=lspe), **options)
    batch = Batch.from_data_list([graph(60), graph(90)])
    with torch.no_grad():
        whole = network.run(batch)
    targets = torch.arange(150) % 2 == 0
    parts = run_in_blocks(network, batch, targets, edges_at_once=50)
    rows = slice(None) if options.keys() & {"normalize_positions", "readout"} else targets
    for a, b in zip(parts, whole, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a[rows], b[rows], rtol=0, atol=1e-10)


def test_edge_features_wait_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_order, "BYTES_IN_MEMORY", 0)
    network, data = network_of(LAYERS["gatedgcn"]), graph()
    assert_same(run_in_blocks(network, data, edges_at_once=100), network.run(data))


def test_large_graphs_go_in_blocks_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    network, data = network_of(LAYERS["gatedgcn"]), graph()
    calls: list[int] = []
    run = blocks.run_in_blocks
    monkeypatch.setattr(blocks, "run_in_blocks", lambda *given: calls.append(1) or run(*given))
    whole = run_bounded(network, data)
    assert not calls
    monkeypatch.setattr(blocks, "MOST_AT_ONCE", 100)
    assert_same(run_bounded(network, data), whole)
    assert calls
    run_bounded(network.train(), data)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("make", "options", "why"),
    [
        (lambda: GatedGCN(DIM, lspe=True, size_norm=True), {}, "GatedGCN with size_norm=True looks at more"),
        (lambda: SAN(DIM, 4, gamma=nn.Parameter(torch.tensor([0.1])), lspe=True), {}, "SAN looks at more"),
        (lambda: LSPE(GCNConv(2 * DIM, DIM), GCNConv(DIM, DIM)), {}, "LSPE looks at more"),
        (lambda: GatedGCN(DIM, lspe=True), {"encoding": "lappe", "signs": "invariant"}, "looks at neighbours before"),
    ],
)
def test_what_is_not_local_is_refused(make: Callable[[], nn.Module], options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        run_in_blocks(network_of(make, **options), graph())


def test_training_mode_is_refused() -> None:
    with pytest.raises(ValueError, match=r"call network\.eval\(\) first"):
        run_in_blocks(network_of(LAYERS["gatedgcn"]).train(), graph())
