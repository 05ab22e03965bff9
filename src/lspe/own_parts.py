"""Parts that people write themselves, named in a configuration by their import path: ``my_module:my_part``."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
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
            if module_name == "__main__":
                hint = ": it was written in a notebook or a script; define it here before, or move it to a module"
            place = getattr(module, "__file__", None) or module_name
            raise UserError(f"{path}: {place} has no {step!r}{hint}")
        part = getattr(part, step)
    return part


def path_of(part: Any) -> str:
    """The import path of a class or function, the inverse of :func:`import_part`."""
    module, name = getattr(part, "__module__", None), getattr(part, "__qualname__", None)
    if module is None or name is None:
        raise UserError(f"{part!r} has no import path: give a class or a function, with its arguments beside it")
    path = f"{module}:{name}"
    if not is_import_path(path) or import_part(path) is not part:
        raise UserError(f"{module}.{name} cannot be imported again from where it is: define it at the top of a module")
    return path


def make_part(
    part: Callable[..., Any], path: str, known: Mapping[str, Any], given: Mapping[str, Any], place: str
) -> Any:
    """Call what ``path`` names: what is ``known`` where it takes it by that name, and what is ``given`` in any case.

    ``place`` is where in a configuration ``given`` is written.
    """
    try:
        parameters = inspect.signature(part).parameters.values()
    except (TypeError, ValueError):
        raise UserError(f"{path} is a {type(part).__name__}, not a class or a function") from None
    takes = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    arguments = {name: value for name, value in known.items() if name in takes} | dict(given)
    unknown = [name for name in given if name not in takes]
    if unknown and not any(one.kind is one.VAR_KEYWORD for one in parameters):
        raise UserError(f"{place}: {path} takes no {unknown[0]!r}; it takes {', '.join(takes) or 'nothing'}")
    for one in parameters:
        if one.name in takes and one.default is one.empty and one.name not in arguments:
            raise UserError(f"{path} needs {one.name!r}: add it to {place}")
    try:
        return part(**arguments)
    except Exception as error:  # of whatever somebody else's class does with its arguments
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise UserError(f"{path}({shown}) cannot be made: {type(error).__name__}: {error}") from error


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
