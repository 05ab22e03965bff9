"""Every operator on a batch of graphs, as a function of tensors that can be differentiated."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lspe.ops import (
    Edges,
    GateMaps,
    PairMaps,
    Pairs,
    TowerMaps,
    batch_norm,
    dropout,
    gated_convolution,
    pair_attention,
    principal_aggregation,
    tanh_residual,
)

WIDTH = 18
"""More than one vector of any processor, and a multiple of none."""


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


def _linears(weights: list[Tensor]) -> list[nn.Linear]:
    """Linear maps whose weights are the tensors given, with their history."""
    linears = []
    for weight, bias in zip(weights[::2], weights[1::2], strict=True):
        linear = nn.Linear(1, 1)
        del linear.weight, linear.bias
        linear.weight, linear.bias = weight, bias
        linears.append(linear)
    return linears


def gate(data: Data, *, positions: bool, width: int = WIDTH) -> Case:
    edges = Edges(data.edge_index, data.num_nodes)
    nodes, count = data.num_nodes, data.edge_index.size(1)
    inputs = [random(nodes, width, seed=0), random(count, width, seed=1)]
    seen = [2 * width] * 2 + [width] * 5 if positions else [width] * 5
    for number, inner in enumerate(seen):
        inputs += [random(width, inner, seed=number + 2) / inner**0.5, random(width, seed=number + 10)]
    if positions:
        inputs.append(random(nodes, width, seed=20))

    def run(h: Tensor, e: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        p = others[-1] if positions else None
        maps = GateMaps(*_linears(list(others[: 2 * len(seen)])))
        return tuple(out for out in gated_convolution(h, p, e, maps, edges) if out is not None)

    return Case(run, inputs)


def principal(
    data: Data,
    *,
    towers: int,
    aggregators: tuple[str, ...] = ("mean", "max", "min", "std"),
    scalers: int = 3,
    width: int = WIDTH,
) -> Case:
    edges = Edges(data.edge_index, data.num_nodes)
    out, edge_dim = width // towers, 5
    inputs = [
        random(data.num_nodes, 2 * width, seed=0),
        random(data.edge_index.size(1), edge_dim, seed=1),
        random(towers, out, 4 * out + edge_dim, seed=2) / 4,
        random(towers, out, seed=3),
        random(towers, out, 2 * out + len(aggregators) * scalers * out, seed=4) / 8,
        random(towers, out, seed=5),
    ]
    scale = random(data.num_nodes, scalers, seed=6)

    def run(x: Tensor, e: Tensor, *maps: Tensor) -> tuple[Tensor, ...]:
        return (principal_aggregation(x, e, TowerMaps(*maps), scale.to(x.dtype), edges, aggregators),)

    return Case(run, inputs)


def attention(data: Data, *, kernel: bool, heads: int = 3, width: int = WIDTH) -> Case:
    batch = data.edge_index.new_zeros(data.num_nodes) if data.batch is None else data.batch
    pairs = Pairs(Edges(data.edge_index, data.num_nodes), batch, int(batch[-1]) + 1)
    inner = 2 * width
    inputs = [random(data.num_nodes, inner, seed=0), random(data.edge_index.size(1), width, seed=1)]
    inputs.append(random(width, seed=2))
    for number, seen in enumerate([inner, inner, inner, width, inner, inner, width]):
        inputs.append(random(width, seen, seed=number + 3) * 2 / seen**0.5)
    matrix = random(pairs.num_graphs, pairs.max_nodes, pairs.max_nodes, seed=11).abs()
    if not kernel:
        inputs += [torch.tensor(0.9, dtype=torch.float64), torch.tensor(0.1, dtype=torch.float64)]

    def run(x: Tensor, e: Tensor, e_added: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        f = matrix.to(x.dtype)
        factors = (f, f) if kernel else (others[-2], others[-1])
        return (pair_attention(x, e, e_added, PairMaps(*others[:7]), factors, pairs, heads),)

    return Case(run, inputs)


def norm(
    rows: int, *, training: bool, relu: bool = True, residual: bool = True, scaled: bool = True, width: int = WIDTH
) -> Case:
    scale = random(rows, 1, seed=7).abs() + 0.5

    def run(x: Tensor, weight: Tensor, bias: Tensor, old: Tensor) -> tuple[Tensor, ...]:
        module = nn.BatchNorm1d(width).to(x.dtype)
        module.running_mean, module.running_var = random(width, seed=5).to(x), random(width, seed=6).abs().to(x)
        del module.weight, module.bias
        module.weight, module.bias = weight, bias
        out = batch_norm(
            module,
            x,
            scale=scale.to(x.dtype) if scaled else None,
            relu=relu,
            residual=old if residual else None,
            batch_statistics=training,
        )
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
        "attention with numbers": attention(data, kernel=False),
        "attention with a kernel": attention(data, kernel=True),
    }
