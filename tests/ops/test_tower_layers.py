"""PNA layers with towers that follow each other are one operator, and give what they give one by one in PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from lspe.nn import Topology, TowerPNA
from lspe.nn.sequence import run_layers
from lspe.ops import use
from lspe.ops.fused import memory
from lspe.ops.fused.dropout import draw_seeds
from lspe.ops.fused.layout import MOST_LAYERS
from lspe.ops.fused.library import Library
from lspe.ops.fused.look_ups import look_up
from tests.graphs import CORNER_CASES, from_edges
from tests.ops import cases
from tests.ops.test_equal_to_plain import largest_difference

WIDTH, EDGE, TYPES = 20, 7, 3
FEW = Batch.from_data_list(list(CORNER_CASES.values()))
STAR = from_edges(400, [(0, leaf) for leaf in range(1, 300)])
"""One node of many messages, many of one, a hundred of none."""
MANY = Batch.from_data_list([*list(CORNER_CASES.values()) * 30, STAR])
"""So many nodes that there are several segments of each degree, and several groups of them."""

STACKS: dict[str, tuple[bool, list[dict[str, Any]]]] = {
    "positions": (True, [{}, {}, {}]),
    "no positions": (False, [{}, {}]),
    "size norm in some": (True, [{"size_norm": True}, {"size_norm": False}]),
    "residual in some": (True, [{}, {"residual": False}, {}]),
    "dropout": (True, [{"dropout": 0.3}, {"dropout": 0.0}, {"dropout": 0.1, "residual": False}]),
    "one tower": (True, [{"towers": 1}, {"towers": 1}]),
    "towers of one channel": (True, [{"towers": 20}, {"towers": 20}]),
    "all aggregators": (True, [{"aggregators": ["std", "sum", "max", "mean", "min"]}] * 2),
    "one aggregator": (True, [{"aggregators": ["max"], "scalers": ["attenuation"]}] * 2),
    "one twice": (True, [{"aggregators": ["max", "max"]}] * 2),
    "different ones": (True, [{}, {"delta": 1.3}, {"towers": 4}]),
    "more than a call takes": (False, [{}] * (MOST_LAYERS + 2)),
}


def build(name: str) -> list[TowerPNA]:
    torch.manual_seed(0)
    lspe, options = STACKS[name]
    layers = [TowerPNA(WIDTH, EDGE, **{"delta": 1.1, "towers": 5, **some}, lspe=lspe).double() for some in options]
    for layer in layers:
        for parameter in layer.parameters():
            nn.init.normal_(parameter, std=0.2)
        nn.init.uniform_(layer.norm_h.weight, 0.5, 1.5)
        nn.init.normal_(layer.norm_h.running_mean, std=0.1)
    return layers


def streams(batch: Batch, lspe: bool, dtype: torch.dtype = torch.float64) -> list[Tensor | None]:
    """h, p and a row for each type of edges."""
    h, p, table = (cases.random(rows, width, seed=rows) for rows, width in (
        (batch.num_nodes, WIDTH), (batch.num_nodes, WIDTH), (TYPES, EDGE)
    ))  # fmt: skip
    return [x if x is None else x.to(dtype).requires_grad_() for x in (h, p if lspe else None, table)]


def edges_of(table: Tensor, batch: Batch) -> Tensor:
    return look_up(table, torch.arange(batch.num_edges) * 7 % 5 % TYPES)


def one_by_one(layers: Sequence[TowerPNA], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> Any:
    """In plain PyTorch, with the numbers for dropout that the operator draws."""
    drops = [layer.training and layer.dropout > 0 for layer in layers]
    seeds = [draw_seeds(2) if drop else [None] * 2 for drop in drops]
    with use("plain"):
        for layer, drawn in zip(layers, seeds, strict=True):
            h, p, e = layer.equations(h, p, e, graph, drawn)
    return h, p, e


def results(
    run: Callable[..., Any], layers: Sequence[TowerPNA], batch: Batch, used: str = "hp", *, types: bool = True
) -> list[Tensor]:
    """What comes out, all gradients, all running statistics."""
    state = [{key: value.clone() for key, value in layer.state_dict().items()} for layer in layers]
    dtype = layers[0].norm_h.weight.dtype
    h, p, table = streams(batch, layers[0].lspe, dtype)
    rows = table if types else cases.random(batch.num_edges, EDGE, seed=3).to(dtype).requires_grad_()
    assert rows is not None
    torch.manual_seed(5)
    found = run(layers, h, p, edges_of(rows, batch) if types else rows, Topology.of(batch))
    wanted = [x for name, x in zip("hp", found, strict=False) if x is not None and name in used]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    inputs = [x for x in (h, p, rows) if x is not None]
    loss = sum(x.sin().sum() for x in wanted)
    gradients = torch.autograd.grad(loss, inputs + parameters, materialize_grads=True)  # type: ignore[arg-type]
    buffers = [buffer.clone().double() for layer in layers for buffer in layer.buffers()]
    for layer, before in zip(layers, state, strict=True):
        layer.load_state_dict(before)
    return [*(x.detach() for x in found[:2] if x is not None), *gradients, *buffers]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", STACKS)
def test_equal_to_one_by_one(name: str, training: bool) -> None:
    layers = [layer.train(training) for layer in build(name)]
    for batch, types in ((FEW, True), (MANY, True), (MANY, False)):
        expected = results(one_by_one, layers, batch, types=types)
        with use("auto" if name == "one twice" else "fused"):
            assert largest_difference(results(run_layers, layers, batch, types=types), expected) < 1e-10


@pytest.mark.parametrize("name", CORNER_CASES)
def test_a_graph_alone(name: str) -> None:
    """One node has no variance, and a graph without edges no messages."""
    layers, batch = build("positions"), Batch.from_data_list([CORNER_CASES[name]])
    expected = results(one_by_one, layers, batch)
    with use("fused"):
        assert largest_difference(results(run_layers, layers, batch), expected) < 1e-10


@pytest.mark.parametrize("used", ["h", "p"])
def test_streams_that_nobody_uses(used: str) -> None:
    layers = build("positions")
    with use("fused"):
        found = results(run_layers, layers, FEW, used)
    assert largest_difference(found, results(one_by_one, layers, FEW, used)) < 1e-10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["positions", "no positions", "more than a call takes"])
def test_evaluation_without_gradients_is_that_with_them(name: str, dtype: torch.dtype) -> None:
    layers = [layer.eval().to(dtype) for layer in build(name)]
    h, p, table = streams(MANY, layers[0].lspe, dtype)
    with use("fused"):
        assert h is not None
        assert table is not None
        expected = run_layers(layers, h, p, edges_of(table, MANY), Topology.of(MANY))
        with torch.inference_mode():
            found = run_layers(layers, h, p, edges_of(table, MANY), Topology.of(MANY))
    for x, y in zip(expected, found, strict=True):
        assert (x is None and y is None) or torch.equal(x, y)  # type: ignore[arg-type]


def test_frozen_norms_and_cumulative_averages() -> None:
    layers = build("positions")
    layers[0].norm_h.eval()
    layers[2].norm_h.momentum = None
    layers[2].norm_h.num_batches_tracked.fill_(3)
    expected = results(one_by_one, layers, MANY)
    with use("fused"):
        assert largest_difference(results(run_layers, layers, MANY), expected) < 1e-10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("types", [True, False])
def test_the_same_bits_for_any_number_of_threads(
    dtype: torch.dtype, types: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [layer.to(dtype) for layer in build("dropout")]
    found = []
    for count in (1, 2, 3, 8):
        monkeypatch.setattr("lspe.ops.fused.tower_layers.threads", lambda count=count: count)
        with use("fused"):
            found.append(results(run_layers, layers, MANY, types=types))
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


@pytest.mark.parametrize("part", ["", "norm_h", "mix_p", "aggregate_h"])
def test_what_somebody_listens_to_is_called(part: str) -> None:
    layers = build("positions")
    expected = results(one_by_one, layers, FEW)
    seen: list[object] = []
    layers[1].get_submodule(part).register_forward_hook(lambda *_: seen.append(None))
    with use("auto"):
        found = results(run_layers, layers, FEW)
    assert len(seen) == 1
    assert largest_difference(found, expected) < 1e-10


def test_others_in_the_place_of_its_parts() -> None:
    layers = build("positions")

    class Doubled(TowerPNA):
        def _normalized_structure(self, *arguments: Any, **options: Any) -> Tensor:
            return 2 * super()._normalized_structure(*arguments, **options)

    class Itself(nn.Module):
        def forward(self, x: Tensor, e: Tensor, graph: Topology) -> Tensor:
            return x

    layers[0].__class__ = Doubled
    layers[1].aggregate_p = Itself()  # type: ignore[assignment]
    layers.append(build("positions")[1])
    layers[3].aggregate_h = nn.Module()  # type: ignore[assignment]
    layers[3].aggregate_h.forward = lambda x, e, graph: x[:, WIDTH:]  # type: ignore[method-assign]
    layers[1].mix_p = nn.Sequential(layers[1].mix_p, nn.Tanh())  # type: ignore[assignment]
    layers[2].aggregate_h.forward = lambda x, e, graph: x[:, :WIDTH]  # type: ignore[method-assign]
    expected = results(one_by_one, layers, FEW)
    with use("auto"):
        assert largest_difference(results(run_layers, layers, FEW), expected) < 1e-10


def test_what_comes_out_can_be_differentiated_twice() -> None:
    found = []
    for run in (one_by_one, run_layers):
        layers, (h, p, table) = build("positions"), streams(FEW, True)
        out = run(layers, h, p, edges_of(table, FEW), Topology.of(FEW))  # type: ignore[arg-type]
        (first,) = torch.autograd.grad(out[0].sin().sum(), [h], create_graph=True)  # type: ignore[list-item]
        found.append(torch.autograd.grad(first.square().sum(), [h, p, table]))  # type: ignore[list-item]
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-8, atol=1e-8)


def test_a_second_backward_pass_after_others_took_the_memory() -> None:
    """The next forward pass writes over what the first left: its gradients are then those of the plain twin."""
    layers, (h, p, table), graph = build("dropout"), streams(FEW, True), Topology.of(FEW)
    assert h is not None
    assert table is not None
    with use("fused"):
        out = run_layers(layers, h, p, edges_of(table, FEW), graph)[0].sin().sum()
        (first,) = torch.autograd.grad(out, [h], retain_graph=True)
        (at_once,) = torch.autograd.grad(out, [h], retain_graph=True)
        run_layers(layers, 2 * h.detach(), p, edges_of(table, FEW), graph)
        (later,) = torch.autograd.grad(out, [h])
    assert torch.equal(first, at_once)
    assert largest_difference([later], [first]) < 1e-11


def test_memory_is_taken_again() -> None:
    layers, (h, p, table), graph = build("positions"), streams(FEW, True), Topology.of(FEW)
    assert h is not None
    assert table is not None
    with use("fused"):
        for _ in range(3):
            run_layers(layers, h, p, edges_of(table, FEW), graph)[0].sum().backward()
        free = list(memory._free)
        with torch.no_grad():
            run_layers(layers, h, p, edges_of(table, FEW), graph)
    assert {id(block) for block in memory._free} == {id(block) for block in free}


SPOILED: dict[str, Callable[[dict[str, Any]], None]] = {
    "too little memory": lambda call: call.update(memory=[x[:-1] for x in call["memory"]]),
    "fewer memories": lambda call: call.update(memories=1),
    "no towers": lambda call: call.update(towers=0),
    "towers that do not divide": lambda call: call.update(towers=3),
    "an aggregator twice": lambda call: call["kinds"].copy_(torch.tensor([1, 1, 2, 3])),
    "an unknown aggregator": lambda call: call["kinds"].fill_(5),
    "a type that is not in the table": lambda call: call.update(kind=call["kind"] + TYPES),
    "a table that is too narrow": lambda call: call.update(table=call["table"][:, 1:]),
    "too few nodes": lambda call: call["edges"].update(nodes=call["edges"]["nodes"] - 1),
    "a source outside": lambda call: call["edges"].update(source=call["edges"]["source"] + 1000),
    "an edge twice": lambda call: call["edges"].update(in_edge=torch.zeros_like(call["edges"]["in_edge"])),
    "a narrow map": lambda call: call["layer"][1].update(update=[x[:, :-1] for x in call["layer"][1]["update"]]),
    "a short bias": lambda call: call["layer"][2].update(mix_bias=[x[1:] for x in call["layer"][2]["mix_bias"]]),
}


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("name", SPOILED)
def test_the_border_refuses(name: str, direction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the plain twin gives the results."""
    call, layers = Library.call, build("positions")
    expected = results(one_by_one, layers, FEW)

    def spoiling(native: Library, function: str, **fields: Any) -> None:
        if function == f"tower_layers_{direction}":
            SPOILED[name](fields)
        call(native, function, **fields)

    monkeypatch.setattr(Library, "call", spoiling)
    with use("auto"):
        assert largest_difference(results(run_layers, layers, FEW), expected) < 1e-10
