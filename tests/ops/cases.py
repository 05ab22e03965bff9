"""Every operator on a batch of graphs, as a function of tensors that can be differentiated."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv

from lspe.nn import BatchNorm, GatedGCN, PairAttention, PrincipalAggregation, Topology, TowerPNA
from lspe.nn.wrap import Call
from lspe.ops import dropout, fusible, tanh_residual
from lspe.ops.fused.look_ups import look_up

WIDTH = 18
"""More than one vector of any processor, and a multiple of none."""
TYPES = 3
"""Of edges, where they have types."""


@dataclass
class Case:
    """``run(*inputs)`` → tensors."""

    run: Callable[..., tuple[Tensor, ...]]
    inputs: list[Tensor]

    def results(self, dtype: torch.dtype) -> list[Tensor]:
        """Outputs, and the gradients of a fixed weighted sum of them, in ``dtype``."""
        inputs = [x.to(dtype).requires_grad_() for x in self.inputs]
        outputs = self.run(*inputs)
        generator = torch.Generator().manual_seed(1)
        loss = sum(
            (torch.randn(out.shape, dtype=torch.float64, generator=generator).to(dtype) * out).sum() for out in outputs
        )
        return [out.detach() for out in outputs] + list(torch.autograd.grad(loss, inputs, materialize_grads=True))


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def edge_rows(graph: Topology, width: int, types: bool) -> Tensor:
    """A row for each edge, or for each type."""
    return random(TYPES if types else graph.edges.count, width, seed=1)


def edges_of(rows: Tensor, graph: Topology, types: bool) -> Tensor:
    """e, of rows for each type as embedders look them up."""
    kind = torch.arange(graph.edges.count) * 7 % 5 % TYPES
    if not types:
        return rows
    return look_up(rows, kind) if fusible(rows) else rows.index_select(0, kind)


def _with_weights(module: nn.Module, names: list[str], weights: Iterable[Tensor]) -> nn.Module:
    """The module with tensors, and their history, in the place of its parameters."""
    for name, weight in zip(names, weights, strict=True):
        path, _, last = name.rpartition(".")
        holder = module.get_submodule(path)
        delattr(holder, last)
        setattr(holder, last, weight)
    return module


def gate(data: Data, *, positions: bool, width: int = WIDTH, training: bool = False, residual: bool = True) -> Case:
    layer = GatedGCN(width, lspe=positions)
    names = [name for name, _ in layer.named_parameters()]
    graph = Topology.of(data)
    inputs = [random(graph.num_nodes, width, seed=0), random(graph.edges.count, width, seed=1)]
    if positions:
        inputs.append(random(graph.num_nodes, width, seed=20))
    for number, name in enumerate(names):
        shape = layer.get_parameter(name).shape
        inputs.append(random(*shape, seed=number + 2) / (shape[1] ** 0.5 if len(shape) == 2 else 1))

    def run(h: Tensor, e: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        p = others[0] if positions else None
        layer = GatedGCN(width, lspe=positions, size_norm=True, residual=residual).to(h.dtype).train(training)
        _with_weights(layer, names, others[positions:])
        return tuple(out for out in layer(h, p, e, graph) if out is not None)

    return Case(run, inputs)


def principal(
    data: Data,
    *,
    towers: int,
    aggregators: tuple[str, ...] = ("mean", "max", "min", "std"),
    scalers: int = 3,
    width: int = WIDTH,
    types: bool = False,
) -> Case:
    graph = Topology.of(data)
    out, edge_dim = width // towers, 5
    inputs = [
        random(graph.num_nodes, 2 * width, seed=0),
        edge_rows(graph, edge_dim, types),
        random(towers, out, 4 * out + edge_dim, seed=2) / 4,
        random(towers, out, seed=3),
        random(towers, out, 2 * out + len(aggregators) * scalers * out, seed=4) / 8,
        random(towers, out, seed=5),
    ]
    scale = random(graph.num_nodes, scalers, seed=6)

    def run(x: Tensor, rows: Tensor, *maps: Tensor) -> tuple[Tensor, ...]:
        e = edges_of(rows, graph, types)
        names = ("identity", "amplification", "attenuation")[:scalers]
        layer = PrincipalAggregation(
            2 * width, width, edge_dim, delta=1.0, towers=towers, aggregators=aggregators, scalers=names
        )
        layer._scale = lambda graph, dtype: scale.to(dtype)  # type: ignore[method-assign]
        return (
            _with_weights(layer, ["message.weight", "message.bias", "update.weight", "update.bias"], maps)(x, e, graph),
        )

    return Case(run, inputs)


def towers(data: Data, *, positions: bool, width: int = WIDTH, training: bool = False, types: bool = False) -> Case:
    graph, edge_dim = Topology.of(data), 5
    options: dict[str, Any] = {"towers": 3 if width % 3 == 0 else 1, "delta": 1.1, "lspe": positions}
    layer = TowerPNA(width, edge_dim, **options)
    names = [name for name, _ in layer.named_parameters()]
    inputs = [random(graph.num_nodes, width, seed=0), edge_rows(graph, edge_dim, types)]
    if positions:
        inputs.append(random(graph.num_nodes, width, seed=20))
    for number, name in enumerate(names):
        inputs.append(random(*layer.get_parameter(name).shape, seed=number + 2) / 4)

    def run(h: Tensor, rows: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        p = others[0] if positions else None
        layer = TowerPNA(width, edge_dim, **options).to(h.dtype).train(training)
        _with_weights(layer, names, others[positions:])
        return tuple(out for out in layer(h, p, edges_of(rows, graph, types), graph)[:2] if out is not None)

    return Case(run, inputs)


def attention(data: Data, *, kernel: bool, heads: int = 3, width: int = WIDTH, types: bool = False) -> Case:
    graph = Topology.of(data)
    inner = 2 * width
    inputs = [random(graph.num_nodes, inner, seed=0), edge_rows(graph, width, types)]
    inputs.append(random(width, seed=2))
    names = [f"{name}.weight" for name in ("Q", "K", "V", "E", "Q_added", "K_added", "E_added")]
    for number, seen in enumerate([inner, inner, inner, width, inner, inner, width]):
        inputs.append(random(width, seen, seed=number + 3) * 2 / seen**0.5)
    matrix = random(graph.num_graphs, graph.max_nodes, graph.max_nodes, seed=11).abs()
    if not kernel:
        inputs += [torch.tensor(0.9, dtype=torch.float64), torch.tensor(0.1, dtype=torch.float64)]

    def run(x: Tensor, rows: Tensor, added_pair: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        e = edges_of(rows, graph, types)
        f = matrix.to(x.dtype)
        factors = (f, f) if kernel else (others[-2], others[-1])
        layer = _with_weights(PairAttention(inner, width, heads), names, others[:7])
        return (layer(x, e, graph.with_added_pair(added_pair), *factors),)

    return Case(run, inputs)


def messages(data: Data, *, types: bool = False, width: int = WIDTH) -> Case:
    graph, edge_dim = Topology.of(data), 5
    names = ["lin.weight", "lin.bias", "eps"]
    inputs = [random(graph.num_nodes, width, seed=0), edge_rows(graph, edge_dim, types)]
    inputs += [random(width, edge_dim, seed=2), random(width, seed=3), random(1, seed=4)]

    def run(x: Tensor, rows: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        conv = GINEConv(nn.Linear(width, width), train_eps=True, edge_dim=edge_dim)
        conv.nn = nn.Identity()
        _with_weights(conv, names, weights)
        return (Call(conv)(conv, x, edges_of(rows, graph, types), graph, like=x),)

    return Case(run, inputs)


def norm(
    rows: int, *, training: bool, relu: bool = True, residual: bool = True, scaled: bool = True, width: int = WIDTH
) -> Case:
    scale = random(rows, 1, seed=7).abs() + 0.5

    def run(x: Tensor, weight: Tensor, bias: Tensor, old: Tensor) -> tuple[Tensor, ...]:
        module = BatchNorm(width).to(x.dtype).train(training)
        module.running_mean, module.running_var = random(width, seed=5).to(x), random(width, seed=6).abs().to(x)
        _with_weights(module, ["weight", "bias"], [weight, bias])
        scaling = scale.to(x.dtype) if scaled else None
        out = module(x, scale=scaling, relu=relu, residual=old if residual else None)
        # everything is differentiated: what is not used by the operator counts on its own
        return out if residual else out + 0 * old, module.running_mean.clone(), module.running_var.clone()

    return Case(
        run, [random(rows, width, seed=0), random(width, seed=1), random(width, seed=2), random(rows, width, seed=3)]
    )


def activation(rows: int, *, residual: bool = True, width: int = WIDTH) -> Case:
    def run(x: Tensor, old: Tensor) -> tuple[Tensor, ...]:
        return (tanh_residual(x, old) if residual else tanh_residual(x, None) + 0 * old,)

    return Case(run, [2 * random(rows, width, seed=0), random(rows, width, seed=1)])


def dropped(rows: int, *, width: int = WIDTH) -> Case:
    def run(x: Tensor) -> tuple[Tensor, ...]:
        torch.manual_seed(0)
        return (dropout(x, 0.4, True),)

    return Case(run, [random(rows, width, seed=0)])


def on_graphs(data: Data) -> dict[str, Case]:
    """All operators that see the edges."""
    return {
        "gate with positions": gate(data, positions=True),
        "gate": gate(data, positions=False),
        "aggregation": principal(data, towers=1),
        "aggregation with towers": principal(data, towers=3),
        "sums": principal(data, towers=1, aggregators=("sum", "max", "mean"), scalers=1),
        "towers with positions": towers(data, positions=True),
        "towers of types": towers(data, positions=False, types=True),
        "attention with numbers": attention(data, kernel=False),
        "attention with a kernel": attention(data, kernel=True),
        "messages": messages(data),
        "aggregation of types": principal(data, towers=3, types=True),
        "attention of types": attention(data, kernel=False, types=True),
        "messages of types": messages(data, types=True),
    }
