"""Gradients that layers add to one vector are those that autograd would have put there."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lspe.nn import SAN, GatedGCN, GraphiT, Topology, TowerPNA
from lspe.nn.sequence import run_layers
from lspe.ops import use
from lspe.ops.fused import memory
from lspe.ops.fused.gathering import Gradients, Places
from lspe.ops.fused.library import Refused
from tests.ops import cases
from tests.ops.test_gated_layers import FEW

D = 20

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "gatedgcn": lambda: GatedGCN(D),
    "gatedgcn-lspe": lambda: GatedGCN(D, lspe=True),
    "tower-pna-lspe": lambda: TowerPNA(D, D, delta=1.0, towers=2, lspe=True),
    "san-lspe": lambda: SAN(D, 2, lspe=True),
    "graphit-lspe": lambda: GraphiT(D, 2, lspe=True),
}


class Stack:
    """Two layers, with a vector for their gradients behind that of something else; parameters in another order."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.layers = nn.ModuleList(LAYERS[name]() for _ in range(2)).double()
        self.lspe = name != "gatedgcn"
        self.graph = Topology.of(FEW).with_added_pair(cases.random(D, seed=3))
        self.parameters = list(self.layers.parameters())[::-1]
        self.gradients = Gradients([torch.zeros(5, dtype=torch.float64), *self.parameters])
        self.vector = self.gradients.vector
        self.homes = [part for _, part in self.gradients.parts[1:]]

    def loss(self, checkpointed: bool | None = None) -> Tensor:
        """``checkpointed``: whether as a reentrant checkpoint, or ``None`` for none."""
        rows = (self.graph.num_nodes, self.graph.num_nodes, self.graph.edges.count)
        h, p, e = (cases.random(count, D, seed=seed).requires_grad_() for seed, count in enumerate(rows))

        def run(h: Tensor, p: Tensor, e: Tensor) -> Tensor:
            out = run_layers(self.layers, h, p if self.lspe else None, e, self.graph)
            return sum(x.sin().sum() for x in out if x is not None)  # type: ignore[return-value]

        return run(h, p, e) if checkpointed is None else checkpoint(run, h, p, e, use_reentrant=checkpointed)

    def by_autograd(self) -> list[Tensor]:
        found = torch.autograd.grad(self.loss(), self.parameters, materialize_grads=True)
        return [x.clone() for x in found]

    def take_homes(self) -> None:
        for parameter, home in zip(self.parameters, self.homes, strict=True):
            parameter.grad = home

    def known_to_autograd(self) -> int:
        """How many of the parameters autograd finds where they are gathered."""
        self.take_homes()
        with self.gradients.gathered():
            found = torch.autograd.grad(self.loss(), self.parameters, allow_unused=True)
        self.vector.zero_()
        return sum(x is not None for x in found)

    def is_close(self, expected: list[Tensor], times: float = 1) -> bool:
        assert not self.vector[:5].any()
        return all(
            torch.allclose(home, times * x, rtol=1e-11, atol=1e-11)
            for home, x in zip(self.homes, expected, strict=True)
        )


@pytest.mark.parametrize("name", LAYERS)
def test_gathered(name: str) -> None:
    """And once more on top of it."""
    stack = Stack(name)
    expected = stack.by_autograd()
    with use("fused"):
        assert stack.known_to_autograd() == (2 if name == "san-lspe" else 0)  # each layer's balance of edges and pairs
        stack.take_homes()
        for times in (1, 2):
            with stack.gradients.gathered():
                stack.loss().backward()
            assert stack.is_close(expected, times)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_gathered_in_a_checkpoint(name: str, reentrant: bool) -> None:
    stack = Stack(name)
    expected = stack.by_autograd()
    stack.take_homes()
    with stack.gradients.gathered():
        stack.loss(checkpointed=reentrant).backward()
    assert stack.is_close(expected)


@pytest.mark.parametrize("reason", ["hook", "late hook", "frozen", "unknown", "replaced", "plain"])
def test_left_to_autograd(reason: str) -> None:
    """Where somebody listens to a parameter, one is not learned or has another gradient, and of plain operators."""
    stack = Stack("gatedgcn-lspe")
    expected = stack.by_autograd()
    stack.take_homes()
    one = stack.parameters[7]
    heard: list[object] = []
    if reason == "hook":
        one.register_hook(lambda gradient: heard.append(gradient) or 3 * gradient)  # type: ignore[func-returns-value]
        expected[7] *= 3
    elif reason == "late hook":
        one.register_post_accumulate_grad_hook(lambda parameter: heard.append(parameter))
    elif reason == "frozen":
        one.requires_grad_(False)
        expected[7].zero_()
    elif reason == "replaced":
        one.grad = torch.zeros_like(one)
    gradients = Stack("gatedgcn-lspe").gradients if reason == "unknown" else stack.gradients
    with gradients.gathered(), use("plain" if reason == "plain" else "auto"):
        stack.loss().backward()
    if reason == "replaced":
        stack.homes[7].copy_(one.grad)
    assert stack.is_close(expected)
    assert len(heard) == ("hook" in reason)


def test_of_the_plain_twin_where_memory_was_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Stack("gatedgcn-lspe")
    expected = stack.by_autograd()
    stack.take_homes()
    with stack.gradients.gathered():
        loss = stack.loss()

        def gone(self: memory.Lease) -> list[Tensor]:
            raise Refused("what the forward pass left has been written over")

        monkeypatch.setattr(memory.Lease, "tensors", gone)
        loss.backward()
    assert stack.is_close(expected)


def test_not_to_be_differentiated_again() -> None:
    stack = Stack("gatedgcn-lspe")
    stack.take_homes()
    with stack.gradients.gathered(), pytest.raises(RuntimeError, match="cannot be differentiated again"):
        stack.loss().backward(create_graph=True)
    assert not stack.vector.any()


@pytest.mark.parametrize(
    ("start", "size", "values"),
    [
        ([0, 8], [2, 3], 5),
        ([-1, 4], [2, 3], 5),
        ([0, 2**62], [2, 3], 5),
        ([0, 4], [2, 3], 4),
        ([0, 4], [2, 3], 6),
        ([0, 4], [7, -2], 5),
        ([0], [2, 3], 5),
    ],
)
def test_parts_that_do_not_fit(start: list[int], size: list[int], values: int) -> None:
    vector = torch.zeros(10)
    with pytest.raises(Refused):
        Places((), vector, torch.tensor(start), torch.tensor(size)).add(torch.ones(values))
    assert not vector.any()
