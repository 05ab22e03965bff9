"""Functions of the OpenMP runtime and the LAPACK that PyTorch has loaded.

A second runtime would keep threads of its own, and the two sets would spin against each other for the same cores.
"""

import ctypes
from pathlib import Path

import torch


def find_function(name: str) -> int:
    """The address of a function in the process or in a library of PyTorch's; 0 where there is none.

    Without OpenMP's there is one thread, without LAPACK's eigenvectors of larger graphs come from PyTorch itself.
    """
    folder = Path(torch.__file__).parent / "lib"
    beside_torch = sorted(str(path) for path in [*folder.glob("libtorch_cpu.*"), *folder.glob("lib*omp*")])
    for place in (None, *beside_torch):
        try:
            return ctypes.cast(getattr(ctypes.CDLL(place), name), ctypes.c_void_p).value or 0
        except (OSError, AttributeError):
            continue
    return 0
