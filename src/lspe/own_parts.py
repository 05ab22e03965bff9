"""Parts that people write themselves, named in a configuration by their import path: ``my_module:my_part``."""

import importlib
import os
import sys
from difflib import get_close_matches
from typing import Any

from lspe.errors import UserError


def is_import_path(text: str) -> bool:
    """Whether it looks like ``my_module:my_part``."""
    module, colon, name = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in [*module.split("."), *name.split(".")])


def import_part(path: str) -> Any:
    """What ``my_module:my_part`` names; modules that Python does not find are looked for in the working directory."""
    if not is_import_path(path):
        raise UserError(f"{path!r} is no import path: write my_module:my_part")
    module_name, _, name = path.partition(":")
    try:
        module = part = _import_module(module_name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"{path}: there is no module {error.name!r} where Python looks for modules, nor in {os.getcwd()}: "
            "start lspe in the folder of its file, or set PYTHONPATH to it"
        ) from error
    except Exception as error:  # of whatever the module does when it is imported
        raise UserError(f"{path}: {module_name} cannot be imported: {type(error).__name__}: {error}") from error
    for step in name.split("."):
        if not hasattr(part, step):
            close = get_close_matches(step, dir(part), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            place = getattr(module, "__file__", None) or module_name
            raise UserError(f"{path}: {place} has no {step!r}{hint}")
        part = getattr(part, step)
    return part


def _import_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        importlib.invalidate_caches()  # the file may be new
        return importlib.import_module(name)
    finally:
        sys.path.remove(here)
