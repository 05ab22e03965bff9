"""From a preset and a data set to a run folder.

>>> experiment = read_experiment("nci/gatedgcn-lspe")  # of lspe.experiment
>>> run = train(experiment, load_data(experiment), Path("runs/nci"))
>>> run.summary["reported"]["test"]["mae"]

The names are loaded on first use, so that whoever only reads a run's files does not wait for Lightning.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
