"""Training with fused operators is training with plain ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lspe import ops
from lspe.data import GraphData
from lspe.experiment import Experiment
from lspe.training import fit

NETWORKS = {
    "gatedgcn": (),
    "pna": ("model.name=pna", "model.edge_dim=8"),
    "san": ("model.name=san", "model.heads=2"),
    "graphit": ("model.name=graphit", "model.heads=2"),
    "lspe": ("model.name=lspe", "model.conv=GINEConv"),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_three_epochs(network: str, prepared: Callable[..., tuple[Experiment, GraphData]], tmp_path: Path) -> None:
    """As near as single precision lets them be; dropout, whose numbers are others, is left out."""
    settings = ["model.dropout=0", "training.protocol.max_epochs=3", *NETWORKS[network]]
    training, validation = [], []
    for choice in ("plain", "fused"):
        experiment, data = prepared("regression", *settings)
        with ops.use(choice):
            run = fit(experiment, data, tmp_path / choice, device="cpu", threads=1)
        training.append([row["train_loss"] for row in run.history])
        validation.append([row["val_loss"] for row in run.history])
    assert training[1] == pytest.approx(training[0], rel=2e-4)
    # a bias before BN has no gradient but rounding, of which Adam makes whole steps; running statistics lag behind them
    assert validation[1] == pytest.approx(validation[0], rel=5e-3)
    assert training[0][-1] < training[0][0]
