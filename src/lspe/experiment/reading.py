"""Read an experiment from where it is written down: a preset, a YAML file, a run folder."""

import os
from pathlib import Path

from lspe.config import ConfigError, read_yaml_file, validate
from lspe.experiment.catalogue import load_preset
from lspe.experiment.value import CONFIG, Experiment


def read_experiment(source: str) -> Experiment:
    """The experiment of a preset's name, of a YAML file, or of a run folder's config.yaml."""
    path = Path(source)
    if os.path.isfile(path / CONFIG):
        path = path / CONFIG
    elif os.path.isdir(path):
        raise ConfigError(f"{path} is a folder without {CONFIG}: name a run folder, a preset or a YAML file")
    if path.suffix not in (".yaml", ".yml"):
        return Experiment(**load_preset(source).model_dump())
    experiment = validate(Experiment, {"name": path.stem, **read_yaml_file(path)}, str(path))
    if experiment.graphs is None:
        return experiment
    return experiment.model_copy(update={"graphs": experiment.graphs.found_from(path.parent)})
