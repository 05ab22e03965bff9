"""Graph neural networks with learnable structural and positional encodings (LSPE).

The public names, nothing else. They are loaded on first use, so that ``import lspe`` and
``lspe --help`` stay quick.
"""

from lspe._lazy import names_on_use
from lspe._version import __version__

_HOME = {
    "random_walk_encoding": ".encodings",
    "laplacian_encoding": ".encodings",
    "diffusion_kernel": ".encodings",
    "random_walk_test": ".isomorphism",
    "weisfeiler_lehman_test": ".isomorphism",
    "LSPE": ".nn",
    "Network": ".nn",
    "build_network": ".experiment",
    "list_presets": ".experiment",
    "load_preset": ".experiment",
    "load": ".predict",
    "LSPERegressor": ".estimators",
    "LSPEClassifier": ".estimators",
}

__all__ = [
    "__version__",
    *_HOME,
]

__getattr__, __dir__ = names_on_use(__name__, _HOME)
