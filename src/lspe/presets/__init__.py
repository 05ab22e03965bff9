"""Named, complete experiments: one YAML a row of the paper's tables, and the defaults for own data."""

from lspe.presets.catalog import build_network, count_parameters, describe, list_presets, load_preset
from lspe.presets.schema import PaperRow, Preset, Task

__all__ = [
    "PaperRow",
    "Preset",
    "Task",
    "build_network",
    "count_parameters",
    "describe",
    "list_presets",
    "load_preset",
]
