import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch_geometric.data import Batch

from lspe.encodings import kinds_by_column, laplacian_encoding, random_walk_encoding, uniqueness
from tests.graphs import csl, cubic_8, decalin, random_graphs


@given(
    arrays.arrays(np.int64, st.tuples(st.integers(0, 12), st.integers(1, 3)), elements=st.integers(-2, 2)), st.data()
)
def test_agrees_with_counting_rows(rows, data):
    graph = sorted(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    noise = np.random.default_rng(0).uniform(-4e-7, 4e-7, rows.shape)
    counted = uniqueness(torch.from_numpy(rows + noise), torch.tensor(graph, dtype=torch.long))
    expected = [
        len({tuple(row) for row, g in zip(rows, graph, strict=True) if g == i})
        for i in range(max(graph, default=-1) + 1)
    ]
    assert counted.tolist() == expected


def test_values_between_two_decimals_stay_together():
    middle = np.float32(1 / 128)  # 0.0078125: rounding to six digits goes either way
    encoding = torch.tensor([[np.nextafter(middle, np.float32(0))], [middle], [np.nextafter(middle, np.float32(1))]])
    assert encoding.double().mul(1e6).round().unique().numel() == 2
    assert uniqueness(encoding).tolist() == [1]
    assert uniqueness(encoding, digits=12).tolist() == [3]


def test_graphs_of_the_paper():
    batch = Batch.from_data_list([csl(11, 2), cubic_8(), decalin()])
    encoding = random_walk_encoding(batch.edge_index, None, 10, batch=batch.batch)
    assert uniqueness(encoding, batch.batch).tolist() == [1, 3, 3]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="encoding of node 1 is not finite"):
        uniqueness(torch.tensor([[1.0], [torch.nan]]))
    with pytest.raises(ValueError, match="must have shape"):
        uniqueness(torch.ones(3))


@pytest.fixture(scope="module")
def zinc_validation() -> tuple[torch.Tensor, torch.Tensor]:
    """The 1,000 validation graphs of ZINC-12k as one batch: edge_index and batch."""
    folder = os.environ.get("LSPE_DATA")
    if folder is None or not (Path(folder) / "zinc12k_graphs.npz").exists():
        pytest.skip("needs zinc12k_graphs.npz in the folder $LSPE_DATA")
    with np.load(Path(folder) / "zinc12k_graphs.npz") as file:
        sizes, edges = file["num_nodes"].astype(np.int64), file["num_edges"].astype(np.int64)
        train, val, _ = file["split_sizes"]
        chosen = slice(edges[:train].sum(), edges[: train + val].sum())
        ends = np.stack([file["edge_src"], file["edge_dst"]]).astype(np.int64)[:, chosen]
    sizes, edges = sizes[train : train + val], edges[train : train + val]
    ends += np.repeat(sizes.cumsum() - sizes, edges)
    edge_index = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
    return edge_index, torch.from_numpy(np.arange(val).repeat(sizes))


def test_distinct_random_walk_encodings_of_zinc(zinc_validation):
    edge_index, batch = zinc_validation
    sizes = torch.bincount(batch)
    distinct = uniqueness(random_walk_encoding(edge_index, None, 24, batch=batch), batch)
    examples = {i: (int(distinct[i]), int(sizes[i])) for i in (91, 967, 212, 672)}
    assert examples == {91: (24, 24), 967: (21, 21), 212: (10, 14), 672: (13, 18)}
    assert int(((sizes == 23) & (distinct == 21)).sum()) == 30


def test_laplacian_encodings_of_zinc_are_all_distinct(zinc_validation):
    edge_index, batch = zinc_validation
    vectors = laplacian_encoding(edge_index, None, 36, batch=batch).vectors
    assert torch.equal(uniqueness(vectors, batch), torch.bincount(batch))


@settings(max_examples=60, deadline=None)
@given(random_graphs(max_nodes=9))
def test_kinds_agree_with_uniqueness_and_only_split(data: Any) -> None:
    k = 5
    encoding = random_walk_encoding(data.edge_index, data.num_nodes, k)
    kinds = kinds_by_column(encoding).numpy()
    for column in range(k):
        assert len(set(kinds[column])) == int(kinds[column].max()) + 1
        assert int(kinds[column].max()) + 1 == int(uniqueness(encoding[:, : column + 1]))
    for before, after in itertools.pairwise(kinds):
        order = np.argsort(after, kind="stable")
        assert (np.diff(before[order]) >= 0).all()  # what splits becomes neighbouring kinds
        pairs = {(int(b), int(a)) for b, a in zip(before, after, strict=True)}
        assert len(pairs) == int(after.max()) + 1
