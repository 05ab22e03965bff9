"""Graph neural networks with learnable structural and positional encodings (LSPE).

The public names, nothing else; ``__init__.pyi`` lists them. They are loaded on first use, so that ``import lspe`` and
``lspe --help`` stay quick.

>>> import lspe
>>> run = lspe.train("solubility.csv", targets=["logS"])
>>> lspe.load(run.path).predict(["CCO", "c1ccccc1"])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
