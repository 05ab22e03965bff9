"""Layers of full attention that follow each other are one operator, and give what they give one by one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from lspe.nn import SAN, BatchNorm, FullGraphLayer, GraphiT, PairAttention, Topology
from lspe.nn.sequence import run_layers
from lspe.ops import use
from lspe.ops.fused import memory
from lspe.ops.fused.dropout import draw_seeds
from lspe.ops.fused.layout import MOST_LAYERS
from tests.graphs import CORNER_CASES, from_edges
from tests.ops import cases
from tests.ops.test_equal_to_plain import large_graph, largest_difference

FEW = Batch.from_data_list(list(CORNER_CASES.values()))
MANY = Batch.from_data_list(list(CORNER_CASES.values()) * 30)
"""So many nodes that there are several pieces, and several groups of them."""
BATCHES = {
    "few": FEW,
    "many": MANY,
    "no edges": Batch.from_data_list([from_edges(3, []), from_edges(1, []), from_edges(70, [])]),
    "one node": Batch.from_data_list([from_edges(1, [])]),
    "large": Batch.from_data_list([large_graph(200), CORNER_CASES["star"]]),
    "loops and parallel edges": Batch.from_data_list([from_edges(4, [(0, 0), (0, 1), (0, 1), (2, 1), (3, 3)])] * 3),
}

san, graphit = partial(SAN), partial(GraphiT, steps=3)
STACKS: dict[str, tuple[int, int, bool, list[Callable[..., FullGraphLayer]]]] = {
    "san": (20, 4, True, [san, san, san]),
    "graphit": (20, 5, True, [graphit, partial(GraphiT, beta=0.5, steps=2), graphit]),
    "no positions": (20, 2, False, [san, san]),
    "kernels without positions": (33, 3, False, [graphit, graphit]),
    "both kinds": (16, 1, True, [san, graphit, san]),
    "residual in some": (24, 8, True, [san, partial(SAN, residual=False), graphit]),
    "dropout": (20, 4, True, [partial(SAN, dropout=0.3), san, partial(GraphiT, dropout=0.1, residual=False)]),
    "a head per channel": (18, 18, True, [san, graphit]),
    "more than a call takes": (16, 4, False, [san] * (MOST_LAYERS + 2)),
}


class Given(NamedTuple):
    """What goes into the layers; ``rows`` are features of edges, or of types of edges."""

    h: Tensor
    p: Tensor | None
    rows: Tensor
    added_pair: Tensor

    def tensors(self) -> list[Tensor]:
        return [x for x in self if x is not None]


def build(name: str) -> list[FullGraphLayer]:
    torch.manual_seed(0)
    dim, heads, lspe, kinds = STACKS[name]
    layers = [kind(dim, heads, lspe=lspe).double() for kind in kinds]
    gamma = nn.Parameter(torch.tensor([0.2], dtype=torch.float64))
    for layer in layers:
        if isinstance(layer, SAN):
            layer.gamma = gamma  # one for all, as in a network
    for norm in (part for layer in layers for part in layer.modules() if isinstance(part, BatchNorm)):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias, std=0.3)
        nn.init.normal_(norm.running_mean, std=0.1)
    return layers


def given_for(
    layers: Sequence[FullGraphLayer], batch: Batch, types: bool = False, dtype: torch.dtype = torch.float64
) -> Given:
    dim, lspe, nodes = layers[0].dim, layers[0].lspe, int(batch.num_nodes)
    h, p, added = (cases.random(*shape, seed=seed) for seed, shape in enumerate([(nodes, dim), (nodes, dim), (dim,)]))
    rows = cases.edge_rows(Topology.of(batch), dim, types)
    return Given(*(None if x is None else x.to(dtype).requires_grad_() for x in (h, p if lspe else None, rows, added)))


def at_once(layers: Sequence[FullGraphLayer], given: Given, batch: Batch, types: bool = False) -> list[Tensor]:
    graph = Topology.of(batch)
    e = cases.edges_of(given.rows, graph, types)
    found = run_layers(layers, given.h, given.p, e, graph.with_added_pair(given.added_pair))
    assert found[2] is e
    return [x for x in found[:2] if x is not None]


def one_by_one(layers: Sequence[FullGraphLayer], given: Given, batch: Batch, types: bool = False) -> list[Tensor]:
    """In plain PyTorch, with the numbers for dropout that the operator draws."""
    drops = [layer.training and layer.dropout > 0 for layer in layers]
    seeds = [draw_seeds(3) if drop else [None] * 3 for drop in drops]
    h, p, graph = given.h, given.p, Topology.of(batch).with_added_pair(given.added_pair)
    with use("plain"):
        e = cases.edges_of(given.rows, graph, types)
        for layer, drawn in zip(layers, seeds, strict=True):
            h, p = layer.equations(h, p, e, graph, layer.pair_factors(graph, h), drawn)
    return [x for x in (h, p) if x is not None]


def parameters_of(layers: Sequence[nn.Module]) -> list[Tensor]:
    return list(nn.ModuleList(layers).parameters())


def results(
    run: Callable[..., list[Tensor]],
    layers: Sequence[FullGraphLayer],
    batch: Batch,
    types: bool = False,
    used: str = "hp",
) -> list[Tensor]:
    """What comes out, all gradients, all running statistics."""
    state = [{key: value.clone() for key, value in layer.state_dict().items()} for layer in layers]
    given = given_for(layers, batch, types)
    torch.manual_seed(5)
    found = run(layers, given, batch, types)
    wanted = [x for name, x in zip("hp", found, strict=False) if name in used]
    inputs = given.tensors() + parameters_of(layers)
    loss = sum(x.sin().sum() for x in wanted)
    gradients = torch.autograd.grad(loss, inputs, materialize_grads=True, allow_unused=True)  # type: ignore[arg-type]
    buffers = [buffer.clone().double() for layer in layers for buffer in layer.buffers()]
    for layer, before in zip(layers, state, strict=True):
        layer.load_state_dict(before)
    return [*(x.detach() for x in found), *gradients, *buffers]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", STACKS)
def test_equal_to_one_by_one(name: str, training: bool) -> None:
    layers = [layer.train(training) for layer in build(name)]
    for batch in BATCHES.values():
        expected = results(one_by_one, layers, batch)
        with use("fused"):
            assert largest_difference(results(at_once, layers, batch), expected) < 1e-10


@pytest.mark.parametrize("batch", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", ["san", "graphit", "no positions"])
def test_edges_of_few_types(name: str, batch: Batch) -> None:
    layers = build(name)
    expected = results(one_by_one, layers, batch, True)
    with use("fused"):
        assert largest_difference(results(at_once, layers, batch, True), expected) < 1e-10


@pytest.mark.parametrize("used", ["h", "p"])
def test_streams_that_nobody_uses(used: str) -> None:
    layers = build("san")
    with use("fused"):
        found = results(at_once, layers, FEW, used=used)
    assert largest_difference(found, results(one_by_one, layers, FEW, used=used)) < 1e-10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", STACKS)
def test_evaluation_without_gradients_is_that_with_them(name: str, batch: Batch, dtype: torch.dtype) -> None:
    """A piece goes through a whole layer then, and nothing is kept."""
    layers = [layer.eval().to(dtype) for layer in build(name)]
    given = given_for(layers, batch, dtype=dtype)
    with use("fused"):
        expected = at_once(layers, given, batch)
        with torch.inference_mode():
            found = at_once(layers, given, batch)
        with torch.no_grad():
            again = at_once(layers, given, batch)
    for x, y, z in zip(expected, found, again, strict=True):
        assert torch.equal(x, y)
        assert torch.equal(x, z)


def test_a_number_that_is_clamped() -> None:
    """γ at its limits, where the factor of added pairs is zero, and beyond them, where γ has no gradient."""
    for value in (0.0, 1.0, -3.0):
        layers = build("san")
        nn.init.constant_(layers[0].gamma, value)  # type: ignore[arg-type]
        expected = results(one_by_one, layers, FEW)
        with use("fused"):
            assert largest_difference(results(at_once, layers, FEW), expected) < 1e-10


def test_frozen_norms_and_cumulative_averages() -> None:
    layers = build("san")
    layers[0].norm_h.eval()
    layers[1].norm_attention.eval()
    layers[2].norm_h.momentum = None
    layers[2].norm_h.num_batches_tracked.fill_(3)
    expected = results(one_by_one, layers, MANY)
    with use("fused"):
        assert largest_difference(results(at_once, layers, MANY), expected) < 1e-10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("types", [False, True])
@pytest.mark.parametrize("batch", [FEW, MANY, BATCHES["large"]], ids=["few", "many", "large"])
def test_the_same_bits_for_any_number_of_threads(batch: Batch, types: bool, dtype: torch.dtype) -> None:
    layers = [layer.to(dtype) for layer in build("dropout")]
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 8):
            torch.set_num_threads(threads)
            torch.manual_seed(5)
            given = given_for(layers, batch, types, dtype)
            with use("fused"):
                out = at_once(layers, given, batch, types)
            inputs = given.tensors() + parameters_of(layers)
            found.append([*out, *torch.autograd.grad(sum(x.square().sum() for x in out), inputs)])  # type: ignore
            for layer in layers:
                layer.norm_attention.reset_running_stats()
                layer.norm_h.reset_running_stats()
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


@pytest.mark.parametrize("place", ["", "attention_h", "attention_p", "O_p", "W1", "norm_attention"])
def test_a_part_somebody_listens_to_is_called(place: str) -> None:
    layers = build("san")
    expected = results(one_by_one, layers, FEW)
    seen: list[object] = []
    layers[1].get_submodule(place).register_forward_hook(lambda *found: seen.append(found))
    found = results(at_once, layers, FEW)
    assert len(seen) == 1
    assert largest_difference(found, expected) < 1e-10


class Negative(nn.Module):
    """An attention of somebody's own."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = PairAttention(20, 20, 4)

    def forward(self, *given: object) -> Tensor:
        return -self.attention(*given)  # type: ignore[no-any-return]


def test_parts_that_are_no_ordinary_ones() -> None:
    others = {
        "W2": nn.Linear(40, 20, bias=False),
        "O": nn.Sequential(nn.Linear(20, 20)),
        "attention_p": Negative(),
        "attention_h": PairAttention(40, 20, 2),
    }
    for place, other in others.items():
        layers = build("san")
        setattr(layers[0], place, other.double())
        expected = results(one_by_one, layers, FEW)
        assert largest_difference(results(at_once, layers, FEW), expected) < 1e-10


def test_what_comes_out_can_be_differentiated_twice() -> None:
    found = []
    for run in (one_by_one, at_once):
        layers = build("both kinds")
        given = given_for(layers, FEW)
        wanted = [given.h, given.added_pair, parameters_of(layers)[0]]
        first = torch.autograd.grad(run(layers, given, FEW)[0].sin().sum(), wanted, create_graph=True)
        found.append(torch.autograd.grad(sum(x.square().sum() for x in first), wanted))
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-8, atol=1e-8)


def test_a_second_backward_pass_after_others_took_the_memory() -> None:
    """The next forward pass writes over what the first left: its gradients are then those of the plain twin."""
    layers = build("dropout")
    given = given_for(layers, FEW)
    with use("fused"):
        out = at_once(layers, given, FEW)[0].sin().sum()
        (first,) = torch.autograd.grad(out, [given.h], retain_graph=True)
        (at_once_again,) = torch.autograd.grad(out, [given.h], retain_graph=True)
        at_once(layers, given_for(layers, FEW), FEW)
        (later,) = torch.autograd.grad(out, [given.h])
    assert torch.equal(first, at_once_again)
    assert largest_difference([later], [first]) < 1e-11


def test_memory_is_taken_again_and_a_bounded_number_kept() -> None:
    layers = build("san")
    given = given_for(layers, FEW)
    with use("fused"):
        for _ in range(3):
            at_once(layers, given, FEW)[0].sum().backward()
        free = list(memory._free)
        with torch.no_grad():
            at_once(layers, given, FEW)
    assert {id(block) for block in memory._free} == {id(block) for block in free}
    assert len(memory._free) <= memory._MOST_FREE


def test_numbers_that_are_none_stay_in_their_graph() -> None:
    layers = [layer.eval() for layer in build("san")]
    given = given_for(layers, FEW)
    with torch.no_grad(), use("fused"):
        given.h[0] = torch.nan
        h, _ = at_once(layers, given, FEW)
    spoiled = FEW.batch == FEW.batch[0]
    assert h[spoiled].isnan().all()
    assert h[~spoiled].isfinite().all()
