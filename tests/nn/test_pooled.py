"""Predictions of means in C are those of the equations, with all that may stand around them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from lspe.nn import Topology
from lspe.nn.pooled import LINEAR, predict_of_means
from lspe.nn.readout import Head, Readout
from lspe.ops import use
from lspe.ops.fused import readout as in_c
from lspe.ops.fused.layout import empty_rows

SIZES = torch.tensor([3, 0, 1, 7, 2])
D, K = 21, 5


class Behind(nn.Module):
    """What stands behind the layers of a network."""

    def __init__(self, kind: Readout, *, hidden: int = 2, dropout: float = 0.0, beside: int = 0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.kind = kind
        self.project, self.fuse = nn.Linear(D, K), nn.Linear(D + K, D)
        self.head = Head(len(LINEAR[kind]) * D + beside, 3, hidden=hidden, dropout=dropout)
        self.double()

    def forward(self, h: Tensor, p: Tensor, beside: Tensor | None = None) -> Tensor:
        batch = torch.arange(5).repeat_interleave(SIZES)
        graph = Topology(torch.zeros(2, 0, dtype=torch.long), int(SIZES.sum()), batch, num_graphs=5)
        torch.manual_seed(2)  # of dropout
        return predict_of_means(h, p, beside, graph, self.kind, self.project, self.fuse, self.head)


def streams(count: int = 2) -> list[Tensor]:
    torch.manual_seed(0)
    rows = [int(SIZES.sum())] * 2 + [5]
    return [torch.randn(row, D, dtype=torch.float64).requires_grad_() for row in rows[:count]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which functions in C the readout has called."""
    seen: list[str] = []
    library_for: Callable[[Tensor], object] = in_c.library_for

    class Spy:
        def __init__(self, x: Tensor) -> None:
            self.library = library_for(x)

        def call(self, name: str, **fields: object) -> None:
            seen.append(name)
            self.library.call(name, **fields)  # type: ignore[attr-defined]

    monkeypatch.setattr(in_c, "library_for", Spy)
    return seen


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("hidden", [0, 1, 3])
def test_equal_to_the_equations(kind: Readout, beside: bool, hidden: int, calls: list[str]) -> None:
    behind, given = Behind(kind, hidden=hidden, beside=D * beside), streams(2 + beside)
    found = []
    for operators in ("plain", "fused"):
        with use(operators):
            output = behind(*given)
            factor = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
            wanted = [*given, *behind.parameters()]
            found.append([output, *torch.autograd.grad((factor * output).sum(), wanted)])
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-11, atol=1e-12)
    assert calls == ["readout_forward", "readout_backward"]


@pytest.mark.parametrize("dropout", [0.4, 1.0])
def test_dropout_is_that_of_the_plain_operator(dropout: float, calls: list[str]) -> None:
    """With the seeds that were drawn: a second derivative is taken of the equations."""
    behind, given = Behind("mean", dropout=dropout, beside=D), streams(3)
    output = behind(*given)
    once = torch.autograd.grad(output.square().sum(), given, retain_graph=True)
    again = torch.autograd.grad(output.square().sum(), given, create_graph=True)
    for ours, plain in zip(once, again, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-11, atol=1e-12)
    assert calls == ["readout_forward", "readout_backward"]
    assert torch.equal(behind(*given), output)
    behind.eval()
    assert not torch.equal(behind(*given), output)


def test_gradients() -> None:
    behind, given = Behind("mean+sum", beside=D), streams(3)
    assert torch.autograd.gradcheck(behind, given)
    assert torch.autograd.gradgradcheck(behind, given)


def test_rows_may_be_apart_and_graphs_may_be_none(calls: list[str]) -> None:
    behind, (h, p) = Behind("sum"), streams()
    apart = empty_rows(h, *h.shape).copy_(h.detach())
    torch.testing.assert_close(behind(apart, p), behind(h, p))
    no_graphs = Topology(torch.zeros(2, 0, dtype=torch.long), 0, torch.zeros(0, dtype=torch.long), num_graphs=0)
    nothing = predict_of_means(h[:0], p[:0], None, no_graphs, "sum", behind.project, behind.fuse, behind.head)
    assert nothing.shape == (0, 3)
    assert calls == ["readout_forward"] * 3


def test_a_nan_stays_in_its_graph() -> None:
    behind, (h, p) = Behind("mean"), streams()
    spoiled = h.detach().clone()
    spoiled[5] = torch.nan
    usual, output = behind(h, p), behind(spoiled, p)
    of_graph = int(torch.arange(5).repeat_interleave(SIZES)[5])
    assert output[of_graph].isnan().all()
    assert torch.equal(output.isnan().any(1).nonzero().flatten(), torch.tensor([of_graph]))
    others = torch.arange(5) != of_graph
    assert torch.equal(output[others], usual[others])


def test_what_is_changed_or_listened_to_is_computed_as_it_is(calls: list[str]) -> None:
    h, p = streams()
    for spoil in (_hook, _other_forward, _other_map):
        behind = Behind("mean")
        spoil(behind)
        with use("plain"):
            plain = behind(h, p)
        torch.testing.assert_close(behind(h, p), plain)
    assert calls == []


def _hook(behind: Behind) -> None:
    behind.head.hidden[0].register_forward_hook(lambda module, given, made: made * 2)


def _other_forward(behind: Behind) -> None:
    behind.head.forward = lambda x, seeds=(): x[:, :3]  # type: ignore[method-assign]


def _other_map(behind: Behind) -> None:
    behind.fuse = nn.Sequential(nn.Linear(D + K, D, dtype=torch.float64), nn.Tanh())  # type: ignore[assignment]


@pytest.mark.parametrize("field", ["start", "kept", "map", "bias", "in", "scale"])
def test_what_does_not_fit_is_refused(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C side looks at every size; the result is then the equations'."""
    behind, (h, p) = Behind("mean"), streams()
    expected = behind(h, p)
    library_for = in_c.library_for

    class Spoiler:
        def __init__(self, x: Tensor) -> None:
            self.library = library_for(x)

        def call(self, name: str, **fields: object) -> None:
            value = fields[field]
            spoiled = {
                "start": lambda: value + 1,
                "kept": lambda: value[:, 1:],
                "map": lambda: [one[:-1] for one in value],
                "bias": lambda: [one[:-1] for one in value],
                "in": lambda: [one[1:] for one in value],
                "scale": lambda: value,
            }[field]()
            more = {"parts": 2} if field == "scale" else {}
            self.library.call(name, **{**fields, field: spoiled, **more})

    monkeypatch.setattr(in_c, "library_for", Spoiler)
    assert torch.equal(behind(h, p), _plainly(behind, h, p))
    torch.testing.assert_close(behind(h, p), expected)


def _plainly(behind: Behind, h: Tensor, p: Tensor) -> Tensor:
    with use("plain"):
        return behind(h, p)
