r"""nci: the molecules RDKit ships with itself, and ZINC's target computed by RDKit. Needs no download.

Of the first 5,000 molecules of the NCI's open database: those RDKit can read, of one fragment and 3 to 60
heavy atoms, the first of each canonical SMILES. The target is

.. math::
    y = \log P - \mathrm{SA} - \max(0, \text{largest ring} - 6)

with Crippen's logP and the synthetic accessibility score. Features are ZINC's, with the vocabulary of the
training part; the last atom type and the last bond type stand for whatever that part did not show.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lspe.data.errors import DataError, MoleculeError
from lspe.data.graphdata import Description, GraphData
from lspe.data.packed.cache import packed_path
from lspe.data.splits import random_split
from lspe.features import CategoricalFeatures
from lspe.locations import Root


def source_file() -> Path:
    """RDKit's own file of molecules."""
    from rdkit import RDConfig

    return Path(RDConfig.RDDataDir) / "NCI" / "first_5K.smi"


def build(path: Path) -> None:
    """Compute the set."""
    from rdkit import __version__

    from lspe.data.molecules.conversion import to_packed
    from lspe.data.molecules.smiles import atom_types, kekule_arrays, kekule_form

    mols = read_molecules(source_file())
    splits = random_split(len(mols), seed=0)
    kekule = [kekule_form(mol) for mol in mols]
    seen = Counter(name for number in splits["train"] for name in atom_types(kekule[number]))
    vocabulary = tuple(sorted(seen, key=lambda name: (-seen[name], name)))
    features = CategoricalFeatures(
        node_types=len(vocabulary) + 1,
        edge_types=5,
        vocabulary=vocabulary,
        unknown=True,
    )
    y = np.array([[penalised_log_p(mol)] for mol in mols], dtype=np.float32)
    about = Description(
        name="nci",
        task="regression",
        num_outputs=1,
        task_names=("penalised logP",),
        features=features,
        source=f"RDKit {__version__}, {source_file().name}",
    )
    GraphData.write(path, about, [to_packed(kekule_arrays(kekule, features), {"y": y})], splits=splits)


def read_molecules(path: Path) -> list[Any]:
    """The molecules of a SMILES file that are kept."""
    from rdkit import Chem

    from lspe.data.molecules.smiles import parse

    kept: dict[str, Any] = {}
    for line in path.read_text().splitlines():
        try:
            mol = parse(line.split("\t")[0], fragments="error")
        except MoleculeError:
            continue
        if 3 <= mol.GetNumHeavyAtoms() <= 60:
            kept.setdefault(Chem.MolToSmiles(mol), mol)
    return list(kept.values())


def penalised_log_p(mol: Any) -> float:
    """Give logP − SA − max(0, largest ring − 6)."""
    from rdkit.Chem.rdMolDescriptors import CalcCrippenDescriptors

    log_p, _ = CalcCrippenDescriptors(mol)
    largest_ring = max((len(ring) for ring in mol.GetRingInfo().AtomRings()), default=0)
    return float(log_p - _sa_score().calculateScore(mol) - max(0, largest_ring - 6))


@cache
def _sa_score() -> ModuleType:
    """RDKit's contributed module for the synthetic accessibility score, which is no package."""
    from rdkit import RDConfig

    file = Path(RDConfig.RDContribDir) / "SA_Score" / "sascorer.py"
    spec = importlib.util.spec_from_file_location("sascorer", file)
    if spec is None or spec.loader is None or not file.exists():
        raise DataError(f"RDKit's SA score is not where it should be ({file}); install RDKit with its Contrib folder")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(root: Root = None) -> GraphData:
    """The embedded set; `root` plays no part."""
    from rdkit import __version__

    return GraphData.open_or_build(packed_path("nci", source_file(), __version__), build)
