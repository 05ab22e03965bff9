"""Every encoding as the start of the positions p: one network, one protocol, ZINC.

``python -m benchmarks.ablation [--json] [--out runs/ablation] [--epochs 20] [--seeds 41] [--only rwpe heat]``. Needs
ZINC in the data root ($LSPE_DATA) or the network. A row takes as long as 20 epochs of ``zinc/gatedgcn-lspe``; called
again it goes on where it was stopped, and what is finished is only read.

The network is that of ``zinc/gatedgcn-lspe`` with k = 20 columns of whatever encoding, trained by the fast protocol.
The first row has no encoding and no positions; the last ones put an encoding of pairs on the edges too.
"""

import argparse
import json
from pathlib import Path
from statistics import mean, stdev

import lspe
from lspe.training import Run

PRESET = "zinc/gatedgcn-lspe"
ROWS: dict[str, list[str]] = {
    "none": ["model.encoding=none", "model.k=0", "model.lspe=false", "model.final=structure"],
    "degree": ["model.encoding=degree"],
    "rwpe": ["model.encoding=rwpe"],
    "rwpe, normalised": ["model.encoding=rwpe", "model.normalize_encoding=true"],
    "heat": ["model.encoding=heat"],
    "ppr": ["model.encoding=ppr"],
    "resistance": ["model.encoding=resistance"],
    "lappe": ["model.encoding=lappe"],
    "lappe, sign-invariant": ["model.encoding=lappe", "model.signs=invariant"],
    "rwpe, rrwp on edges": ["model.pair_encoding=rrwp", "model.pair_k=20"],
    "rwpe, rrwp on edges, normalised": [
        "model.pair_encoding=rrwp",
        "model.pair_k=20",
        "model.normalize_encoding=true",
    ],
    "rwpe, resistance on edges": ["model.pair_encoding=resistance-pairs", "model.pair_k=1"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"), help="a folder for the runs")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[41])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=[*ROWS], help="some of the rows")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="KEY=VALUE, for all rows")
    arguments = parser.parse_args()
    rows = {}
    for name in arguments.only:
        folder = arguments.out / name.replace(", ", "-").replace(" ", "-")
        settings = [*ROWS[name], *arguments.settings]
        runs = [train(folder / f"seed{seed}", settings, arguments.epochs, seed) for seed in arguments.seeds]
        rows[name] = scores(runs)
    print(json.dumps(rows, indent=2) if arguments.json else table(rows))


def train(folder: Path, settings: list[str], epochs: int, seed: int) -> Run:
    """The run in ``folder``, finished."""
    if (folder / "summary.json").exists():
        return Run.open(folder)
    if any(folder.glob("*.ckpt")):
        return lspe.train(folder, resume=True)
    return lspe.train(PRESET, protocol="fast", epochs=epochs, seeds=seed, settings=settings, out=folder)


def scores(runs: list[Run]) -> dict[str, float | None]:
    reported = [run.summary["reported"] for run in runs]
    test = [one["test"]["mae"] for one in reported]
    return {
        "parameters": sum(weight.numel() for weight in runs[0].network().parameters()),
        "validation": mean(one["val"]["mae"] for one in reported),
        "test": mean(test),
        "spread": stdev(test) if len(test) > 1 else None,
    }


def table(rows: dict[str, dict[str, float | None]]) -> str:
    lines = ["| start of p | parameters | validation MAE | test MAE |", "| --- | --- | --- | --- |"]
    for name, row in rows.items():
        spread = "" if row["spread"] is None else f" ± {row['spread']:.3f}"
        lines.append(f"| {name} | {row['parameters']:,} | {row['validation']:.3f} | {row['test']:.3f}{spread} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
