"""GatedGCN layers that follow each other are one operator, and give what they give one by one in plain PyTorch."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from lspe.nn import BatchNorm, GatedGCN, Topology
from lspe.nn.sequence import run_layers
from lspe.ops import use
from lspe.ops.fused import memory
from lspe.ops.fused.dropout import draw_seeds
from lspe.ops.fused.layout import MOST_LAYERS
from lspe.ops.fused.library import Refused
from lspe.ops.fused.look_ups import look_up, looked_up
from tests.graphs import CORNER_CASES
from tests.ops import cases
from tests.ops.test_equal_to_plain import largest_difference

WIDTH = 20
FEW = Batch.from_data_list(list(CORNER_CASES.values()))
MANY = Batch.from_data_list(list(CORNER_CASES.values()) * 30)
"""So many nodes that there are several pieces, and several groups of them."""

STACKS: dict[str, tuple[bool, list[dict[str, object]]]] = {
    "positions": (True, [{}, {}, {}]),
    "no positions": (False, [{}, {}]),
    "size norm in some": (True, [{"size_norm": True}, {}, {"size_norm": True}]),
    "residual in some": (True, [{}, {"residual": False}, {}]),
    "dropout": (True, [{"dropout": 0.3}, {"dropout": 0.0}, {"dropout": 0.1, "residual": False}]),
    "dropout of branches": (
        True,
        [{"dropout": 0.3, "drop": "branch"}, {"dropout": 0.2}, {"dropout": 0.1, "drop": "branch", "residual": False}],
    ),
    "dropout of branches, no positions": (False, [{"dropout": 0.3, "drop": "branch"}] * 2),
    "more than a call takes": (False, [{}] * (MOST_LAYERS + 2)),
}


def build(name: str, width: int = WIDTH) -> list[GatedGCN]:
    torch.manual_seed(0)
    lspe, options = STACKS[name]
    layers = [GatedGCN(width, lspe=lspe, **settings).double() for settings in options]  # type: ignore[arg-type]
    for norm in (part for layer in layers for part in layer.modules() if isinstance(part, BatchNorm)):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias, std=0.3)
        nn.init.normal_(norm.running_mean, std=0.1)
    return layers


def streams(batch: Batch, lspe: bool, width: int = WIDTH) -> list[Tensor | None]:
    h, p, e = (cases.random(rows, width, seed=rows) for rows in (batch.num_nodes, batch.num_nodes, batch.num_edges))
    return [h.requires_grad_(), p.requires_grad_() if lspe else None, e.requires_grad_()]


def one_by_one(layers: Sequence[GatedGCN], h: Tensor, p: Tensor | None, e: Tensor, graph: Topology) -> object:
    """In plain PyTorch, with the numbers for dropout that the operator draws."""
    drops = [layer.training and layer.dropout > 0 for layer in layers]
    seeds = [draw_seeds(3) if drop else [None] * 3 for drop in drops]
    with use("plain"):
        for layer, drawn in zip(layers, seeds, strict=True):
            h, p, e = layer.equations(h, p, e, graph, drawn)
    return h, p, e


def results(run: object, layers: Sequence[GatedGCN], batch: Batch, used: str = "hpe") -> list[Tensor]:
    """What comes out, all gradients, all running statistics."""
    state = [{key: value.clone() for key, value in layer.state_dict().items()} for layer in layers]
    given = streams(batch, layers[0].lspe, layers[0].dim)
    torch.manual_seed(5)
    found = run(layers, *given, Topology.of(batch))  # type: ignore[operator]
    wanted = [x for name, x in zip("hpe", found, strict=True) if x is not None and name in used]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    inputs = [x for x in given if x is not None]
    gradients = torch.autograd.grad(sum(x.sin().sum() for x in wanted), inputs + parameters, materialize_grads=True)
    buffers = [buffer.clone().double() for layer in layers for buffer in layer.buffers()]
    for layer, before in zip(layers, state, strict=True):
        layer.load_state_dict(before)
    return [*(x.detach() for x in found if x is not None), *gradients, *buffers]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", STACKS)
def test_equal_to_one_by_one(name: str, training: bool) -> None:
    layers = [layer.train(training) for layer in build(name)]
    for batch in (FEW, MANY):
        expected = results(one_by_one, layers, batch)
        with use("fused"):
            assert largest_difference(results(run_layers, layers, batch), expected) < 1e-10


@pytest.mark.parametrize("width", range(16, 32))
@pytest.mark.parametrize("name", ["positions", "no positions"])
def test_any_width(name: str, width: int) -> None:
    """However far whole vectors reach behind the last part of a row, kept for a gradient or not."""
    layers = build(name, width)
    expected = results(one_by_one, layers, FEW)
    with use("fused"):
        assert largest_difference(results(run_layers, layers, FEW), expected) < 1e-10
        given, graph = streams(FEW, layers[0].lspe, width), Topology.of(FEW)
        kept = run_layers([layer.eval() for layer in layers], *given, graph)
        with torch.no_grad():
            passed = run_layers(layers, *given, graph)
    assert largest_difference([x for x in passed if x is not None], [x for x in kept if x is not None]) < 1e-10


@pytest.mark.parametrize("used", ["h", "p", "e", "hp"])
def test_streams_that_nobody_uses(used: str) -> None:
    layers = build("positions")
    with use("fused"):
        assert (
            largest_difference(results(run_layers, layers, FEW, used), results(one_by_one, layers, FEW, used)) < 1e-10
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", STACKS)
def test_evaluation_without_gradients_is_that_with_them(name: str, batch: Batch, dtype: torch.dtype) -> None:
    """A piece goes through all layers at once then, and nothing is kept; also where a row is no whole vectors."""
    layers = [layer.eval().to(dtype) for layer in build(name)]
    given, graph = [None if x is None else x.to(dtype) for x in streams(batch, layers[0].lspe)], Topology.of(batch)
    with use("fused"):
        expected = run_layers(layers, *given, graph)  # type: ignore[arg-type]
        with torch.inference_mode():
            found = run_layers(layers, *given, graph)  # type: ignore[arg-type]
        with torch.no_grad():
            again = run_layers(layers, *given, graph)  # type: ignore[arg-type]
    for x, y, z in zip(expected, found, again, strict=True):
        assert (x is None and y is None) or (torch.equal(x, y) and torch.equal(x, z))  # type: ignore[arg-type]


def from_tables(batch: Batch) -> tuple[Tensor, Tensor]:
    """h and e of a few types each."""
    kinds = [torch.arange(rows) % 5 for rows in (batch.num_nodes, batch.num_edges)]
    h, e = (look_up(cases.random(5, WIDTH, seed=seed), kind) for seed, kind in enumerate(kinds))
    return h, e


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", ["positions", "no positions"])
def test_rows_that_were_looked_up_are_mapped_as_any_others(name: str, gradients: bool) -> None:
    layers = [layer.train(gradients) for layer in build(name)]
    p, graph = streams(MANY, layers[0].lspe)[1], Topology.of(MANY)
    with use("fused"), torch.set_grad_enabled(gradients):
        h, e = from_tables(MANY)
        assert looked_up(h) is not None
        assert looked_up(e) is not None
        found = run_layers(layers, h, p, e, graph)
        expected = run_layers(layers, h.clone(), p, e.clone(), graph)
    assert all(x is y or torch.equal(x, y) for x, y in zip(found, expected, strict=True))  # type: ignore[arg-type]


@torch.inference_mode()
def test_rows_that_were_written_to_since_are_not_those_of_their_table() -> None:
    layers = [layer.eval() for layer in build("no positions")]
    with use("fused"):
        h, e = from_tables(MANY)
        h[-1] += 1
        e *= 2
        found = run_layers(layers, h, None, e, Topology.of(MANY))
        expected = run_layers(layers, h.clone(), None, e.clone(), Topology.of(MANY))
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[2], expected[2])


@pytest.mark.parametrize("spoil", [lambda kind: kind + 5, lambda kind: kind - 1, lambda kind: kind[:-1]])
def test_a_table_that_does_not_fit_is_refused(spoil: Callable[[Tensor], Tensor]) -> None:
    layers = [layer.eval() for layer in build("no positions")]
    h, e = from_tables(MANY)
    source, version = h._looked_up  # type: ignore[attr-defined]
    h._looked_up = source._replace(kind=spoil(source.kind)), version  # type: ignore[attr-defined]
    with use("fused"), torch.no_grad(), pytest.raises(Refused):
        run_layers(layers, h, None, e, Topology.of(MANY))


def test_frozen_norms_and_cumulative_averages() -> None:
    layers = build("positions")
    layers[0].norm_h.eval()
    layers[1].norm_e.eval()
    layers[2].norm_h.momentum = None
    layers[2].norm_h.num_batches_tracked.fill_(3)
    expected = results(one_by_one, layers, MANY)
    with use("fused"):
        assert largest_difference(results(run_layers, layers, MANY), expected) < 1e-10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_bits_for_any_number_of_threads(dtype: torch.dtype) -> None:
    layers = [layer.to(dtype) for layer in build("dropout")]
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 8):
            torch.set_num_threads(threads)
            torch.manual_seed(5)
            given = [None if x is None else x.detach().to(dtype).requires_grad_() for x in streams(MANY, True)]
            with use("fused"):
                h, p, e = run_layers(layers, *given, Topology.of(MANY))  # type: ignore[arg-type]
            assert p is not None
            loss = h.square().sum() + p.square().sum() + e.square().sum()
            parameters = [parameter for layer in layers for parameter in layer.parameters()]
            found.append([h, p, e, *torch.autograd.grad(loss, [*given, *parameters])])  # type: ignore[list-item]
            for layer in layers:
                layer.norm_h.reset_running_stats()
                layer.norm_e.reset_running_stats()
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True))


def test_a_layer_somebody_listens_to_is_called() -> None:
    layers = build("positions")
    expected = results(one_by_one, layers, FEW)
    seen: list[Tensor] = []
    layers[1].register_forward_hook(lambda layer, given, found: seen.append(found[0]))
    with use("fused"):
        found = results(run_layers, layers, FEW)
    assert len(seen) == 1
    assert largest_difference(found, expected) < 1e-10


def test_other_layers_between_them_are_called_in_their_place() -> None:
    class Negative(nn.Module):
        def forward(self, h: Tensor, p: Tensor, e: Tensor, graph: Topology) -> tuple[Tensor, Tensor, Tensor]:
            return -h, -p, -e

    first, second, third = build("positions")
    given, graph = streams(FEW, True), Topology.of(FEW)
    with use("fused"):
        found = run_layers([first.eval(), Negative(), second.eval(), third.eval()], *given, graph)  # type: ignore
        h, p, e = first(*given, graph)
        h, p, e = second(-h, -p, -e, graph)
        expected = third(h, p, e, graph)
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))  # type: ignore[arg-type]


def test_what_comes_out_can_be_differentiated_twice() -> None:
    layers = build("positions")
    h, p, e = streams(FEW, True)
    for run in (one_by_one, run_layers):
        found = run(layers[:2], h, p, e, Topology.of(FEW))  # type: ignore[operator,arg-type]
        (first,) = torch.autograd.grad(found[0].sin().sum(), [h], create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), [h])
        for layer in layers:
            layer.norm_h.reset_running_stats()
            layer.norm_e.reset_running_stats()
        if run is one_by_one:
            expected = second
    torch.testing.assert_close(second, expected, rtol=1e-8, atol=1e-8)


def test_a_second_backward_pass_after_others_took_the_memory() -> None:
    """The next forward pass writes over what the first left: its gradients are then those of the plain twin."""
    layers, (h, p, e), graph = build("dropout"), streams(FEW, True), Topology.of(FEW)
    with use("fused"):
        out = run_layers(layers, h, p, e, graph)[0].sin().sum()  # type: ignore[arg-type]
        (first,) = torch.autograd.grad(out, [h], retain_graph=True)  # type: ignore[list-item]
        (at_once,) = torch.autograd.grad(out, [h], retain_graph=True)  # type: ignore[list-item]
        run_layers(layers, *[None if x is None else 2 * x.detach() for x in (h, p, e)], graph)  # type: ignore
        (later,) = torch.autograd.grad(out, [h])  # type: ignore[list-item]
    assert torch.equal(first, at_once)
    assert largest_difference([later], [first]) < 1e-11


def test_two_forward_passes_before_the_backward_passes() -> None:
    layers, graph = [layer.eval() for layer in build("positions")], Topology.of(FEW)
    given = [streams(FEW, True), [None if x is None else (3 * x).detach().requires_grad_() for x in streams(FEW, True)]]
    with use("fused"):
        alone = [torch.autograd.grad(run_layers(layers, *x, graph)[0].sin().sum(), x) for x in given]  # type: ignore
        both = [run_layers(layers, *x, graph)[0].sin().sum() for x in given]  # type: ignore[arg-type]
        together = [torch.autograd.grad(out, x) for out, x in zip(both, given, strict=True)]  # type: ignore[arg-type]
    assert all(torch.equal(x, y) for xs, ys in zip(alone, together, strict=True) for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("training", [True, False])
def test_what_moves_between_the_passes_is_found_where_it_is(training: bool) -> None:
    """Pointers of the forward pass are used again only where parameters and statistics have stayed."""
    layers, given, graph = build("positions"), streams(FEW, True), Topology.of(FEW)
    parts = [*layers[0].parameters(), *layers[0].buffers()]
    for layer in layers:
        layer.train(training)
    with use("fused"):
        gradients = []
        for moves in (False, True):
            out = run_layers(layers, *given, graph)[0].sin().sum()  # type: ignore[arg-type]
            if moves:
                for part in parts:
                    old, part.data = part.data, part.data.clone()
                    old.fill_(7)
            gradients.append(torch.autograd.grad(out, [x for x in given if x is not None] + parts[:-6]))
    assert all(torch.equal(stayed, moved) for stayed, moved in zip(*gradients, strict=True))


def test_weights_that_are_copied_for_c() -> None:
    layers = build("positions")
    for layer in layers:
        layer.B1.weight = nn.Parameter(layer.B1.weight.detach().mT.contiguous().mT)
    expected = results(one_by_one, layers, FEW)
    with use("fused"):
        assert largest_difference(results(run_layers, layers, FEW), expected) < 1e-10


def test_memory_is_taken_again_and_a_bounded_number_kept() -> None:
    layers, (h, p, e), graph = build("positions"), streams(FEW, True), Topology.of(FEW)
    with use("fused"):
        for _ in range(3):
            run_layers(layers, h, p, e, graph)[0].sum().backward()  # type: ignore[arg-type]
        free = list(memory._free)
        with torch.no_grad():
            run_layers(layers, h, p, e, graph)  # type: ignore[arg-type]
    assert {id(block) for block in memory._free} == {id(block) for block in free}
    assert len(memory._free) <= memory._MOST_FREE
