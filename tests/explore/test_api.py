"""The JSON API against the library and against networkx; what is asked wrongly; who may ask."""

import json
import random
import re
import string
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import networkx as nx
import numpy as np
import pytest
import torch
from rdkit import Chem

import lspe.explore
from lspe.encodings import KINDS, encode, encode_pairs, find_kind, uniqueness
from lspe.explore.guard import MAX_BODY
from lspe.explore.schema import MAX_ATOMS, MAX_STEPS, MAX_TEXT
from lspe.isomorphism import compare_encodings, random_walk_test, weisfeiler_lehman_test
from lspe.plots.drawable_graphs import sketch_smiles
from lspe.plots.examples import BICYCLOPENTYL, DECALIN

SIXTY_ATOMS = "CCC(C)C1NC(=O)C(Cc2ccc(O)cc2)NC(=O)C(N)CSSCC(C(=O)N2CCCC2C(=O)NC(CC(C)C)C(=O)NCC(=O)NCCO)NC(=O)CCNC1=O"
"""A cyclic peptide like oxytocin, with 60 heavy atoms."""


def returns(smiles: str, k: int) -> np.ndarray:
    """Return probabilities from dense powers of the walk matrix that networkx makes."""
    mol = Chem.MolFromSmiles(smiles)
    graph = nx.Graph()
    graph.add_nodes_from(range(mol.GetNumAtoms()))
    graph.add_edges_from((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds())
    adjacency = nx.to_numpy_array(graph)
    degree = adjacency.sum(1, keepdims=True)
    walk = np.divide(adjacency, degree, out=np.zeros_like(adjacency), where=degree > 0)
    return np.stack([np.linalg.matrix_power(walk, step).diagonal() for step in range(1, k + 1)], axis=1)


@pytest.mark.parametrize("smiles", ["C", "[Na+].[Cl-]", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", SIXTY_ATOMS])
def test_encode_gives_the_molecule_its_walks_and_its_kinds(client: httpx.Client, smiles: str) -> None:
    mol = Chem.MolFromSmiles(smiles)
    answer = client.post("/api/encode", json={"graph": smiles, "k": 12}).raise_for_status().json()
    assert answer["title"] == smiles
    assert [node["label"].rstrip("+−") for node in answer["nodes"]] == [atom.GetSymbol() for atom in mol.GetAtoms()]
    assert sorted((edge["first"], edge["second"]) for edge in answer["edges"]) == sorted(
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()
    )
    expected = returns(smiles, 12)
    np.testing.assert_allclose(answer["encoding"], expected, atol=1e-6)
    for step in range(12):
        assert max(answer["kinds"][step]) + 1 == int(uniqueness(torch.from_numpy(expected[:, : step + 1])))


def test_molecules_come_with_the_lines_of_rdkit_and_other_graphs_without(client: httpx.Client) -> None:
    flat, wedged, graph = (
        client.post("/api/encode", json={"graph": text}).raise_for_status().json()["picture"]
        for text in ("CC(N)C(=O)O", "C[C@H](N)C(=O)O", "csl-11-2")
    )
    assert graph is None
    assert len(wedged["strokes"]) != len(flat["strokes"])
    assert all(set(stroke) == {"path", "filled", "width"} for stroke in wedged["strokes"])


def test_the_sixty_atom_molecule_has_sixty_atoms() -> None:
    assert Chem.MolFromSmiles(SIXTY_ATOMS).GetNumAtoms() == 60


def test_laplacian_columns_are_eigenvectors(client: httpx.Client) -> None:
    answer = client.post("/api/encode", json={"graph": DECALIN, "encoding": "lappe", "k": 9}).raise_for_status().json()
    graph = nx.Graph([(edge["first"], edge["second"]) for edge in answer["edges"]])
    laplacian = nx.normalized_laplacian_matrix(graph, nodelist=range(10)).toarray()
    vectors = np.array(answer["encoding"])
    values = np.linalg.eigvalsh(laplacian)[1:]
    np.testing.assert_allclose(laplacian @ vectors, vectors * values, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_answered_as_it_is_computed(client: httpx.Client, kind: str) -> None:
    question = {"graph": DECALIN, "encoding": kind, "k": 6, "origin": 3}
    answer = client.post("/api/encode", json=question).raise_for_status().json()
    sketch, k = sketch_smiles(DECALIN), find_kind(kind).width or 6
    if find_kind(kind).level == "node":
        expected = encode(kind, sketch.edge_index, 10, k, dtype=torch.float64)
    else:
        pairs = torch.stack([torch.full((10,), 3), torch.arange(10)])
        expected = encode_pairs(kind, sketch.edge_index, 10, k, pairs=pairs, dtype=torch.float64)
    np.testing.assert_allclose(answer["encoding"], expected.numpy(), atol=1e-6)
    assert len(answer["kinds"]) == k


def test_the_kinds_are_listed(client: httpx.Client) -> None:
    kinds = client.get("/api/kinds").raise_for_status().json()
    assert [kind["name"] for kind in kinds] == [*KINDS]
    assert {kind["level"] for kind in kinds} == {"node", "pair"}
    assert not next(kind for kind in kinds if kind["name"] == "lappe")["comparable"]


def test_compare_says_which_encodings_tell_apart(client: httpx.Client) -> None:
    question = {"first": DECALIN, "second": BICYCLOPENTYL, "encoding": "heat"}
    answer = client.post("/api/compare", json=question).raise_for_status().json()
    assert answer["encodings"] == compare_encodings(DECALIN, BICYCLOPENTYL, k=24)
    assert sorted(answer["first"]["kinds"][0]) != sorted(answer["second"]["kinds"][0])


@pytest.mark.parametrize(
    "first, second", [(DECALIN, BICYCLOPENTYL), ("CCCC", "CC(C)C"), ("CCO", "OCC"), ("CCO", "CCCO")]
)
def test_compare_says_what_the_tests_say(client: httpx.Client, first: str, second: str) -> None:
    answer = client.post("/api/compare", json={"first": first, "second": second}).raise_for_status().json()
    assert answer["random_walk"] == vars(random_walk_test(first, second))
    assert answer["weisfeiler_lehman"] == vars(weisfeiler_lehman_test(first, second))
    step = answer["random_walk"]["step"]
    if step:
        for k, same in ((step - 1, True), (step, False)):
            kinds = [sorted(answer[which]["kinds"][k - 1]) for which in ("first", "second")] if k else [[], []]
            assert (kinds[0] == kinds[1]) is same


def test_elements_count_only_when_asked_for(client: httpx.Client) -> None:
    question = {"first": "CCO", "second": "CCN"}
    assert client.post("/api/compare", json=question).json()["random_walk"]["step"] is None
    assert client.post("/api/compare", json={**question, "elements": True}).json()["random_walk"]["step"] == 0
    graphs = {"first": "csl-11-2", "second": "csl-11-3", "elements": True}
    assert "only molecules have elements" in client.post("/api/compare", json=graphs).json()["error"]


def test_every_example_is_answered(client: httpx.Client) -> None:
    examples = client.get("/api/examples").raise_for_status().json()
    for example in examples:
        if example["second"]:
            client.post(
                "/api/compare", json={"first": example["first"], "second": example["second"]}
            ).raise_for_status()
        else:
            client.post("/api/encode", json={"graph": example["first"]}).raise_for_status()
    verdicts = {
        example["title"]: client.post("/api/compare", json={k: example[k] for k in ("first", "second")}).json()
        for example in examples
        if example["second"]
    }
    assert verdicts["Rook · Shrikhande"]["random_walk"]["step"] is None
    assert verdicts["CSL(11, 2) · CSL(11, 3)"]["random_walk"]["step"] == 3


def malformed(count: int) -> Iterator[tuple[str, bytes]]:
    """Paths and bodies that hold no proper question, in many ways."""
    rng = random.Random(0)
    bad_values: list[Any] = [None, True, 1.5, -1, 10**30, [], {}, "", " ", "\n", "\x00", "é", "𝔘", "C\x7f", "C" * 1001]
    paths = ("/api/encode", "/api/compare", "/api/predict", "/api/explain", "/api/positions")
    alphabet = string.printable
    for number in range(count):
        path = rng.choice(paths)
        match number % 8:
            case 0:
                body = rng.randbytes(rng.randrange(200))
            case 1:
                body = json.dumps({"graph": rng.choice(bad_values)}).encode()
            case 2:
                text = "".join(rng.choice("CNOcn1234()[]=#+-@/\\%.*") for _ in range(rng.randrange(1, 40)))
                body = json.dumps(
                    {"graph": f"{text}(", "first": f"{text}(", "second": "C", "smiles": f"{text}["}
                ).encode()
            case 3:
                body = json.dumps({"graph": "CC", "k": rng.choice([*bad_values, 0, 41, "many"])}).encode()
            case 4:
                body = b"[" * rng.randrange(1, 8000)
            case 5:
                body = ('{"graph": "' + rng.choice(["\\ud800", "\\u0000C", "C\\u2028", "\\uffff"]) + '"}').encode()
            case 6:
                body = json.dumps({rng.choice(alphabet) * 3: "C", "graph": "C", "first": "C", "smiles": "C"}).encode()
            case _:
                junk = "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 300)))
                body = json.dumps(
                    {"first": junk + "(", "second": junk, "graph": junk + "(", "smiles": junk + "("}
                ).encode()
        yield path, body


def test_500_malformed_questions_are_refused_in_words(client: httpx.Client) -> None:
    for path, body in malformed(500):
        answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert 400 <= answer.status_code < 500, (path, body, answer.text)
        assert set(answer.json()) == {"error"}, answer.text
        assert len(answer.json()["error"]) > 5
    client.post("/api/encode", json={"graph": "CCO"}).raise_for_status()


def test_50_questions_at_once_get_the_answers_they_get_alone(client: httpx.Client) -> None:
    questions = [{"graph": "C" * (2 + i % 10) + "c1ccccc1" * (i % 3), "k": 1 + i % 20} for i in range(50)]
    alone = [client.post("/api/encode", json=question).json() for question in questions]
    with ThreadPoolExecutor(50) as pool:
        together = list(pool.map(lambda question: client.post("/api/encode", json=question).json(), questions))
    assert together == alone


@pytest.mark.parametrize(
    "path, question, words",
    [
        ("encode", {"graph": "C1CC"}, "'C1CC'"),
        ("encode", {"graph": "C" * (MAX_ATOMS + 1)}, f"at most {MAX_ATOMS}"),
        ("encode", {"graph": "C" * (MAX_TEXT + 1)}, "at most 1,000 characters"),
        ("encode", {"graph": "C", "k": MAX_STEPS + 1}, "less than or equal to 40"),
        ("encode", {"graph": ""}, "type a SMILES first"),
        ("encode", {"graph": "Ü"}, "only letters, digits"),
        ("encode", {}, "graph: is missing"),
        ("encode", {"graph": "C", "kk": 3}, "kk: there is no such key"),
        ("encode", {"graph": "C", "encoding": "rw"}, "there is no encoding 'rw'; there are rwpe"),
        ("encode", {"graph": "C", "encoding": "os:getcwd"}, "there is no encoding 'os:getcwd'"),
        ("encode", {"graph": "CC", "encoding": "rrwp", "origin": 2}, "origin: the graph has no node 2"),
        ("compare", {"first": "CC", "second": "CO", "encoding": "rrwp"}, "side by side by 'rrwp'"),
        ("compare", {"first": "CC", "second": "C("}, "'C('"),
        ("predict", {"smiles": "CC"}, "started without a run: lspe explore RUN"),
        ("explain", {"smiles": "CC"}, "started without a run"),
        ("positions", {"smiles": "CC"}, "started without a run"),
    ],
)
def test_problems_are_named(client: httpx.Client, path: str, question: dict[str, Any], words: str) -> None:
    answer = client.post(f"/api/{path}", json=question)
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_long_bodies_are_cut_off(client: httpx.Client) -> None:
    answer = client.post("/api/encode", content=b" " * (MAX_BODY + 1))
    assert answer.status_code == 413
    chunks = (b" " * 1000 for _ in range(100))  # without a length in the header
    assert client.post("/api/encode", content=chunks).status_code == 413


def test_text_of_users_comes_back_as_data_only(client: httpx.Client) -> None:
    text = "<img src=x onerror=alert(1)>"
    answer = client.post("/api/encode", json={"graph": text})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert text in answer.json()["error"]


def test_other_hosts_are_refused(client: httpx.Client) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
        assert client.get("/", headers={"Host": host}).status_code == 400
    assert client.get("/", headers={"Host": "localhost:1234"}).status_code == 200


def test_the_browser_is_told_to_load_nothing_from_elsewhere(client: httpx.Client) -> None:
    for path in ("/", "/docs", "/static/app.js", "/api/examples", "/missing"):
        policy = client.get(path).headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in client.get(path).headers


def test_files_name_no_other_place() -> None:
    folder = Path(lspe.explore.__file__).parent / "static"
    files = sorted(folder.iterdir())
    assert {path.suffix for path in files} == {".html", ".css", ".js", ".svg"}
    for path in files:
        addresses = set(re.findall(r"(?:https?:)?//[\w.]+\.\w+[\w./]*", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
        assert "innerHTML" not in path.read_text()


def test_files_outside_the_page_are_not_served(client: httpx.Client) -> None:
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/"):
        assert client.get(path).status_code == 404


def test_the_description_covers_every_operation(client: httpx.Client) -> None:
    description = client.get("/openapi.json").raise_for_status().json()
    assert set(description["paths"]) == {
        f"/api/{name}"
        for name in ("examples", "kinds", "encode", "compare", "about", "predict", "explain", "positions")
    }
    for methods in description["paths"].values():
        for operation in methods.values():
            assert operation["description"]
            assert operation["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")


def test_without_a_run_the_page_says_so(client: httpx.Client) -> None:
    assert client.get("/api/about").json() == {"version": lspe.__version__, "run": None}
