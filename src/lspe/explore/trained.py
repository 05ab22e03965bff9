"""A trained network behind the explorer: what it predicts, and how its positions change from layer to layer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lspe.errors import UserError
from lspe.explore.drawing import drawn_smiles, read_molecule
from lspe.explore.schema import (
    Explained,
    ExplainedValue,
    Label,
    NearMolecule,
    Part,
    Positions,
    Prediction,
    RunAbout,
    Value,
)
from lspe.nn import Network
from lspe.predict import load
from lspe.predict.predictions import Predictions

_COMPONENTS = 12


class Trained:
    """One run, or several as an ensemble; positions are those of the first network."""

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self.name = Path(run).name
        self.predictor = load(run, device="cpu")
        self.predictor.check_level("graph", "the explorer shows")
        self.network = self.predictor.members[0].network
        self._one_at_a_time = Lock()  # whoever watches the layers must see only their own molecule

    def about(self) -> RunAbout:
        """What the run predicts."""
        return RunAbout(
            name=self.name,
            networks=len(self.predictor.members),
            task=self.predictor.task,
            targets=list(self.predictor.task_names),
            layers=len(self.network.layers),
            learns_positions=self.network.lspe,
        )

    def predict(self, smiles: str) -> Prediction:
        """Values in original units, or probabilities."""
        with self._one_at_a_time:
            found = self._apply(smiles)
        unknown = [None] * len(self._names)
        spread = unknown if found.sd is None else found.sd[0].tolist()
        half = found.half_widths
        low, high = (unknown if half is None else (found.mean + sign * half)[0].tolist() for sign in (-1, 1))
        columns = zip(self._names, found.mean[0].tolist(), spread, low, high, strict=True)
        return Prediction(
            values=[
                Value(name=name, value=value, sd=sd, low=least, high=most) for name, value, sd, least, most in columns
            ]
        )

    def explain(self, smiles: str) -> Explained:
        """What atoms and bonds add to the prediction, and the nearest training molecules."""
        read_molecule(smiles)
        with self._one_at_a_time:
            found = self.predictor.explain(smiles)
        values = [
            ExplainedValue(
                name=name,
                value=found.value[number],
                parts=[Part(name=part, value=value[number]) for part, value in found.parts().items() if value.any()],
                atoms=found.atoms[:, number].tolist(),
                positions=found.positions[:, number].tolist(),
                bonds=found.bonds[:, number].tolist(),
            )
            for number, name in enumerate(self._names)
        ]
        near = [
            NearMolecule(
                smiles=one.smiles,
                name=one.name,
                labels=[
                    Label(name=name, value=value)
                    for name, value in zip(self.predictor.task_names, one.labels, strict=True)
                ],
                tanimoto=one.tanimoto,
                learned=one.learned,
                **drawn_smiles(one.smiles, self.predictor.fragments).parts(),
            )
            for one in found.neighbours
        ]
        share = float(self.predictor.weights[: len(self.predictor.members)].sum())
        drawn = drawn_smiles(smiles, self.predictor.fragments)
        return Explained(title=smiles, values=values, networks=share, near=near, **drawn.parts())

    def positions(self, smiles: str) -> Positions:
        """The positions after each layer, in their principal components over all layers."""
        if not self.network.lspe:
            raise UserError(f"the network of {self.name} learns no positions")
        with self._one_at_a_time, watched_positions(self.network) as seen:
            self._apply(smiles)
        p = torch.stack(seen).double().numpy()
        components, explained = principal_components(p)
        return Positions(
            title=smiles,
            **drawn_smiles(smiles, self.predictor.fragments).parts(),
            layers=[[[round(value, 4) for value in atom] for atom in layer] for layer in components.tolist()],
            explained=explained,
            change=relative_change(p),
        )

    @property
    def _names(self) -> list[str]:
        """Of the outputs."""
        return [str(name) for name in self.predictor.class_names or self.predictor.task_names]

    def _apply(self, smiles: str) -> Predictions:
        read_molecule(smiles)
        (_, found), *_ = self.predictor.predict_pieces([[smiles]], lambda piece: piece, processes=1)
        if found.reasons:
            raise UserError(f"{smiles!r} {found.reasons[0]}")
        return found


@contextmanager
def watched_positions(network: Network) -> Iterator[list[Tensor]]:
    r"""A list that fills with :math:`p^0, p^1, \dots p^L`, each :math:`[N, d]`, while the network is applied."""
    seen: list[Tensor] = []
    handles = [network.embed_p.register_forward_hook(lambda _, __, p: seen.append(p))]
    handles += [layer.register_forward_hook(lambda _, __, out: seen.append(out[1])) for layer in network.layers]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def principal_components(p: NDArray[np.float64], count: int = _COMPONENTS) -> tuple[NDArray[np.float64], float]:
    r"""What tells the atoms apart: positions relative to their layer's mean, in the axes along which those of all
    layers together vary most, and the part of the variance that these axes keep.

    Shapes:
        - **p:** :math:`[L + 1, N, d]`
        - **output:** :math:`[L + 1, N, \min(count, d)]`
    """
    rows = (p - p.mean(1, keepdims=True)).reshape(-1, p.shape[-1])
    _, size, axes = np.linalg.svd(rows, full_matrices=False)
    axes = axes[:count] * np.sign(axes[:count].sum(1, keepdims=True) + 1e-12)
    total = float((size**2).sum())
    explained = float((size[:count] ** 2).sum()) / total if total > 0 else 1.0
    return (rows @ axes.T).reshape(*p.shape[:-1], -1), explained


def relative_change(p: NDArray[np.float64]) -> list[float]:
    r"""For each layer the mean length of :math:`p^\ell - p^{\ell-1}`, divided by the mean length of :math:`p^\ell`."""
    moved = np.linalg.norm(np.diff(p, axis=0), axis=2).mean(1)
    size = np.linalg.norm(p[1:], axis=2).mean(1)
    return np.divide(moved, size, out=np.zeros_like(moved), where=size > 0).tolist()
