"""What the operators in C cannot serve gets the plain twin's result by itself, and what is wrong the twin's words."""

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Batch

from lspe.nn import PNA, SAN, BatchNorm, GatedGCN, GraphiT, Topology, TowerPNA
from lspe.ops import choose, chosen, use
from lspe.ops.choice import Choice
from tests.graphs import CORNER_CASES

D = 20
BATCH = Batch.from_data_list([CORNER_CASES[name] for name in ("decalin", "star", "one node")])
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "gatedgcn": lambda: GatedGCN(D, lspe=True, size_norm=True),
    "pna": lambda: PNA(D, D, delta=1.0, lspe=True),
    "tower-pna": lambda: TowerPNA(D, D, delta=1.0, towers=5, lspe=True),
    "san": lambda: SAN(D, 4, lspe=True),
    "graphit": lambda: GraphiT(D, 4, lspe=True),
}
layers = pytest.mark.parametrize("name", LAYERS)


def streams(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor, Topology]:
    torch.manual_seed(0)
    h, p = torch.randn(2, BATCH.num_nodes, D, dtype=dtype)
    e, added_pair = torch.randn(BATCH.num_edges, D, dtype=dtype), torch.randn(D, dtype=dtype)
    return h, p, e, Topology.of(BATCH).with_added_pair(added_pair)


def make(name: str) -> nn.Module:
    torch.manual_seed(1)
    return LAYERS[name]().eval()


def same_with_either(work: Callable[[], Tensor], *, exact: bool = False) -> Tensor:
    """What ``work`` gives with the plain operators, and that it gives the same where the choice is automatic."""
    results = []
    for choice in ("plain", "auto"):
        torch.manual_seed(2)
        with use(choice):
            results.append(work().detach())
    torch.testing.assert_close(results[1], results[0], **({"rtol": 0, "atol": 0} if exact else {}))
    return results[0]


def same_words(work: Callable[[], object], kind: type[Exception], words: str) -> None:
    said = []
    choices: tuple[Choice, ...] = ("plain", "auto", "fused")
    for choice in choices:
        with use(choice), pytest.raises(kind, match=words) as caught:
            work()
        said.append(str(caught.value))
    assert len(set(said)) == 1


@layers
def test_indices_of_32_bits(name: str) -> None:
    h, p, e, graph = streams()
    short = Topology(BATCH.edge_index.int(), BATCH.num_nodes, BATCH.batch.int()).with_added_pair(graph.added_pair)
    expected = same_with_either(lambda: make(name)(h, p, e, graph)[0])
    torch.testing.assert_close(same_with_either(lambda: make(name)(h, p, e, short)[0]), expected)


@layers
def test_streams_that_do_not_fit(name: str) -> None:
    h, p, e, graph = streams()
    layer = make(name)
    looped = torch.cat([BATCH.edge_index, torch.arange(BATCH.num_nodes).expand(2, -1)], dim=1)
    with_loops = Topology(looped, BATCH.num_nodes, BATCH.batch).with_added_pair(graph.added_pair)
    same_words(lambda: layer(h, p, e, with_loops), ValueError, "e has 28 rows, but the graph has 43 edges")
    same_words(lambda: layer(h, p, e[:-2], graph), ValueError, "e has 26 rows, but the graph has 28 edges")
    fewer = Topology(BATCH.edge_index[:, 4:], BATCH.num_nodes, BATCH.batch).with_added_pair(graph.added_pair)
    same_words(lambda: layer(h, p, e, fewer), ValueError, "e has 28 rows, but the graph has 24 edges")
    same_words(lambda: layer(h[:-1], p, e, graph), ValueError, "h has 14 rows, but the graph has 15 nodes")
    same_words(lambda: layer(h, p[:-1], e, graph), ValueError, "p has 14 rows, but the graph has 15 nodes")
    same_words(lambda: layer(h, p, e[:, :16], graph), ValueError, "e is 16 wide, but the layer takes 20")
    same_words(lambda: layer(h, p.double(), e, graph), TypeError, "p is of torch.float64 and h of torch.float32")
    same_words(lambda: layer(h, None, e, graph), ValueError, "p is None, but the layer learns positions")
    same_words(lambda: layer(h, p, None, graph), ValueError, "e is None, but the layer takes edge features")
    same_words(lambda: layer(h, p, e, BATCH), TypeError, "takes .h, p, e, topology., and topology is a DataBatch")


def test_encodings_that_do_not_fit() -> None:
    from lspe.nn import CategoricalEmbedder, Head, Network

    network = Network(
        CategoricalEmbedder(5, 4, D, D), [make("gatedgcn")], Head(D, 1), dim=D, encoding="rwpe", k=4, lspe=True
    )
    data = BATCH.clone()
    data.x, data.edge_attr = torch.zeros(15, dtype=torch.long), torch.ones(28, dtype=torch.long)
    for rows in (14, 16):
        data.random_walk_pe = torch.rand(rows, 4)
        same_words(lambda: network(data), ValueError, f"'random_walk_pe' has {rows} rows, but the graphs have 15 nodes")


@layers
def test_derivatives_of_derivatives(name: str) -> None:
    h, p, e, graph = streams(torch.float64)

    def work() -> Tensor:
        x = h.clone().requires_grad_()
        (first,) = torch.autograd.grad(make(name).double()(x, p, e, graph)[0].square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    same_with_either(work)


@layers
@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpointing(name: str, reentrant: bool) -> None:
    h, p, e, graph = streams()

    def work() -> Tensor:
        x = h.clone().requires_grad_()
        layer = make(name).train()
        out = checkpoint(layer, x, p, e, graph, use_reentrant=reentrant)[0]
        out.square().sum().backward()
        return x.grad

    same_with_either(work)


@layers
def test_functional_transforms(name: str) -> None:
    h, p, e, graph = streams()
    layer = make(name)

    def forward(x: Tensor) -> Tensor:
        return layer(x, p, e, graph)[0]

    same_with_either(lambda: torch.func.grad(lambda x: forward(x).square().sum())(h), exact=True)
    same_with_either(lambda: torch.func.vmap(forward)(torch.stack([h, h + 1])), exact=True)
    same_with_either(lambda: torch.func.jvp(forward, (h,), (torch.ones_like(h),))[1], exact=True)
    same_with_either(lambda: torch.autograd.functional.jacobian(lambda x: forward(x)[:2].sum(0), h, vectorize=True))


@layers
def test_forward_mode(name: str) -> None:
    h, p, e, graph = streams()

    def work() -> Tensor:
        with forward_ad.dual_level():
            out = make(name)(forward_ad.make_dual(h, torch.ones_like(h)), p, e, graph)[0]
            return forward_ad.unpack_dual(out).tangent

    same_with_either(work, exact=True)


@layers
def test_autocast(name: str) -> None:
    h, p, e, graph = streams()

    def work() -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return make(name)(h, p, e, graph)[0]

    out = same_with_either(work, exact=True)
    torch.testing.assert_close(out.float(), make(name)(h, p, e, graph)[0].detach(), rtol=0.1, atol=0.2)


@layers
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_dynamic_quantisation(name: str) -> None:
    h, p, e, graph = streams()

    def work() -> Tensor:
        return torch.ao.quantization.quantize_dynamic(make(name), {nn.Linear})(h, p, e, graph)[0]

    same_with_either(work)  # the normalisation behind the maps may be fused, and round in another way


class Adapted(nn.Module):
    """A map with a small one beside it, as LoRA has."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.beside = base, nn.Linear(base.in_features, base.out_features)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.beside(x)


MAPS: dict[str, Callable[[nn.Linear], nn.Module]] = {
    "wrapped": Adapted,
    "without bias": lambda linear: nn.Linear(linear.in_features, linear.out_features, bias=False),
    "columns first": lambda linear: columns_first(linear),
}


def columns_first(linear: nn.Linear) -> nn.Linear:
    linear.weight = nn.Parameter(linear.weight.detach().T.contiguous().T)
    return linear


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("place", ["gatedgcn A1", "gatedgcn B3", "san attention_h.Q", "graphit attention_p.E_added"])
def test_maps_of_another_kind(place: str, kind: str) -> None:
    name, _, path = place.partition(" ")
    h, p, e, graph = streams()

    def work() -> Tensor:
        layer = make(name)
        parent, _, last = path.rpartition(".")
        holder = layer.get_submodule(parent)
        torch.manual_seed(5)
        setattr(holder, last, MAPS[kind](getattr(holder, last)))
        x = h.clone().requires_grad_()
        outputs = layer(x, p, e, graph)
        return torch.autograd.grad(sum(out.square().sum() for out in outputs), x)[0]

    same_with_either(work)


@pytest.mark.parametrize("place", ["gatedgcn A1", "gatedgcn C2", "san attention_h.V", "graphit attention_p.K_added"])
def test_hooks_fire(place: str) -> None:
    name, _, path = place.partition(" ")
    h, p, e, graph = streams()
    layer, seen = make(name), []
    layer.get_submodule(path).register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    layer(h, p, e, graph)
    assert len(seen) == 1
    everywhere = nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(type(module)))
    try:
        make(name)(h, p, e, graph)
    finally:
        everywhere.remove()
    assert nn.Linear in seen


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_tracing() -> None:
    h, p, e, graph = streams()
    norm = BatchNorm(D).eval()
    same_with_either(lambda: torch.jit.trace(norm, (h,))(h), exact=True)
    layer = make("gatedgcn")

    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, h: Tensor, p: Tensor, e: Tensor) -> Tensor:
            return self.layer(h, p, e, graph)[0]

    same_with_either(lambda: torch.jit.trace(Fixed(), (h, p, e), check_trace=False)(h, p, e))


@pytest.mark.parametrize("options", [{"affine": False}, {"track_running_stats": False}, {"momentum": None}])
@pytest.mark.parametrize("training", [True, False])
def test_norms_of_every_kind(options: dict[str, object], training: bool) -> None:
    """Against PyTorch's own, its buffers too."""
    h = streams()[0]
    for rows in (h, h + 1):
        ours, theirs = BatchNorm(D, **options).train(training), nn.BatchNorm1d(D, **options).train(training)
        for _ in range(2):
            torch.testing.assert_close(same_with_either(lambda ours=ours, rows=rows: ours(rows)), theirs(rows))
            theirs(rows)  # ours was called with either choice
        for (_, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
            torch.testing.assert_close(a, b)
    assert BatchNorm(D, **options).train(training)(h[:1]).isfinite().all()
    assert BatchNorm(D, **options).train(training)(h[:0]).shape == (0, D)


def test_rows_wider_than_the_stack() -> None:
    x = torch.randn(3, 5000)
    same_with_either(lambda: BatchNorm(5000)(x), exact=True)


def test_overlapping_blocks_in_two_threads() -> None:
    """Each thread has its own choice, and nothing is left of it behind."""
    before = chosen()
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))
    seen: list[str] = []

    def first() -> None:
        with use("plain"):
            first_is_in.set()
            second_is_in.wait(10)
        first_is_out.set()

    def second() -> None:
        first_is_in.wait(10)
        with use("fused"):
            second_is_in.set()
            first_is_out.wait(10)
            seen.append(chosen())

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["fused"]
    assert chosen() == before


def test_a_choice_for_the_process_reaches_every_thread() -> None:
    before = chosen()
    seen = []
    try:
        choose("plain")
        thread = threading.Thread(target=lambda: seen.append(chosen()))
        thread.start()
        thread.join()
    finally:
        choose(before)
    assert seen == ["plain"]
