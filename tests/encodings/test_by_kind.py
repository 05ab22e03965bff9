"""One call for every kind of encoding gives what the kind's own function gives."""

import pytest
import torch

from lspe.encodings import KINDS, encode, find_kind, laplacian_encoding, random_walk_encoding
from lspe.errors import UserError
from tests.graphs import decalin

OPTIONS = {
    "edge_weight": 1.0 + decalin().edge_index.sum(0) % 3,  # the same in both directions
    "batch": torch.zeros(10, dtype=torch.long),
    "dtype": torch.float64,
}


def test_one_call_gives_what_the_kind_s_own_function_gives() -> None:
    edges = decalin().edge_index
    walks = random_walk_encoding(edges, 10, 5, **OPTIONS)
    vectors = laplacian_encoding(edges, 10, 5, **OPTIONS).vectors
    assert torch.equal(encode("rwpe", edges, 10, 5, **OPTIONS), walks)
    assert torch.equal(encode("lappe", edges, 10, 5, **OPTIONS), vectors)
    assert torch.equal(encode(find_kind("lappe"), edges, 10, 5, **OPTIONS), vectors)


def test_kinds_differ_in_all_that_names_them() -> None:
    kinds = [find_kind(name) for name in KINDS]
    assert [kind.name for kind in kinds] == list(KINDS)
    for what in ("title", "attribute", "equation", "compute"):
        assert len({getattr(kind, what) for kind in kinds}) == len(kinds), what


def test_what_is_no_encoding_is_said() -> None:
    with pytest.raises(UserError, match="there is no encoding 'rw'; there are rwpe, lappe"):
        encode("rw", decalin().edge_index, 10, 5)
    with pytest.raises(UserError, match="at least one column, not k = 0"):
        encode("rwpe", decalin().edge_index, 10, 0)
