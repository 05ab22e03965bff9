"""What both estimators share: parameters, training without a folder, saving."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lspe.data.words import Fragments
from lspe.errors import UserError
from lspe.estimators.inputs import EstimatorTargets, column_of, refuse_unread, to_data
from lspe.experiment.overriding import override, with_own_data, with_protocol
from lspe.experiment.reading import read_experiment
from lspe.experiment.value import CONFIG, Experiment
from lspe.features import table_sizes
from lspe.files import write_json, write_text
from lspe.predict import Predictor, load
from lspe.predict.member import Member
from lspe.training.without_folder import fit_in_memory

FORMAT = 1
_FILE = "estimator.json"
_PLACES = {
    "epochs": "training.protocol.max_epochs",
    "lr": "training.protocol.lr",
    "weight_decay": "training.protocol.weight_decay",
    "batch_size": "training.batch_size",
    "layers": "model.layers",
    "hidden_dim": "model.hidden_dim",
    "dropout": "model.dropout",
    "k": "model.k",
}


class Estimator(BaseEstimator):
    """Learns from SMILES, or from PyG graphs, all that are given, for a fixed number of epochs.

    Nothing is held out for validation; use scikit-learn's own tools to choose parameters.

    Attributes:
        predictor_: what :func:`lspe.load` gives: NaN for what cannot be read, vectors, tables.

    """

    predictor_: Predictor

    def __init__(
        self,
        preset: str = "own/gatedgcn-lspe",
        *,
        epochs: int | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        batch_size: int | None = None,
        layers: int | None = None,
        hidden_dim: int | None = None,
        dropout: float | None = None,
        k: int | None = None,
        settings: Sequence[str] | None = None,
        networks: int = 1,
        fragments: Fragments = "keep",
        random_state: Any = 0,
        device: str = "auto",
        processes: int | None = None,
    ) -> None:
        """What is ``None`` is as in the preset.

        Args:
            preset: network and training to begin with (``lspe presets``), or a YAML file.
            epochs: passes over the data.
            lr: highest learning rate.
            weight_decay: of AdamW.
            batch_size: molecules in a step.
            layers: of the network.
            hidden_dim: width of its streams.
            dropout: in its layers.
            k: steps of the random walk encoding.
            settings: other values by place, as ``--set`` takes them: ``["model.readout=sum"]``.
            networks: how many are trained, each from another seed; the prediction is their mean.
            fragments: salts and mixtures: ``keep`` them whole, take the ``largest`` part, or ``error``.
            random_state: of weights and order; the same number gives the same result.
            device: ``auto`` takes a GPU where there is one.
            processes: that read SMILES; ``None``: as many as cores where there are enough molecules.

        """
        self.preset = preset
        self.epochs = epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.layers = layers
        self.hidden_dim = hidden_dim
        self.dropout = dropout
        self.k = k
        self.settings = settings
        self.networks = networks
        self.fragments = fragments
        self.random_state = random_state
        self.device = device
        self.processes = processes

    def _fit(self, molecules: Any, targets: EstimatorTargets, sample_weight: Any | None) -> Self:
        if self.networks < 1:
            raise UserError(f"networks is {self.networks}; at least one must be trained")
        experiment = self._experiment()
        data = to_data(molecules, targets, sample_weight, self.fragments, self.processes)
        experiment = experiment.model_copy(update={"features": table_sizes(data.features)})
        data = data.with_encodings(experiment.model.encodings)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.networks)
        members = []
        for number, seed in enumerate(seeds.tolist()):
            trained = fit_in_memory(
                experiment.model_copy(update={"seed": seed}), data, fragments=self.fragments, device=self.device
            )
            members.append(Member(f"network {number}", *trained))
        self.predictor_ = Predictor(members, device=self.device)
        return self

    def _experiment(self) -> Experiment:
        experiment = with_protocol(with_own_data(read_experiment(self.preset), None), "fast")
        given = {place: getattr(self, name) for name, place in _PLACES.items() if getattr(self, name) is not None}
        assignments = [f"{place}={value}" for place, value in given.items()]
        return override(experiment, [*assignments, "training.protocol.report=last", *(self.settings or [])])

    def _predict(self, molecules: Any, **options: Any) -> Any:
        check_is_fitted(self)
        everything = column_of(molecules)
        values = self.predictor_.predict(everything, processes=self.processes, **options)
        refuse_unread(everything, self.predictor_.reasons)
        return values

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything into a new folder: :meth:`load` reads it, and ``lspe predict`` takes it as a run."""
        check_is_fitted(self)
        target = Path(folder)
        if target.exists() and any(target.iterdir()):
            raise UserError(f"{folder} is not empty; choose a new folder")
        members = self.predictor_.members
        for number, member in enumerate(members):
            member.save(target if len(members) == 1 else target / f"network{number}")
        if len(members) > 1:
            write_text(target / CONFIG, members[0].experiment.to_yaml(target))
        parameters = self.get_params()
        if not isinstance(parameters["random_state"], int | None):
            parameters["random_state"] = None
        write_json(
            target / _FILE,
            {"format": FORMAT, "class": type(self).__name__, "parameters": parameters, **self._state_to_json()},
        )

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The estimator that :meth:`save` wrote, fitted."""
        path = Path(folder) / _FILE
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{folder} holds no estimator: there is no {_FILE}; a run is opened by lspe.load") from None
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{path} cannot be read ({error}): put back a copy of it, or fit again") from None
        if not isinstance(values, dict):
            raise UserError(f"{path} is not what save() wrote: put back a copy of it, or fit again")
        if values.get("format") != FORMAT or values.get("class") != cls.__name__:
            raise UserError(
                f"{path} is of a {values.get('class')} in format {values.get('format')}; "
                f"this is {cls.__name__}, which reads format {FORMAT}"
            )
        estimator = cls(**values["parameters"])
        estimator.predictor_ = load(folder, device=estimator.device)
        estimator._state_from_json(values)
        return estimator

    def _state_to_json(self) -> dict[str, Any]:
        return {}

    def _state_from_json(self, values: dict[str, Any]) -> None:
        """Nothing but the networks is learned."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array, tags.input_tags.string = True, False, True
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags
