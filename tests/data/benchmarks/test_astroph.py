"""ca-AstroPh: what is known of it, and that half of its links are hidden."""

from pathlib import Path

import numpy as np
import pytest

from lspe.data import DataError, load_benchmark
from lspe.data.packed.container import open_npz


def codes(pairs: np.ndarray, nodes: int) -> np.ndarray:
    low, high = np.sort(pairs.astype(np.int64), axis=0)
    return low * nodes + high


def test_half_of_the_links_are_hidden(shared_data: Path, session_cache: None) -> None:
    if not (shared_data / "ca_astroph.npz").exists():
        pytest.skip("ca_astroph.npz is not there")
    data = load_benchmark("ca-astroph", shared_data)
    graphs = data.graphs
    assert (data.level, data.features.kind, len(graphs)) == ("link", "none", 1)
    assert graphs.num_nodes.tolist() == [18_772]
    with open_npz(shared_data / "ca_astroph.npz") as file:
        links = np.sort(codes(file["edges"].T, 18_772))
    seen = np.unique(codes(np.stack([graphs.source, graphs.target]), 18_772))
    parts = {}
    for name in ("train", "val", "test"):
        part = data.split(name)
        pairs, joined = codes(part.pairs, 18_772), part.joined[:, 0] == 1
        parts[name] = pairs[joined]
        assert not np.isin(pairs[~joined], links).any()
        assert len(pairs[~joined]) == (0 if name == "train" else joined.sum())
    assert [len(part) for part in parts.values()] == [99_025, 19_805, 79_220]
    np.testing.assert_array_equal(np.sort(np.concatenate([*parts.values()])), links)
    np.testing.assert_array_equal(np.sort(parts["train"]), seen)


def test_where_it_has_to_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ca_astroph\.npz is not in .*: put it there"):
        load_benchmark("ca-astroph", tmp_path)
