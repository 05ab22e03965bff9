"""Rows that are looked up in a table are mapped in the table, and nobody can tell."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch, Data

from lspe.experiment import build_network, load_preset, override
from lspe.nn.embed import CategoricalEmbedder, OGBEmbedder
from lspe.ops import use
from lspe.ops.choice import Choice
from lspe.ops.fused.edge_maps import map_edges
from lspe.ops.fused.look_ups import look_up, looked_up, sum_of_entries


def table(types: int = 4, width: int = 7, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(types, width, dtype=torch.float64, generator=generator).requires_grad_()


@pytest.mark.parametrize("edges", [0, 5, 100])
@pytest.mark.parametrize("bias", [False, True])
def test_a_map_of_the_table_is_a_map_of_the_rows(edges: int, bias: bool) -> None:
    values, weight = table(), table(19, seed=1)
    others = (weight, table(1, 19, seed=2)[0]) if bias else (weight,)
    kind = torch.arange(edges) * 3 % 4
    found = []
    for mapped in (map_edges(look_up(values, kind), *others), F.linear(values[kind], *others)):
        factor = torch.linspace(-1, 1, mapped.numel(), dtype=torch.float64).view_as(mapped)
        found.append([mapped, *torch.autograd.grad((factor * mapped).sum(), (values, weight))])
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (40, 9)])
def test_sums_of_entries_are_those_of_an_embedding_bag(rows: int, columns: int) -> None:
    values = table(11)
    entry = torch.randint(0, 11, (rows, columns), generator=torch.Generator().manual_seed(0))
    found = []
    for sums in (sum_of_entries(values, entry), F.embedding_bag(entry, values, mode="sum")):
        factor = torch.linspace(-1, 1, sums.numel(), dtype=torch.float64).view_as(sums)
        found.append([sums, *torch.autograd.grad((factor * sums).sum(), values)])
    for ours, torchs in zip(*found, strict=True):
        torch.testing.assert_close(ours, torchs, rtol=1e-12, atol=1e-12)
    if rows:  # PyTorch's embedding of nothing cannot be differentiated twice
        torch.autograd.gradgradcheck(lambda values: sum_of_entries(values, entry), values)


@pytest.mark.parametrize("entry", [-1, 11])
def test_an_entry_beyond_the_table_is_refused(entry: int) -> None:
    with pytest.raises(IndexError, match="index out of range"):
        sum_of_entries(table(11), torch.tensor([[0, entry]]))


def test_rows_that_were_changed_forget_their_table() -> None:
    kind = torch.arange(50) % 4
    e = look_up(table().detach(), kind)
    assert looked_up(e) is not None
    assert looked_up(e * 1) is None
    e.mul_(2)
    assert looked_up(e) is None


def test_few_rows_are_not_worth_a_table() -> None:
    assert looked_up(look_up(table(), torch.tensor([0, 1, 2]))) is None


def test_types_of_several_columns_are_kinds() -> None:
    torch.manual_seed(0)
    embedder = OGBEmbedder(8, 6)
    bonds = torch.randint(0, 9, (300, 3)) % torch.tensor([5, 6, 2])
    bonds[7] = torch.tensor([4, 9, 1])  # beyond the column's table: takes its last entry
    data = Data(edge_attr=bonds)
    with use("plain"):
        plain = embedder.edges(data)
    e = embedder.edges(data)
    assert looked_up(e) is not None
    torch.testing.assert_close(e, plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize("operators", ["plain", "fused"])
def test_a_type_below_zero_is_refused_in_every_column(operators: Choice) -> None:
    """In any but the first it would be taken for a type of the column before."""
    embedder = OGBEmbedder(8, 6)
    for column in range(9):
        types = torch.zeros(300, 9, dtype=torch.long)
        types[17, column] = -1
        with use(operators), pytest.raises(IndexError, match="from 0 on, but the batch has -1"):
            embedder.nodes(Data(x=types))
        if column < 3:
            with use(operators), pytest.raises(IndexError, match="from 0 on, but the batch has -1"):
                embedder.edges(Data(edge_attr=types[:, :3]))


def test_a_type_without_an_entry_is_named() -> None:
    embedder = CategoricalEmbedder(3, 4, 8, 8)
    with pytest.raises(IndexError, match="edge types are 0 to 3, but the batch has 1 to 9"):
        embedder.edges(Data(edge_attr=torch.tensor([1, 9] * 20)))


def test_an_embedding_that_somebody_listens_to_is_called() -> None:
    embedder, seen = CategoricalEmbedder(3, 4, 8, 8), []
    embedder.edge_table.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    assert looked_up(embedder.edges(Data(edge_attr=torch.arange(40) % 4))) is None
    assert seen == [(40, 8)]


def molecules() -> Batch:
    """Rings with types of nodes and edges, and positions."""
    graphs = []
    for n in range(4, 12):
        ring = torch.arange(n)
        edge_index = torch.stack([torch.cat([ring, (ring + 1) % n]), torch.cat([(ring + 1) % n, ring])])
        graphs.append(
            Data(
                x=(ring * n) % 28,
                edge_index=edge_index,
                edge_attr=1 + torch.arange(2 * n) * n % 3,
                random_walk_pe=torch.rand(n, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(n)),
                y=torch.zeros(1),
            )
        )
    return Batch.from_data_list(graphs)


@pytest.mark.parametrize("network", ["pna", "san", "graphit"])
def test_whole_networks_equal_their_plain_twins(network: str) -> None:
    torch.manual_seed(0)
    experiment = override(load_preset(f"zinc/{network}-lspe"), ["model.layers=2", "model.dropout=0", "model.k=16"])
    module: nn.Module = build_network(experiment).double()
    batch, found = molecules(), []
    for choice in ("plain", "fused"):
        with use(choice):
            out = module(batch)
            gradients = torch.autograd.grad(out.square().sum(), list(module.parameters()), allow_unused=True)
        found.append([out, *(x for x in gradients if x is not None)])
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-10)
