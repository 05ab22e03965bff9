"""What is attacked. Each target makes a case of a random generator and uses it as the package would.

An error that says what the user can put right is as good as a result. Everything else is a finding.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import shutil
import tempfile
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pandas as pd
import torch
import yaml
from torch_geometric.data import Data

from lspe.data import GraphData, iter_table_chunks, read_table, smiles_to_graphs
from lspe.data.graphs.files import read_graph_file
from lspe.data.graphs.storage import read_graphs, save_graphs
from lspe.data.molecules.descriptors import describe
from lspe.errors import UserError
from lspe.experiment import list_presets, load_preset, read_experiment
from lspe.experiment.overriding import override
from lspe.files.tables import open_table
from lspe.predict import load
from lspe.training import checkpoint
from tests.fuzz.damage import HOSTILE, damaged
from tests.members import SMILES, save


@dataclass(frozen=True)
class Target:
    """`attack` gets a generator and an empty folder; of 10,000 cases it has its `share`."""

    attack: Callable[[Random, Path], None]
    share: int


def tables(random: Random, folder: Path) -> None:
    """Read a damaged table, write its rows, read them again; make graphs of it."""
    suffix = random.choice([".csv", ".tsv", ".csv.gz", ".parquet", ".sdf"])
    path = folder / f"table{suffix}"
    path.write_bytes(damaged(random, _sound_table(suffix)))
    rows = [list(row) for chunk in iter_table_chunks(path, rows=7, keep_empty=True) for row in chunk.rows]
    columns = next(iter(iter_table_chunks(path))).columns
    copy = folder / "copy.csv"
    with open_table(copy, dict.fromkeys(columns, False)) as table:
        table.write(rows)
    again = [list(row) for chunk in iter_table_chunks(copy, keep_empty=True) for row in chunk.rows]
    if len(columns) > 1:  # of one column, a value of blanks is no row
        assert again == rows, "rows were lost or moved"
    data = read_table(path, on_invalid=random.choice(["skip", "nan"])).to_graphs(processes=1)
    assert data.report is not None
    assert data.report.used == len(data.graphs)


@cache
def _sound_table(suffix: str) -> bytes:
    count = 2 * len(SMILES)
    frame = pd.DataFrame({"smiles": SMILES * 2, "y": np.arange(count) / 4, "note": ['a "b", c'] * count})
    buffer = io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(buffer)
        return buffer.getvalue()
    if suffix == ".sdf":
        from rdkit import Chem

        blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(one)) for one in SMILES]
        return "".join(f"{one}> <y>\n{n}\n\n$$$$\n" for n, one in enumerate(blocks)).encode()
    text = frame.to_csv(index=False, sep="\t" if suffix == ".tsv" else ",").encode()
    return gzip.compress(text, mtime=0) if suffix.endswith(".gz") else text


TOKENS = [
    *("C", "c", "N", "n", "O", "S", "[nH]", "[C@@H]", "[Fe+2]", "[13CH3]", "*", "[*:1]", "[U]", "B", "P", "Cl", "[H]"),
    *("=", "#", "$", "/", "\\", ":", "~", "->", "-", ".", "(", ")", "1", "2", "%10", "%(123)", "0", "[", "]", "@", "+"),
    *(" |$;;$|", " |c:0,1|", " |^1:0|", " |(0,0,;1,1,)|", " |SgD:0:a:b::|", "[999C]", "[C+99]", "[CH99]", "[#300]"),
]


def smiles(random: Random, folder: Path) -> None:
    """Molecules of tokens, and damaged ones; what can be read has descriptors."""
    texts = []
    for _ in range(random.randint(1, 8)):
        if random.random() < 0.5:
            texts.append("".join(random.choices(TOKENS, k=random.randint(1, 60))))
        else:
            texts.append(damaged(random, random.choice(SMILES).encode()).decode("utf-8", "replace"))
    found = smiles_to_graphs(texts, fragments=random.choice(["keep", "largest", "error"]), processes=1)
    assert sorted([*found.rows.tolist(), *found.reasons]) == list(range(len(texts))), "rows were lost"
    if random.random() < 0.1:
        describe([texts[row] for row in found.rows], "rdkit", processes=1)


def graph_files(random: Random, folder: Path) -> None:
    """One graph as text, or several in a file of ours."""
    suffix = random.choice([".json", ".gml", ".graphml", ".edgelist", ".npz", ".parquet"])
    path = folder / f"graph{suffix}"
    content = _sound_graphs(suffix, folder)
    path.write_bytes(damaged(random, content))
    if suffix in (".npz", ".parquet") or b'"graphs"' in content:
        read_graphs(path)
    else:
        read_graph_file(path)


def _sound_graphs(suffix: str, folder: Path) -> bytes:
    import networkx as nx

    if suffix in (".npz", ".parquet", ".json"):
        edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
        graphs = [Data(x=torch.full((4, 2), 0.5), edge_index=edges, y=torch.tensor([float(n)])) for n in range(3)]
        save_graphs(folder / f"sound{suffix}", graphs)
    elif suffix == ".gml":
        nx.write_gml(nx.petersen_graph(), folder / "sound.gml")
    elif suffix == ".graphml":
        nx.write_graphml(nx.petersen_graph(), folder / "sound.graphml")
    else:
        (folder / "sound.edgelist").write_text("a b 1.5\nb c\nc a 2 # comment\n")
    return (folder / f"sound{suffix}").read_bytes()


def packed_sets(random: Random, folder: Path) -> None:
    """A packed set is whole or refused; the encodings kept beside it are computed again where they are damaged."""
    path = folder / "set.lspe"
    table = folder / "table.csv"
    table.write_bytes(_sound_table(".csv"))
    data = read_table(table).to_graphs(processes=1)
    assert data.graphs.path is not None
    expected = data.graphs.with_encoding("rwpe", 4)[3].rwpe if random.random() < 0.5 else None
    path.write_bytes(data.graphs.path.read_bytes())
    if expected is not None:
        GraphData.open(path).graphs.with_encoding("rwpe", 4)
        [cached] = folder.glob("set.rwpe*.lspe")
        cached.write_bytes(damaged(random, cached.read_bytes()))
        again = GraphData.open(path).graphs.with_encoding("rwpe", 4)[3].rwpe
        assert torch.equal(again, expected), "a damaged cache was believed"
        return
    path.write_bytes(damaged(random, path.read_bytes()))
    opened = GraphData.open(path)
    assert len(opened.graphs) == len(data.graphs)
    opened.graphs.batch()


def checkpoints(random: Random, folder: Path) -> None:
    """The state of a training: whole, or refused; it never runs code."""
    path = folder / "last.ckpt"
    checkpoint.save(path, {"epoch": 3, "network": {"a": torch.rand(5, 5)}, "notes": ["x", 1.5, None]})
    path.write_bytes(damaged(random, path.read_bytes()))
    checkpoint.load(path)


def yaml_files(random: Random, folder: Path) -> None:
    """Configurations, and settings as the command line takes them."""
    preset = random.choice(list_presets())
    if random.random() < 0.3:
        place = random.choice(["model.layers", "model.encoding", "seed", "task", "features.kind", "training", "a.b"])
        override(load_preset(preset), [f"{place}={random.choice(HOSTILE)[:50].decode('latin-1')}"])
        return
    path = folder / "config.yaml"
    path.write_bytes(damaged(random, yaml.safe_dump(load_preset(preset).model_dump(mode="json")).encode()))
    read_experiment(str(path))


def run_folders(random: Random, folder: Path) -> None:
    """A run of which one file is damaged."""
    run = folder / "run"
    save(run, seed=0)
    victim = random.choice(sorted(one for one in run.iterdir() if one.is_file()))
    if random.random() < 0.1:
        victim.unlink()
    else:
        victim.write_bytes(damaged(random, victim.read_bytes()))
    load(run, device="cpu").predict(["CCO", "C(C"])


def http_bodies(random: Random, folder: Path) -> None:
    """What the explorer is sent is answered, or refused with a code that blames the sender."""
    graph, other = random.choice(SMILES), random.choice(["C1CC1", "rook", "csl-11-2", "c1ccccc1", "x"])
    if random.random() < 0.3:
        graph = damaged(random, graph.encode()).decode("latin-1")
    encoding = {"encoding": random.choice(["rwpe", "lappe", "rrwp", "heat", "x"]), "k": random.choice([4, 4, 0, 10**9])}
    path, query = random.choice(
        [
            ("/api/encode", {"graph": graph, **encoding, "origin": random.choice([0, 0, 1, -1, 10**30])}),
            ("/api/compare", {"first": graph, "second": other, **encoding, "elements": random.choice([False, True])}),
            ("/api/predict", {"smiles": graph}),
            ("/api/positions", {"smiles": graph}),
        ]
    )
    body = json.dumps(query).encode()
    if random.random() < 0.5:
        body = damaged(random, body)
    method = random.choice(["POST"] * 8 + ["GET", "PUT"])
    kind = random.choice(["application/json"] * 8 + ["text/plain", "x"])
    with ThreadPoolExecutor(1) as thread:  # this one may have a loop of its own
        answer = thread.submit(asyncio.run, _sent(method, path, body, kind)).result()
    assert answer.status_code < 500, f"{path} answered {answer.status_code}: {answer.text[:200]}"


async def _sent(method: str, path: str, body: bytes, kind: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=_explorer())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path, content=body, headers={"content-type": kind})


@cache
def _explorer() -> Any:
    from lspe.explore import create_app

    with tempfile.TemporaryDirectory() as folder:
        return create_app(save(Path(folder) / "run"))


TARGETS = {
    "smiles": Target(smiles, 3_300),
    "tables": Target(tables, 2_000),
    "graph_files": Target(graph_files, 1_500),
    "yaml_files": Target(yaml_files, 1_200),
    "http_bodies": Target(http_bodies, 800),
    "packed_sets": Target(packed_sets, 500),
    "checkpoints": Target(checkpoints, 500),
    "run_folders": Target(run_folders, 200),
}


def attack(name: str, seed: int, number: int, folder: Path) -> str | None:
    """Case `number` of a target; what went wrong, if anything did."""
    folder.mkdir(parents=True)
    try:
        TARGETS[name].attack(Random(f"{name} {seed} {number}"), folder)
    except UserError as error:
        return None if str(error).strip() else f"an empty message of {type(error).__name__}"
    except Exception:
        return traceback.format_exc()
    finally:
        shutil.rmtree(folder)
    return None
