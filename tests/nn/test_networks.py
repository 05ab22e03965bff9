"""Properties of whole networks, for every embedder, encoding, final and readout."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch_geometric.data import Batch, Data

from lspe import testing
from lspe.encodings import RandomWalkEncoding, encode_pairs, find_kind
from lspe.nn import ConstantEmbedder, Head, Network, Output, Topology
from tests.graphs import CORNER_CASES, csl, random_batches
from tests.nn.builders import FEATURES, MODELS, make_network, with_features

networks = pytest.mark.parametrize("model", MODELS)
quick = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def level(model: str) -> str:
    return "node" if MODELS[model].get("readout") == "none" else "graph"


@networks
@given(batch=random_batches())
@quick
def test_permutation(model: str, batch: Batch) -> None:
    network = make_network(model).eval()
    testing.check_permutation_equivariance(network, with_features(batch), level=level(model), tolerance=1e-8)


@networks
@given(batch=random_batches(min_graphs=2))
@quick
def test_batch_equals_singles(model: str, batch: Batch) -> None:
    network = make_network(model).eval()
    graphs = [with_features(graph, seed=seed) for seed, graph in enumerate(batch.to_data_list())]
    testing.check_batch_equals_singles(network, graphs, level=level(model), tolerance=1e-8)


@networks
@given(batch=random_batches())
@quick
def test_finite(model: str, batch: Batch) -> None:
    network = make_network(model)
    testing.check_finite(network, with_features(batch), network)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("model", ["gatedgcn-lspe", "san-lspe", "tower-pna-lspe"])
def test_every_kind_of_features(model: str, features: str) -> None:
    network = make_network(model, features)
    graphs = Batch.from_data_list(list(CORNER_CASES.values()))
    data = with_features(graphs, features)
    testing.check_finite(network, data, network)
    network.eval()
    testing.check_permutation_equivariance(network, data, level="graph", tolerance=1e-8)


@pytest.mark.parametrize("model", ["san-lspe", "graphit-lspe", "san-lspe-rrwp", "graphit-lspe-resistance"])
def test_encodings_are_those_of_the_original_graph(model: str) -> None:
    """Listing the pairs that are not edges, marked as not real, changes nothing: not the kernel, not the encoding."""
    network = make_network(model).eval()
    data = with_features(Batch.from_data_list([CORNER_CASES["decalin"], CORNER_CASES["star"]]))
    graph = Topology.of(data)
    graphs, targets, sources = graph.unlisted_pairs.nonzero().T
    first = torch.tensor([0, 10])
    added = torch.stack([sources + first[graphs], targets + first[graphs]])
    full = data.clone()
    full.edge_index = torch.cat([data.edge_index, added], dim=1)
    full.edge_attr = torch.cat([data.edge_attr, data.edge_attr.new_zeros(added.size(1))])
    full.real_edge = torch.arange(full.edge_index.size(1)) < data.edge_index.size(1)
    for kind, k in (("rrwp", 6), ("resistance-pairs", 1)):
        options = {"pairs": full.edge_index, "batch": data.batch, "dtype": torch.float64}
        full[find_kind(kind).attribute] = encode_pairs(kind, data.edge_index, None, k, **options)
        data[find_kind(kind).attribute] = encode_pairs(kind, data.edge_index, None, k, **{**options, "pairs": None})
    kernel = Topology.of(full).diffusion_kernel(0.25, 16, torch.float64)
    torch.testing.assert_close(kernel, graph.diffusion_kernel(0.25, 16, torch.float64))
    torch.testing.assert_close(network(full), network(data))


def test_without_positions_regular_graphs_look_alike_and_with_them_they_do_not() -> None:
    """The claim of the paper in one line: CSL(11,2) and CSL(11,3)."""
    two, three = (RandomWalkEncoding(5)(csl(11, skip)) for skip in (2, 3))
    batch = Batch.from_data_list([two, three])
    plain = make_network("gatedgcn", "none").eval()(batch)
    torch.testing.assert_close(plain[0], plain[1])
    network = make_network("gatedgcn-lspe", "none")
    network.normalize_positions = False  # all nodes share one position: centring would leave nothing
    learned = network.eval()(batch)
    assert (learned[0] - learned[1]).abs().max() > 1e-4


@pytest.mark.parametrize("model", ["pna-rrwp", "san-lspe-rrwp", "graphit-lspe-resistance"])
def test_pairs_count(model: str) -> None:
    """Each pair has its own encoding: of edges, and of pairs without one where attention adds them."""
    data = with_features(Batch.from_data_list([CORNER_CASES["decalin"], CORNER_CASES["tree"]]))
    network = make_network(model).eval()
    before = network(data)
    other = data.clone()
    for name in ("edge_relative_walk_pe", "edge_resistance_pe"):
        other[name] = data[name].clone()
        other[name][3] += 1.0
    assert (network(other) - before).abs().max() > 1e-9
    if network.pair_encoding == "rrwp" and "san" in model:
        graph = Topology.of(data)
        added = network._encoding_of_added_pairs(data, graph, torch.float64)
        assert len(added) == graph.pairs.unlisted_index.size(1) == 10 * 9 + 12 * 11 - data.num_edges
        network.embed_pair.weight.data.zero_()
        assert (network(data) - before).abs().max() > 1e-6


def test_random_signs_in_training_only() -> None:
    network = make_network("gatedgcn-lappe")
    data = with_features(CORNER_CASES["tree"])
    network.eval()
    torch.testing.assert_close(network(data), network(data), rtol=0, atol=0)
    for layer in network.layers:  # so that only the signs differ between two calls
        layer.eval()
    network.training = True
    torch.manual_seed(0)
    outputs = torch.cat([network(data) for _ in range(8)])
    assert outputs.std(0).max() > 1e-6


def test_an_invariant_embedding_is_blind_to_signs_and_to_nothing_else() -> None:
    network = make_network("gatedgcn-lspe-invariant").eval()
    data = with_features(Batch.from_data_list([CORNER_CASES["tree"], CORNER_CASES["decalin"], CORNER_CASES["path"]]))
    testing.check_sign_invariance(network, data, tolerance=1e-12)
    linear = make_network("gatedgcn-lappe").eval()
    with pytest.raises(AssertionError, match="after flipping signs"):
        testing.check_sign_invariance(linear, data, tolerance=1e-12)
    # which nodes lie on one side counts: the sign of one entry alone is no sign of an eigenvector
    other = data.clone()
    other.laplacian_eigenvector_pe = data.laplacian_eigenvector_pe.clone()
    other.laplacian_eigenvector_pe[1, 0] *= -1
    assert (network(other) - network(data)).abs().max() > 1e-6


def test_invariance_is_refused_where_there_are_no_signs() -> None:
    with pytest.raises(ValueError, match=r"signs='invariant' is for encodings with signs, such as 'lappe'; 'rwpe'"):
        Network(ConstantEmbedder(8, 8), [], Head(8, 1), dim=8, encoding="rwpe", k=3, signs="invariant")


def test_output_says_what_is_inside() -> None:
    data = with_features(Batch.from_data_list([CORNER_CASES["star"], CORNER_CASES["path"]]))
    out = make_network("gatedgcn-lspe").eval().run(data)
    assert out.output.shape == (2, 2)
    assert out.h.shape == (7, 16)
    assert out.p.shape == (7, 5)
    sums = torch.stack([out.p[:4].sum(0), out.p[4:].sum(0)])
    torch.testing.assert_close(sums, torch.zeros_like(sums), atol=1e-12, rtol=0)
    assert make_network("gatedgcn").eval().run(data).p is None


@pytest.mark.parametrize("readout", ["mean", "sum", "mean+sum", "max"])
@pytest.mark.parametrize("centred", [True, False])
def test_centred_positions_do_not_reach_a_mean_or_a_sum(readout: str, centred: bool) -> None:
    """[h, p] is mapped linearly before it is pooled, and the mean of centred positions is zero."""
    data = with_features(Batch.from_data_list([CORNER_CASES["star"], CORNER_CASES["decalin"]]))
    network = make_network("gatedgcn-lspe", readout=readout, normalize_positions=centred).eval()
    before = network(data)
    with torch.no_grad():
        network.fuse.weight[:, network.dim :] *= -3
    assert torch.allclose(network(data), before, rtol=0, atol=1e-10) == (centred and readout != "max")


@pytest.mark.parametrize("readout", ["mean", "sum", "mean+sum"])
@pytest.mark.parametrize("model", ["gatedgcn-lspe", "gatedgcn-rwpe-final", "gatedgcn-lspe-edge-sum"])
@given(batch=random_batches())
@quick
def test_pooled_first_or_last_it_is_the_same(model: str, readout: str, batch: Batch) -> None:
    """What is behind the layers is linear; also of a graph without nodes, and whatever the gradient is of."""
    data = with_features(batch)
    network = make_network(model, readout=readout, normalize_positions=model != "gatedgcn-lspe-edge-sum")
    graph = Topology(data.edge_index, data.num_nodes, data.batch, num_graphs=data.num_graphs + 1)
    found = []
    for run in (network, lambda *given: network.run(*given).output):
        output = run(data, graph)
        gradients = torch.autograd.grad(output.sin().sum(), list(network.parameters()), materialize_grads=True)
        found.append([output.detach(), *gradients])
    for first, last in zip(*found, strict=True):
        torch.testing.assert_close(first, last, rtol=1e-8, atol=1e-10)
    assert network._may_pool_first()


def test_who_wants_to_see_nodes_sees_them() -> None:
    data = with_features(Batch.from_data_list([CORNER_CASES["star"], CORNER_CASES["path"]]))
    network = make_network("gatedgcn-lspe").eval()
    expected, seen = network(data), []
    with network.fuse.register_forward_hook(lambda _, __, output: seen.append(len(output))):
        torch.testing.assert_close(network(data), expected)
    network.fuse = torch.nn.Sequential(network.fuse, torch.nn.ReLU())
    assert torch.equal(network(data), network.run(data).output)
    assert seen == [data.num_nodes]


def test_another_finish_and_dropout_come_before_pooling() -> None:
    class Doubled(Network):
        def finish(self, *given: object) -> Output:
            return super().finish(*given)._replace(output=torch.ones(2, 2))  # type: ignore[arg-type]

    data = with_features(Batch.from_data_list([CORNER_CASES["star"], CORNER_CASES["path"]]))
    network = make_network("gatedgcn-lspe")
    network.dropout = 0.5
    outputs = []
    for run in (network, lambda data: network.run(data).output):
        torch.manual_seed(0)
        outputs.append(run(data))
    assert torch.equal(*outputs)
    network.__class__ = Doubled
    assert torch.equal(network.eval()(data), torch.ones(2, 2))


def test_clear_errors() -> None:
    network = make_network("gatedgcn-lspe")
    data = with_features(CORNER_CASES["star"])
    missing = Data(x=data.x, edge_index=data.edge_index, edge_attr=data.edge_attr)
    with pytest.raises(ValueError, match=r"no 'random_walk_pe': apply lspe.encodings.AddEncoding\('rwpe', k=5\)"):
        network(missing)
    with pytest.raises(ValueError, match=r"no 'edge_relative_walk_pe': apply .*AddEncoding\('rrwp', k=6\)"):
        make_network("pna-rrwp")(missing)
    data.random_walk_pe = data.random_walk_pe[:, :3]
    with pytest.raises(ValueError, match="has 3 columns, but the network takes k=5"):
        network(data)
    data.x = data.x + 5
    with pytest.raises(IndexError, match="node types are 0 to 4, but the batch has"):
        network(data)
