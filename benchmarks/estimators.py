"""``LSPERegressor`` beside random forests, on ESOL and FreeSolv, the same five random splits for all.

``python -m benchmarks.estimators [--json] [--splits 5] [--networks 1] [--epochs N] [--data esol freesolv]``. Needs
``molnet/esol.csv.gz`` and ``molnet/freesolv.csv.gz`` in the data root ($LSPE_DATA). Nine tenths of the molecules are
learned from and one tenth is predicted. The forests are as they come; the defaults of the estimator were chosen on the
validation tenth of the first three splits, with eight tenths to learn from, never on a test part (though a molecule
validated on in one split may be tested on in another).

- LSPE: the estimator as it comes.
- RF Morgan: 500 trees on Morgan fingerprints of radius 2, 2048 bits.
- RF descriptors: 500 trees on all descriptors RDKit knows, missing ones set to their median.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors, rdFingerprintGenerator
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from lspe import LSPERegressor
from lspe.data.splits import random_split
from lspe.locations import data_root

TREES = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--networks", type=int, default=1, help="of the estimator's ensemble")
    parser.add_argument("--epochs", type=int, help="other than the default")
    parser.add_argument("--data", nargs="+", default=["esol", "freesolv"])
    arguments = parser.parse_args()
    ours = LSPERegressor(networks=arguments.networks, epochs=arguments.epochs)
    models = {"LSPE": ours, "RF Morgan": forest_on(morgan), "RF descriptors": forest_on(descriptors)}
    results = []
    for name in arguments.data:
        for result in compare(name, models, arguments.splits):
            results.append(result)
            if not arguments.json:
                print(f"{name}, {result['model']}: RMSE {result['rmse']}", flush=True)
    if arguments.json:
        by_data = {name: {one["model"]: one for one in results if one["data"] == name} for name in arguments.data}
        print(json.dumps(by_data, indent=2))
        return
    table = Table("data", "model", "RMSE", "MAE", "seconds a fit", "won against")
    for result in results:
        rmse, mae = (f"{np.mean(result[key]):.3f} ± {np.std(result[key]):.3f}" for key in ("rmse", "mae"))
        table.add_row(
            result["data"], result["model"], rmse, mae, f"{np.mean(result['seconds']):.1f}", wins(result, results)
        )
    Console().print(table)


def compare(name: str, models: dict[str, Any], splits: int) -> Iterator[dict[str, Any]]:
    """RMSE, MAE and seconds of each model on each split."""
    frame = pd.read_csv(data_root() / "molnet" / f"{name}.csv.gz")
    smiles, y = frame["smiles"].to_numpy(), frame["y"].to_numpy()
    for label, model in models.items():
        result: dict[str, Any] = {"data": name, "model": label, "rmse": [], "mae": [], "seconds": []}
        for seed in range(splits):
            parts = random_split(len(y), seed=seed)
            learn, test = np.concatenate([parts["train"], parts["val"]]), parts["test"]
            started = time.perf_counter()
            fitted = clone(model).fit(smiles[learn], y[learn])
            result["seconds"].append(round(time.perf_counter() - started, 2))
            predicted = fitted.predict(smiles[test])
            result["rmse"].append(round(root_mean_squared_error(y[test], predicted), 4))
            result["mae"].append(round(mean_absolute_error(y[test], predicted), 4))
        yield result


def wins(one: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """On how many splits the RMSE was smaller than that of each other model."""
    others = [other for other in results if other["data"] == one["data"] and other is not one]
    counts = {other["model"]: sum(a < b for a, b in zip(one["rmse"], other["rmse"], strict=True)) for other in others}
    return ", ".join(f"{name} {count}/{len(one['rmse'])}" for name, count in counts.items())


def forest_on(features: Callable[[Any], np.ndarray]) -> Any:
    forest = RandomForestRegressor(TREES, random_state=0, n_jobs=-1)
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    return make_pipeline(FunctionTransformer(features), imputer, forest)


def morgan(smiles: Any) -> np.ndarray:
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    return np.stack([generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles])


def descriptors(smiles: Any) -> np.ndarray:
    with rdBase.BlockLogs():
        rows = [list(Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(text)).values()) for text in smiles]
    values = np.array(rows, dtype=np.float64)
    return np.where(np.abs(values) < 1e6, values, np.nan)


if __name__ == "__main__":
    main()
