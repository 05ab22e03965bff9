"""The C sources beside this file, compiled on first use and called through ctypes.

No part of PyTorch is needed to build them, only a C compiler (``$CC``, cc, gcc or clang). The library is kept in the
user's cache (``$LSPE_CACHE``, else the platform's cache folder) under a name that changes with the sources, the
compiler and the processor, one for each precision.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs
import torch
from torch import Tensor

SOURCES = Path(__file__).parent / "csrc"
FLAGS = (
    "-O3",
    "-std=c11",
    "-ffp-contract=fast",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
)
TUNING = (("-march=native",), ("-mcpu=native",), ())
PRECISION = {torch.float32: 32, torch.float64: 64}

_LOADED_BY = os.getpid()

log = logging.getLogger(__name__)


class Library:
    """The compiled functions of one precision: ``library.name(...)`` calls ``name`` of the C sources.

    Tensors go in as pointers to their data, ``None`` as a null pointer, integers as they are. The interpreter's lock is
    released during the call. What a function without a result returns means nothing.
    """

    def __init__(self, path: Path, precision: int) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.set_parallel_region(_of_pytorch("GOMP_parallel"))
        self._library.set_product(_of_pytorch("sgemm_" if precision == 32 else "dgemm_"))

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)

        def call(*arguments: Tensor | int | None) -> int:
            if function.argtypes is None:
                # an integer of the C sources is as wide as a pointer and is passed in the same way
                function.argtypes = [ctypes.c_void_p] * len(arguments)
                function.restype = ctypes.c_int64
            return function(*[a.data_ptr() if isinstance(a, Tensor) else a for a in arguments])

        setattr(self, name, call)
        return call


@cache
def library(dtype: torch.dtype = torch.float32) -> Library | None:
    """The functions for tensors of ``dtype``; ``None``, after a line in the log that says why, where there are none."""
    try:
        return Library(_built(PRECISION[dtype]), PRECISION[dtype])
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("lspe uses its plain PyTorch operators, which are slower: %s", error)
        return None


def library_for(x: Tensor) -> Library:
    """The functions for a tensor of which it is known that there are some."""
    native = library(x.dtype)
    assert native is not None
    return native


def threads() -> int:
    """As many as PyTorch uses; one in a forked process, where OpenMP's threads do not exist."""
    return 1 if os.getpid() != _LOADED_BY else torch.get_num_threads()


def _built(precision: int) -> Path:
    """The library's file in the cache, compiled now where it is not there yet."""
    compiler = _compiler()
    sources = sorted(SOURCES.glob("*.[ch]"))
    identity = [compiler, _run(compiler, "--version"), _processor(), repr(FLAGS), str(precision)]
    digest = hashlib.sha256("\0".join(identity).encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = Path(os.environ.get("LSPE_CACHE") or platformdirs.user_cache_dir("lspe")) / "ops"
    path = folder / f"lspe-{digest.hexdigest()[:20]}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _compile(compiler, [str(s) for s in sources if s.suffix == ".c"], precision, path)
    return path


def _compile(compiler: str, sources: list[str], precision: int, path: Path) -> None:
    """Compile under a name of its own, then rename: another process sees the whole library or none."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".build-") as folder:
        built = Path(folder) / path.name
        for tuning in TUNING:
            command = [compiler, *FLAGS, *tuning, f"-DPRECISION={precision}", *sources, "-o", str(built), "-lm"]
            try:
                _run(*command)
                break
            except subprocess.CalledProcessError as error:
                if tuning == TUNING[-1]:
                    reason = next((line for line in error.stderr.splitlines() if "error" in line), error.stderr[:200])
                    raise OSError(f"{compiler} cannot compile them: {reason}") from error
        built.replace(path)


def _compiler() -> str:
    names = [os.environ["CC"]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    for name in names:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError(f"no C compiler found (looked for {', '.join(names)})")


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _processor() -> str:
    """What tells processors with different instructions apart: a cache may be shared by several machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine() + platform.processor()
    return "".join(sorted({line for line in lines if line.split("\t")[0] in ("model name", "flags", "Features")}))


def _of_pytorch(name: str) -> ctypes.c_void_p | None:
    """A function of the OpenMP runtime or the BLAS that PyTorch has loaded.

    Without the first there is one thread, without the second a simple product of our own. A second runtime would keep
    threads of its own, and the two sets would spin against each other for the same cores.
    """
    folder = Path(torch.__file__).parent / "lib"
    beside_torch = sorted(str(path) for path in [*folder.glob("libtorch_cpu.*"), *folder.glob("lib*omp*")])
    for place in (None, *beside_torch):
        try:
            return ctypes.cast(getattr(ctypes.CDLL(place), name), ctypes.c_void_p)
        except (OSError, AttributeError):
            continue
    return None
