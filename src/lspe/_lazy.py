"""Packages whose names are imported on first use."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_use(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``; ``home`` gives the module of each name, as in ``.loader``."""

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name], package), name)

    return get, lambda: sorted(home)
