"""A whole model in one file, to be handed on: networks, forest, scaling, known molecules and a card; nothing pickled.

The file is a container of arrays (:mod:`lspe.data.packed.container`), so that every array and the header have a digest.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lspe.data.errors import DataError
from lspe.data.packed.container import ArrayFile, ArrayWriter, open_arrays
from lspe.errors import UserError
from lspe.experiment import build_network
from lspe.experiment.value import Experiment
from lspe.files import check_folder_of
from lspe.forest import Forest
from lspe.predict.calibration import Calibration
from lspe.predict.intervals import Intervals
from lspe.predict.known import KnownMolecules
from lspe.predict.member import Member
from lspe.predict.predictor import Predictor
from lspe.training.run import Interface

MODEL_SUFFIX = ".lspe"
FORMAT = 2
_NAME = "lspe model"


def check_model_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a name that no model can have."""
    target = Path(path)
    if target.suffix != MODEL_SUFFIX:
        raise UserError(f"{path}: a model is written to a name that ends in {MODEL_SUFFIX}")
    check_folder_of(target)
    return target


def save_model(predictor: Predictor, path: str | os.PathLike[str], *, card: str = "", molecules: bool = True) -> None:
    """Write all that predicts into one file; without ``molecules`` those that it was trained on stay at home."""
    known = predictor.known if molecules else None
    with ArrayWriter(check_model_path(path)) as writer:
        for number, member in enumerate(predictor.members):
            for name, tensor in member.network.state_dict().items():
                writer.append(f"network{number}/{name}", tensor.detach().cpu().numpy().reshape(-1))
        for number, forest in enumerate(predictor.forests):
            for name, array in forest.arrays().items():
                writer.append(f"forest{number}/{name}", array)
        for name, array in {} if known is None else known.arrays().items():
            writer.append(f"known/{name}", array)
        about = {
            "format": FORMAT,
            "members": [_about(member) for member in predictor.members],
            "forests": [forest.about() for forest in predictor.forests],
            "weights": predictor.weights.tolist(),
            "calibration": None if predictor.calibration is None else predictor.calibration.to_dict(),
            "intervals": None if predictor.intervals is None else predictor.intervals.to_dict(),
            "known": known is not None,
            "card": card,
        }
        writer.finish({_NAME: about})


def _about(member: Member) -> dict[str, Any]:
    """What a network takes and gives; of one's own data only the name, not where it is."""
    experiment = member.experiment.model_dump(mode="json")
    for source in ("table", "graphs"):
        if experiment[source] is not None:
            experiment[source]["path"] = Path(experiment[source]["path"]).name
    return {"experiment": experiment, "interface": member.interface.to_dict()}


def open_model(path: Path, *, device: str = "auto") -> Predictor:
    """What :func:`save_model` wrote."""
    try:
        file = open_arrays(path)
    except (DataError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = str(error).removeprefix(str(path)).split(". ")[0].lstrip(": ")
        raise UserError(
            f"{path} is no model that lspe export wrote, or it was altered or cut off ({reason}): get it again"
        ) from None
    about = file.meta.get(_NAME)
    if not isinstance(about, dict):
        raise UserError(f"{path} is a file of lspe, but holds no model: name one that lspe export wrote")
    if about.get("format") != FORMAT:
        raise UserError(
            f"{path}: the model has format {about.get('format')}; this lspe reads format {FORMAT}: "
            "use the version that wrote it"
        )
    try:
        return Predictor(
            [_member(file, number, one) for number, one in enumerate(about["members"])],
            forests=[
                Forest.from_arrays(file.arrays, one, f"forest{number}/") for number, one in enumerate(about["forests"])
            ],
            weights=about["weights"],
            intervals=None if about["intervals"] is None else Intervals.from_dict(about["intervals"]),
            calibration=None if about["calibration"] is None else Calibration.from_dict(about["calibration"]),
            known=KnownMolecules.from_arrays(file.arrays, "known/") if about["known"] else None,
            card=about["card"],
            device=device,
        )
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise UserError(f"{path} holds a model that does not fit together ({error}): get it again") from None


def _member(file: ArrayFile, number: int, about: dict[str, Any]) -> Member:
    experiment = Experiment.model_validate(about["experiment"])
    interface = Interface.from_dict(about["interface"])
    network = build_network(experiment)
    state = {}
    for name, tensor in network.state_dict().items():
        array = np.array(file.arrays[f"network{number}/{name}"])
        state[name] = torch.from_numpy(array).view(tensor.dtype).reshape(tensor.shape)
    network.load_state_dict(state)
    return Member(f"network {number} of {file.path}", experiment, interface, network)
