import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddRandomWalkPE, Compose

from lspe.encodings import AddEncoding, LaplacianEncoding, RandomWalkEncoding, laplacian_encoding, random_walk_encoding
from tests.graphs import decalin, from_edges, random_batches


def test_in_place_of_the_transforms_of_pyg():
    data = decalin()
    ours = Compose([RandomWalkEncoding(6), LaplacianEncoding(12)])(data)
    assert "random_walk_pe" not in data
    torch.testing.assert_close(ours.random_walk_pe, AddRandomWalkPE(6)(data).random_walk_pe)
    assert torch.equal(ours.laplacian_eigenvector_pe, laplacian_encoding(data.edge_index, 10, 12).vectors)
    assert torch.equal(AddEncoding("rwpe", 6)(data).random_walk_pe, ours.random_walk_pe)
    assert repr(AddEncoding("rwpe", 6)) == "AddEncoding('rwpe', k=6)"
    assert repr(RandomWalkEncoding(6)) == "RandomWalkEncoding(k=6)"
    assert repr(LaplacianEncoding(6)) == "LaplacianEncoding(k=6)"


@settings(max_examples=30, deadline=None)
@given(random_batches(weighted=True))
def test_a_whole_batch_in_one_call(batch):
    transform = Compose([RandomWalkEncoding(5), LaplacianEncoding(3, attr_name="eigen")])
    together = transform(batch)
    expected = random_walk_encoding(batch.edge_index, None, 5, edge_weight=batch.edge_weight, batch=batch.batch)
    assert torch.equal(together.random_walk_pe, expected)
    for from_batch, single in zip(together.to_data_list(), batch.to_data_list(), strict=True):
        alone = transform(single)
        assert torch.equal(from_batch.random_walk_pe, alone.random_walk_pe)
        assert torch.equal(from_batch.eigen, alone.eigen)
    assert "random_walk_pe" not in batch
    assert "random_walk_pe" not in batch.get_example(0)


def test_the_encoding_of_a_loader_is_that_of_its_graphs():
    graphs = [RandomWalkEncoding(4)(data) for data in (decalin(), from_edges(1, []), from_edges(3, [(0, 2)]))]
    (batch,) = DataLoader(graphs, batch_size=3)
    assert torch.equal(batch.random_walk_pe, RandomWalkEncoding(4)(batch).random_walk_pe)


@pytest.mark.parametrize("transform", [RandomWalkEncoding, LaplacianEncoding])
def test_without_a_name_the_encoding_is_appended_to_x(transform):
    data = decalin()
    encoding = transform(3, attr_name=None)(data).x
    assert encoding.shape == (10, 3)
    data.x = torch.arange(10).double()
    assert torch.equal(transform(3, attr_name=None)(data).x, torch.cat([data.x[:, None], encoding.double()], 1))
    data.x = torch.arange(10)
    assert torch.equal(transform(3, attr_name=None)(data).x, torch.cat([data.x[:, None].float(), encoding], 1))
    batch = transform(3, attr_name=None)(Batch.from_data_list([decalin(), decalin()]))
    assert torch.equal(batch.get_example(1).x, encoding)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        RandomWalkEncoding(0)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        LaplacianEncoding(0)
    with pytest.raises(ValueError, match="need a `Data` or `Batch` object with `edge_index`"):
        RandomWalkEncoding(2)(Data(x=torch.ones(2, 1)))
