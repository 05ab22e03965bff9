import math
from itertools import count, islice, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ogb.utils import smiles2graph
from rdkit import Chem
from scipy.special import expit, softmax
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddRandomWalkPE

import lspe
from lspe.data import DataError
from lspe.data.benchmarks.zinc import FEATURES as ZINC
from lspe.errors import UserError
from lspe.features import CategoricalFeatures, NoFeatures
from lspe.predict import Predictor
from lspe.predict.member import _MOST_EMBEDDED_PAIRS, _MOST_GRAPHS, _MOST_PAIRS, Member, _neighbouring
from lspe.predict.molecules import AT_ONCE
from lspe.training.objective import TargetScaling
from tests.members import SMILES, member, save

NCI_LIKE = CategoricalFeatures(node_types=5, edge_types=5, vocabulary=("C", "O", "N", "C H1"), unknown=True)


def ogb_graph(smiles: str, k: int = 16) -> Data:
    """A molecule's graph made by OGB, its encoding by PyG."""
    graph = smiles2graph(smiles)
    data = Data(
        x=torch.from_numpy(graph["node_feat"]),
        edge_index=torch.from_numpy(graph["edge_index"]),
        edge_attr=torch.from_numpy(graph["edge_feat"]),
    )
    return AddRandomWalkPE(k, attr_name="random_walk_pe")(data)


def raw_output(one: Member, smiles: list[str]) -> np.ndarray:
    """What the network gives in float64 for graphs made by others."""
    network = one.network.double()
    batch = Batch.from_data_list([ogb_graph(text) for text in smiles])
    with torch.no_grad():
        output = network(batch).numpy()
    network.float()
    return output


def test_values_are_those_of_ogbs_graphs_and_pygs_encoding_in_original_units() -> None:
    scaling = TargetScaling((-2.5, 300.0), (1.7, 40.0))
    one = member(tasks=("logS", "boiling point"), scaling=scaling)
    expected = raw_output(one, SMILES) * scaling.std + scaling.mean
    np.testing.assert_allclose(Predictor([one]).predict(SMILES), expected, rtol=1e-4, atol=1e-5)


def test_binary_tasks_give_a_probability_each() -> None:
    one = member("binary", tasks=("toxic", "soluble"))
    np.testing.assert_allclose(Predictor([one]).predict(SMILES), expit(raw_output(one, SMILES)), rtol=1e-4)


def test_classes_give_a_probability_each() -> None:
    one = member("multiclass", tasks=("colour",), classes=("red", "green", "blue"))
    predicted = Predictor([one]).predict(SMILES)
    np.testing.assert_allclose(predicted, softmax(raw_output(one, SMILES), axis=1), rtol=1e-4)
    np.testing.assert_allclose(predicted.sum(axis=1), 1)


@pytest.mark.parametrize("preset", ["own/gatedgcn-lspe", "zinc/san-lspe", "zinc/gatedgcn-lappe", "moltox21/pna-lspe"])
def test_a_prediction_depends_on_the_molecule_alone(preset: str) -> None:
    model = Predictor([member(preset=preset) if preset.startswith(("own", "moltox21")) else zinc_member(preset)])
    together = model.predict(SMILES)
    alone = np.array([model.predict(text)[0] for text in SMILES])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert np.isfinite(together).sum() >= 10
    order = np.random.default_rng(0).permutation(len(SMILES))
    shuffled = model.predict([SMILES[i] for i in order])
    np.testing.assert_allclose(shuffled, together[order], rtol=1e-4, atol=1e-5, equal_nan=True)


def zinc_member(preset: str) -> Member:
    return member("regression", "model.hidden_dim=16", preset=preset, features=ZINC)


def test_an_ensemble_gives_mean_and_standard_deviation() -> None:
    members = [member(seed=seed) for seed in range(3)]
    members.append(member("regression", "model.k=8", seed=3))
    each = [Predictor([one]).predict(SMILES) for one in members]
    mean, sd = Predictor(members).predict(SMILES, return_std=True)
    np.testing.assert_allclose(mean, np.mean(each, axis=0))
    np.testing.assert_allclose(sd, np.std(each, axis=0))
    assert sd.min() > 0


def test_one_network_has_no_standard_deviation() -> None:
    with pytest.raises(UserError, match="only one"):
        Predictor([member()]).predict("CCO", return_std=True)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"tasks": ("z",)}, "targets"),
        ({"fragments": "largest"}, "fragments"),
        ({"features": ZINC, "preset": "zinc/gatedgcn-lspe"}, "features"),
    ],
)
def test_runs_that_predict_different_things_are_no_ensemble(other: dict, what: str) -> None:
    with pytest.raises(UserError, match=f"no ensemble: the (treatment of )?{what}"):
        Predictor([member(), member(**other)])


def test_what_cannot_be_read_is_nan_with_its_reason() -> None:
    model = Predictor([member()])
    column = pd.Series(["CCO", "C(C", None, "C1CC", float("nan"), "CN(C)(C)C", "c1ccccc1"], index=list("abcdefg"))
    values = model.predict(column)
    assert np.isnan(values).tolist() == [False, True, True, True, True, True, False]
    assert set(model.reasons) == {1, 2, 3, 4, 5}
    assert model.reasons[2] == "is no SMILES"
    assert "valence" in model.reasons[5]
    assert values[0] == pytest.approx(model.predict("CCO")[0], rel=1e-5)
    assert model.reasons == {}


def test_fragments_are_treated_as_in_training() -> None:
    salt, acid = "CC(=O)[O-].[Na+]", "CC(=O)[O-]"
    keep, largest, refuse = (Predictor([member(fragments=fragments)]) for fragments in ("keep", "largest", "error"))
    assert largest.predict(salt) == pytest.approx(largest.predict(acid), rel=1e-5)
    assert keep.predict(salt) != pytest.approx(keep.predict(acid), rel=1e-3)
    assert np.isnan(refuse.predict(salt))
    assert refuse.reasons == {0: "has 2 fragments"}


def test_a_vocabulary_with_an_unknown_entry_takes_every_molecule() -> None:
    model = Predictor([member(features=NCI_LIKE, preset="nci/gatedgcn-lspe")])
    values = model.predict(["COC", "CSC", "CPC"])
    assert np.isfinite(values).all()
    assert values[1] == pytest.approx(values[2], rel=1e-5)
    assert values[0] != pytest.approx(values[1], rel=1e-3)


def test_a_closed_vocabulary_says_what_it_does_not_know() -> None:
    model = Predictor([zinc_member("zinc/gatedgcn-lspe")])
    assert np.isnan(model.predict(["CCO", "C[Si](C)(C)C"])).tolist() == [False, True]
    assert "Si" in model.reasons[1]


def test_graphs_with_the_same_features_give_the_same_values() -> None:
    model = Predictor([member()])
    graphs = [ogb_graph(text) for text in SMILES]
    np.testing.assert_allclose(model.predict(graphs), model.predict(SMILES), rtol=1e-4)
    assert model.predict(graphs[0]) == pytest.approx(model.predict(SMILES[0]), rel=1e-4)


def test_graphs_with_other_features_are_refused() -> None:
    graph = Data(x=torch.zeros(3, dtype=torch.long), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(DataError, match=r"OGB's atom and bond features, but the graphs have 1 node types"):
        Predictor([member()]).predict([graph])


def test_a_network_for_other_graphs_refuses_molecules() -> None:
    model = Predictor([member(features=NoFeatures(), preset="csl/gatedgcn-lspe")])
    with pytest.raises(DataError, match="cannot predict SMILES"):
        model.predict("CCO")
    ring = Data(num_nodes=4, edge_index=torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]]))
    assert math.isfinite(model.predict(ring)[0])


def test_vectors_lead_to_the_prediction_and_belong_to_their_atoms() -> None:
    one = member()
    model = Predictor([one])
    texts = [*SMILES, "C(C"]
    vectors = model.embed(texts)
    with torch.no_grad():
        from_vectors = one.network.head(torch.from_numpy(vectors.graph)).numpy()[:, 0]
    np.testing.assert_allclose(from_vectors, model.predict(texts), rtol=1e-4)
    counts = [Chem.MolFromSmiles(text).GetNumAtoms() for text in SMILES]
    assert [len(atoms) for atoms in vectors.atoms] == [*counts, 0]
    assert [len(positions) for positions in vectors.positions] == [*counts, 0]
    for row, atoms in zip(vectors.graph, vectors.atoms[:-1], strict=False):
        np.testing.assert_allclose(atoms.mean(axis=0), row, rtol=1e-4, atol=1e-5)
    benzene = vectors.positions[1]
    np.testing.assert_allclose(benzene, np.broadcast_to(benzene[0], benzene.shape), rtol=1e-4, atol=1e-5)


def test_vectors_are_as_wide_as_what_is_read_out() -> None:
    one = member("regression", "model.readout=mean+sum")
    model = Predictor([one])
    vectors = model.embed([*SMILES, "C(C"]).graph
    assert vectors.shape == (len(SMILES) + 1, 32)
    assert model.embed([]).graph.shape == (0, 32)
    with torch.no_grad():
        from_vectors = one.network.head(torch.from_numpy(vectors)).numpy()[:, 0]
    np.testing.assert_allclose(from_vectors[:-1], model.predict(SMILES), rtol=1e-4)


def test_vectors_of_an_ensemble_are_those_of_its_first_network() -> None:
    first, other = member(), member(seed=1)
    vectors = Predictor([first, other]).embed("CCO")
    np.testing.assert_array_equal(vectors.graph, Predictor([first]).embed("CCO").graph)
    assert (vectors.graph != Predictor([other]).embed("CCO").graph).any()


def test_a_run_folder_predicts_as_the_network_in_it(tmp_path: Path) -> None:
    one = member(scaling=TargetScaling((3.0,), (2.0,)), fragments="largest")
    one.save(tmp_path / "run")
    loaded = lspe.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict(SMILES), Predictor([one]).predict(SMILES))
    assert loaded.fragments == "largest"


def test_several_runs_are_loaded_as_one_ensemble(tmp_path: Path) -> None:
    runs = [save(tmp_path / f"run{seed}", seed=seed) for seed in range(3)]
    mean = lspe.load(runs).predict("CCO")
    assert mean == pytest.approx(np.mean([lspe.load(run).predict("CCO") for run in runs]))


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        lspe.load(tmp_path)
    with pytest.raises(UserError, match="no run"):
        lspe.load([])


def test_a_table_is_no_column() -> None:
    with pytest.raises(UserError, match="one column"):
        Predictor([member()]).predict(pd.DataFrame({"smiles": ["CCO"], "y": [1]}))


@pytest.mark.parametrize("device", ["gpu", "cuda:99" if not torch.cuda.is_available() else "tpu"])
def test_a_device_that_is_not_there(device: str) -> None:
    with pytest.raises(UserError, match=f"no device '{device}'"):
        Predictor([member()], device=device)


def test_nothing_in_nothing_out() -> None:
    assert Predictor([member()]).predict([]).shape == (0,)
    assert Predictor([member("binary", tasks=("a", "b"))]).predict([]).shape == (0, 2)


def test_an_endless_stream_is_predicted_as_it_comes() -> None:
    pulled = count()

    def pieces():
        while True:
            yield [f"{'C' * (1 + next(pulled) % 9)}O"] * 3

    results = list(islice(Predictor([member()]).predict_pieces(pieces(), lambda piece: piece, 1), 4))
    assert next(pulled) < 20
    assert [piece[0] for piece, _ in results] == ["CO", "CCO", "CCCO", "CCCCO"]


def test_processes_change_nothing() -> None:
    model = Predictor([member()])
    texts = [*SMILES, "no molecule"] * (2 * AT_ONCE // len(SMILES))
    np.testing.assert_array_equal(model.predict(texts, processes=2), model.predict(texts, processes=1))
    assert len(model.reasons) == texts.count("no molecule")


def test_an_output_that_is_not_a_number_has_a_reason() -> None:
    one = member()
    with torch.no_grad():
        one.network.head.out.bias.fill_(float("inf"))
    model = Predictor([one])
    assert np.isnan(model.predict("CCO"))
    assert "not a number" in model.reasons[0]


class Sizes:
    """Stands for a set of graphs of which only the sizes are known."""

    def __init__(self, sizes: list[int]) -> None:
        self.num_nodes = np.array(sizes, dtype=np.int64)

    def batch(self, indices: np.ndarray) -> np.ndarray:
        return indices


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 3000), max_size=400), st.sampled_from([_MOST_PAIRS, _MOST_EMBEDDED_PAIRS]))
def test_batches_hold_every_graph_once_and_fit_into_memory(sizes: list[int], most_pairs: int) -> None:
    batches = list(_neighbouring(Sizes(sizes), most_pairs))  # type: ignore[arg-type]
    assert [int(index) for batch in batches for index in batch] == list(range(len(sizes)))
    for batch in batches:
        largest = max(sizes[index] for index in batch)
        assert len(batch) <= _MOST_GRAPHS
        assert len(batch) == 1 or len(batch) * largest**2 <= most_pairs


def test_atom_order_does_not_matter() -> None:
    model = Predictor([member()])
    acid = Chem.MolFromSmiles("CC(=O)O")
    texts = [
        Chem.MolToSmiles(Chem.RenumberAtoms(acid, list(order)), canonical=False) for order in permutations(range(4))
    ]
    values = model.predict(texts)
    np.testing.assert_allclose(values, values[0], rtol=1e-4)
