"""What is trained on what and how, as one value: task, features, network, protocol, data.

>>> experiment = override(read_experiment("zinc/gatedgcn-lspe"), ["model.layers=4"])
>>> data = load_data(experiment)

A *preset* is a named experiment; the YAML files below ``presets/`` are the rows of the paper's tables, and the
defaults for one's own data.

The names are loaded on first use: the command line needs the words and not PyTorch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
