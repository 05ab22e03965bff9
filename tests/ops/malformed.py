"""Malformed calls of every public operator and layer: ``python -m tests.ops.malformed COUNT [NAME ...]``.

Each call is made with the plain operators and with those chosen automatically, and has to end in the same error or the
same numbers. It runs in a process of its own: a crash below Python would end the tests.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.nn import GINEConv

from lspe.encodings import diffusion_kernel, laplacian_encoding, random_walk_encoding
from lspe.nn import LSPE, PNA, SAN, BatchNorm, GatedGCN, GraphiT, Topology, TowerPNA
from lspe.nn.pooled import predict_of_means
from lspe.nn.readout import Head
from lspe.ops import dropout, scatter_max, scatter_min, scatter_sum, tanh_residual, use

D = 17
"""More than a vector of any processor, and a multiple of none."""

Arguments = dict[str, Any]


def graph_arguments() -> Arguments:
    """Three graphs: a ring of five, a star of four, a node alone."""
    edges = [(i, (i + 1) % 5) for i in range(5)] + [(5, 6), (5, 7), (5, 8)]
    pairs = torch.tensor(edges + [(j, i) for i, j in edges]).T.contiguous()
    return {"edge_index": pairs, "num_nodes": 10, "batch": torch.tensor([0] * 5 + [1] * 4 + [2]), "num_graphs": 3}


def layer_arguments(lspe: bool) -> Arguments:
    generator = torch.Generator().manual_seed(0)
    graph = graph_arguments()
    edges = graph["edge_index"].size(1)
    return {
        "h": torch.randn(10, D, generator=generator),
        "p": torch.randn(10, D, generator=generator) if lspe else None,
        "e": torch.randn(edges, D, generator=generator),
        "added_pair": torch.randn(D, generator=generator),
        **graph,
    }


def call_layer(make: Callable[[], nn.Module]) -> Callable[[Arguments], list[Tensor]]:
    torch.manual_seed(0)
    layer = make()

    def call(a: Arguments) -> list[Tensor]:
        layer.eval()
        graph = Topology(a["edge_index"], a["num_nodes"], a["batch"], num_graphs=a["num_graphs"])
        inputs = [x.requires_grad_() if is_real(x) else x for x in (a["h"], a["p"], a["e"])]
        out = [x for x in layer(*inputs, graph.with_added_pair(a["added_pair"])) if x is not None]
        wanted = [x for x in inputs if is_real(x)]
        gradients = torch.autograd.grad(sum(x.square().sum() for x in out), wanted, allow_unused=True)
        return [*out, *(x for x in gradients if x is not None)]

    return call


def is_real(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point() and x.is_leaf


def rows_arguments() -> Arguments:
    generator = torch.Generator().manual_seed(0)
    x, residual = torch.randn(2, 9, D, generator=generator)
    return {"x": x, "residual": residual, "scale": torch.rand(9, 1, generator=generator), "relu": True}


def call_norm(a: Arguments) -> list[Tensor]:
    torch.manual_seed(0)
    norm = BatchNorm(D)
    x = a["x"].requires_grad_() if is_real(a["x"]) else a["x"]
    y = norm(x, scale=a["scale"], relu=a["relu"], residual=a["residual"])
    return [y, norm.running_mean, norm.running_var, *torch.autograd.grad(y.square().sum(), x)]


def call_readout(a: Arguments) -> list[Tensor]:
    torch.manual_seed(0)
    project, fuse, head = nn.Linear(D, 3), nn.Linear(D + 3, D), Head(2 * D, 2)
    graph = Topology(a["edge_index"], a["num_nodes"], a["batch"], num_graphs=a["num_graphs"])
    inputs = [x.requires_grad_() if is_real(x) else x for x in (a["h"], a["p"], a["beside"])]
    out = predict_of_means(*inputs, graph, "mean", project, fuse, head)
    wanted = [*(x for x in inputs if is_real(x)), fuse.weight]
    gradients = torch.autograd.grad(out.square().sum(), wanted, allow_unused=True)
    return [out, *(x for x in gradients if x is not None)]


def readout_arguments() -> Arguments:
    generator = torch.Generator().manual_seed(0)
    h, p = torch.randn(2, 10, D, generator=generator)
    return {"h": h, "p": p, "beside": torch.randn(3, D, generator=generator), **graph_arguments()}


def call_tanh(a: Arguments) -> list[Tensor]:
    x = a["x"].requires_grad_() if is_real(a["x"]) else a["x"]
    y = tanh_residual(x, a["residual"])
    return [y, *torch.autograd.grad(y.square().sum(), x)]


def call_dropout(a: Arguments) -> list[Tensor]:
    """Either draws numbers of its own: what can be compared is what all of them have."""
    torch.manual_seed(0)
    y = dropout(a["x"], a["p"], True)
    return [torch.where(y == 0, y, 1) * 0 if a["p"] < 1 else y, torch.tensor(y.shape)]


def call_scatter(a: Arguments) -> list[Tensor]:
    return [scatter(a["x"], a["target"], a["rows"]) for scatter in (scatter_sum, scatter_max, scatter_min)]


def call_encodings(a: Arguments) -> list[Tensor]:
    graphs = {key: a[key] for key in ("edge_index", "num_nodes", "edge_weight", "batch")}
    walks = random_walk_encoding(**graphs, k=a["k"])
    return [walks, laplacian_encoding(**graphs, k=a["k"])[1], diffusion_kernel(**graphs, beta=0.25, steps=a["k"])]


def encoding_arguments() -> Arguments:
    graph = graph_arguments()
    del graph["num_graphs"]
    weight = torch.rand(graph["edge_index"].size(1), generator=torch.Generator().manual_seed(0)) + 0.1
    return {**graph, "edge_weight": weight, "k": 6}


def wrapped() -> nn.Module:
    return LSPE(GINEConv(nn.Linear(2 * D, D), edge_dim=D), GINEConv(nn.Linear(D, D), edge_dim=D))


LAYERS: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "gatedgcn": (lambda: GatedGCN(D, size_norm=True), False),
    "gatedgcn-lspe": (lambda: GatedGCN(D, lspe=True, size_norm=True), True),
    "pna-lspe": (lambda: PNA(D, D, delta=1.0, lspe=True), True),
    "tower-pna": (lambda: TowerPNA(D, D, delta=1.0, towers=D), False),
    "tower-pna-lspe": (lambda: TowerPNA(D, D, delta=1.0, towers=1, lspe=True), True),
    "san-lspe": (lambda: SAN(D, 1, lspe=True), True),
    "graphit": (lambda: GraphiT(D, 17), False),
    "lspe": (wrapped, True),
}
TARGETS: dict[str, tuple[Callable[[Arguments], list[Tensor]], Callable[[], Arguments]]] = {
    **{name: (call_layer(make), lambda lspe=lspe: layer_arguments(lspe)) for name, (make, lspe) in LAYERS.items()},
    "batch norm": (call_norm, rows_arguments),
    "readout": (call_readout, readout_arguments),
    "tanh": (call_tanh, rows_arguments),
    "dropout": (call_dropout, lambda: {"x": rows_arguments()["x"], "p": 0.3}),
    "scatter": (call_scatter, lambda: {"x": rows_arguments()["x"], "target": torch.arange(9) % 4, "rows": 5}),
    "encodings": (call_encodings, encoding_arguments),
}
"""What is called, and arguments that are right."""

DTYPES = [torch.float64, torch.float16, torch.int32, torch.int64, torch.uint8, torch.bool, torch.complex64]


def wrong_tensor(draw: Callable[[Any], Any], x: Tensor) -> Any:
    """A tensor spoiled in one way."""
    kind = draw(st.sampled_from(["dtype", "shorter", "longer", "width", "dims", "strides", "values", "device", "none"]))
    if kind == "dtype":
        return x.to(draw(st.sampled_from(DTYPES)))
    if kind == "shorter":
        along = draw(st.integers(0, x.dim() - 1))
        return x.narrow(along, 0, draw(st.integers(0, x.size(along) - 1)))
    if kind == "longer":
        return torch.cat([x, x[:1].repeat_interleave(draw(st.integers(1, 40)), 0)])
    if kind == "width" and x.dim() == 2:
        return x.repeat(1, 2)[:, : draw(st.integers(0, 2 * x.size(1)))]
    if kind == "dims":
        return draw(st.sampled_from([x.unsqueeze(0), x.unsqueeze(-1), x.flatten(), x[0], x.sum()]))
    if kind == "strides":
        spread = torch.zeros([2 * size for size in x.shape], dtype=x.dtype)
        every_second = tuple(slice(None, None, 2) for _ in x.shape)
        spread[every_second] = x
        turned = x.T.contiguous().T if x.dim() == 2 else x.flip(0)
        # the same row again and again would leave normalisations nothing but rounding
        repeated = x[..., :1].expand_as(x)
        return draw(st.sampled_from([spread[every_second], turned, repeated]))
    if kind == "values":
        return spoiled_values(draw, x)
    if kind == "device":
        return x.to("meta")
    return None


def spoiled_values(draw: Callable[[Any], Any], x: Tensor) -> Tensor:
    """One number that is no index, or not a number at all."""
    x = x.clone()
    place = draw(st.integers(0, x.numel() - 1))
    if x.is_floating_point():
        x.view(-1)[place] = draw(st.sampled_from([torch.nan, 100.0, -1.0, 0.0]))
    else:
        x.view(-1)[place] = draw(st.sampled_from([-1, -(2**40), 0, 3, 9, 10, 2**31, 2**62]))
    return x


@st.composite
def spoiled(draw: Callable[[Any], Any], arguments: Arguments) -> Arguments:
    """The arguments with one to three of them wrong."""
    names = draw(st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=3, unique=True))
    spoiled = dict(arguments)
    for name in names:
        value = arguments[name]
        if isinstance(value, Tensor):
            spoiled[name] = wrong_tensor(draw, value)
        elif isinstance(value, bool):
            spoiled[name] = not value
        elif isinstance(value, float):
            spoiled[name] = draw(st.sampled_from([-0.5, 0.0, 1.0, 1.5, float("nan")]))
        elif value is None:
            spoiled[name] = arguments["h"]
        else:
            spoiled[name] = draw(st.sampled_from([0, 1, 2, 9, 11, 64, -1]))
    return spoiled


def outcome(call: Callable[[Arguments], list[Tensor]], arguments: Arguments) -> list[Tensor] | str:
    copies = {name: x.detach().clone() if isinstance(x, Tensor) else x for name, x in arguments.items()}
    for name, x in arguments.items():  # a clone has usual strides: keep the unusual ones
        if isinstance(x, Tensor) and x.device.type == "cpu" and copies[name].stride() != x.stride():
            copies[name] = x.detach()
    try:
        return [x.detach() for x in call(copies)]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def check(name: str, count: int) -> None:
    call, right = TARGETS[name]

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(spoiled(right()))
    def both_ways(arguments: Arguments) -> None:
        outcomes = []
        for choice in ("plain", "auto"):
            with use(choice):
                outcomes.append(outcome(call, arguments))
        plain, ours = outcomes
        if isinstance(plain, str) or isinstance(ours, str):
            assert ours == plain, f"plain: {plain}\nours: {ours}"
            return
        for one, other in zip(ours, plain, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3, equal_nan=True)

    both_ways()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[2:] or TARGETS:
        print(name, flush=True)  # the last line where the process crashes
        check(name, int(sys.argv[1]))
    print("every call ended alike")
