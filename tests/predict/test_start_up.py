"""Predicting one molecule loads PyTorch and little else: nobody waits for what trains, draws or reads graphs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import lspe
from tests.members import save

SLOW_TO_LOAD = ("torch_geometric", "lightning", "matplotlib", "sklearn", "pandas", "scipy", "networkx", "torch._dynamo")

PREDICT = """
import json, sys
from lspe.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print(json.dumps([name for name in {slow!r} if name in sys.modules]))
"""


def test_one_molecule_is_predicted_without_what_is_slow_to_load(tmp_path: Path) -> None:
    run = save(tmp_path / "run", preset="own/molecules")
    words = [sys.executable, "-c", PREDICT.format(slow=SLOW_TO_LOAD), "predict", str(run), "--smiles", "CCO"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    *_, predicted, loaded = done.stdout.splitlines()
    assert json.loads(loaded) == []
    np.testing.assert_allclose(float(predicted.split(",")[1]), lspe.load(run).predict("CCO")[0], rtol=1e-5)
