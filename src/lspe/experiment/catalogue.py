"""Find presets, read them, and build what they describe."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from lspe.config import ConfigError, read_yaml_file, unknown_name, validate
from lspe.experiment.network import build
from lspe.experiment.preset import Preset
from lspe.nn.network import Network

_FOLDER = Path(str(files("lspe.experiment"))) / "presets"


def list_presets() -> list[str]:
    """The names of all presets, by data set."""
    return sorted(path.relative_to(_FOLDER).with_suffix("").as_posix() for path in _FOLDER.glob("*/*.yaml"))


def load_preset(name: str) -> Preset:
    """The preset of that name (``zinc/gatedgcn-lspe``), or one's own from a YAML file of that path."""
    own = Path(name)
    if own.suffix in (".yaml", ".yml"):
        return _read(own, own.stem)
    known = list_presets()
    if name not in known:
        raise ConfigError(unknown_name("preset", name, known))
    return _read(_FOLDER / f"{name}.yaml", name)


def _read(path: Path, name: str) -> Preset:
    return validate(Preset, {"name": name, **read_yaml_file(path)}, path.name)


def build_network(preset: Preset | str) -> Network:
    """The network of a preset, with fresh weights."""
    if isinstance(preset, str):
        preset = load_preset(preset)
    try:
        return build(preset.model, preset.features, preset.task.outputs)
    except (ValueError, OverflowError, RuntimeError, MemoryError) as error:
        raise ConfigError(f"{preset.name}: the network cannot be built: {error}") from error


def count_parameters(preset: Preset | str) -> int:
    """Number of parameters of the built network; no memory is taken for them."""
    with torch.device("meta"):
        network = build_network(preset)
    return sum(parameter.numel() for parameter in network.parameters())


def describe_preset(preset: Preset) -> dict[str, Any]:
    """A preset in one flat object, as ``lspe presets --json`` lists it."""
    model, paper = preset.model, preset.paper
    return {
        "name": preset.name,
        "dataset": preset.dataset,
        "model": model.name,
        "encoding": model.encoding,
        "k": model.k,
        "lspe": model.lspe,
        "final": model.final,
        "positional_loss": preset.training.positional_loss is not None,
        "layers": model.layers,
        "hidden_dim": model.hidden_dim,
        "level": preset.task.level,
        "metric": preset.task.metric,
        "parameters": count_parameters(preset),
        "paper_parameters": paper.parameters if paper else None,
        "paper": {**paper.model_dump(exclude={"parameters"}), "sd": paper.test_sd} if paper else None,
    }
