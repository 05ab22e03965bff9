"""One call for every kind of encoding gives what the kind's own function gives."""

import pytest
import torch

from lspe.encodings import ENCODING_ATTRIBUTE, EncodingKind, encode, laplacian_encoding, random_walk_encoding
from lspe.errors import UserError
from tests.graphs import decalin


@pytest.mark.parametrize("kind", ENCODING_ATTRIBUTE)
def test_every_kind_is_its_own_function(kind: EncodingKind) -> None:
    graph = decalin()
    weight = 1.0 + graph.edge_index.sum(0) % 3  # the same in both directions
    options = {"edge_weight": weight, "batch": torch.zeros(10, dtype=torch.long), "dtype": torch.float64}
    walks = random_walk_encoding(graph.edge_index, 10, 5, **options)
    vectors = laplacian_encoding(graph.edge_index, 10, 5, **options).vectors
    expected = walks if kind == "rwpe" else vectors
    assert torch.equal(encode(kind, graph.edge_index, 10, 5, **options), expected)
    assert not torch.equal(walks, vectors)


def test_what_is_no_encoding_is_said() -> None:
    with pytest.raises(UserError, match="there is no encoding 'rw'; use 'rwpe'"):
        encode("rw", decalin().edge_index, 10, 5)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="at least one column, not k = 0"):
        encode("rwpe", decalin().edge_index, 10, 0)
