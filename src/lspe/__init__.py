"""Graph neural networks with learnable structural and positional encodings (LSPE).

The public names, nothing else. They are loaded on first use, so that ``import lspe`` and
``lspe --help`` stay quick.
"""

from importlib import import_module
from typing import Any

from lspe._version import __version__

_HOME = {
    "random_walk_encoding": "lspe.encodings",
    "laplacian_encoding": "lspe.encodings",
    "diffusion_kernel": "lspe.encodings",
    "random_walk_test": "lspe.isomorphism",
    "weisfeiler_lehman_test": "lspe.isomorphism",
    "LSPE": "lspe.nn",
    "Network": "lspe.nn",
    "build_network": "lspe.presets",
    "list_presets": "lspe.presets",
    "load_preset": "lspe.presets",
    "load": "lspe.predict",
    "LSPERegressor": "lspe.estimators",
    "LSPEClassifier": "lspe.estimators",
}

__all__ = [
    "__version__",
    *_HOME,
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lspe' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
