"""Compile the C sources on first use, and keep the library where nobody else can change it.

No part of PyTorch is needed to build it, only a C compiler (``$CC``, cc, gcc or clang; ``$LSPE_CFLAGS`` are added to
its flags). The library is kept in the user's cache (``$LSPE_CACHE``, else the platform's cache folder) under a name
that changes with the sources, the compiler and the processor, and that ends in the digest of the library itself: a
file whose content is not what its name says is never loaded, nor one that somebody else could have written.
"""

import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from lspe.locations import cache_root

SOURCES = Path(__file__).parent / "csrc"
FLAGS = ("-O3", "-std=c11", "-ffp-contract=fast", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math")
TUNING = (("-march=native",), ("-mcpu=native",), ())


def built(precision: int) -> Path:
    """The library for numbers of 32 or 64 bits, compiled now where it is not in the cache yet."""
    compiler = _compiler()
    flags = (*FLAGS, f"-DPRECISION={precision}", *os.environ.get("LSPE_CFLAGS", "").split())
    folder = _own_folder(cache_root() / "ops")
    identity = [compiler, _run(compiler, "--version"), _processor(), repr(flags)]
    key = hashlib.sha256("\0".join(identity).encode())
    for source in sorted(SOURCES.glob("*.[ch]")):
        key.update(source.read_bytes())
    name = f"lspe-{key.hexdigest()[:20]}"
    for path in sorted(folder.glob(f"{name}-*.so")):
        if path == folder / _file_name(name, path) and _is_ours(path):
            return path
    return _compile(compiler, flags, folder, name)


def _compile(compiler: str, flags: tuple[str, ...], folder: Path, name: str) -> Path:
    """Compile in a folder of its own, then rename: another process sees the whole library or none."""
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as room:
        result = Path(room) / "library.so"
        for tuning in TUNING:
            try:
                _run(compiler, *flags, *tuning, *sources, "-o", str(result), "-lm")
                break
            except subprocess.CalledProcessError as error:
                if tuning == TUNING[-1]:
                    reason = next((line for line in error.stderr.splitlines() if "error" in line), error.stderr[:200])
                    raise OSError(f"{compiler} cannot compile them: {reason}") from error
        path = folder / _file_name(name, result)
        return result.replace(path)


def _file_name(name: str, library: Path) -> str:
    return f"{name}-{hashlib.sha256(library.read_bytes()).hexdigest()}.so"


def _own_folder(folder: Path) -> Path:
    """``folder``, made where it is not there; an error where others than its owner could put files into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_ours(folder):
        raise PermissionError(
            f"others can write to {folder}, and a library there may be anybody's: "
            "take the permission away (chmod go-w), or set LSPE_CACHE to a folder of your own"
        )
    return folder


def _is_ours(path: Path) -> bool:
    """Whether nobody but this user (and the administrator) can have written ``path``."""
    if not hasattr(os, "getuid"):
        return True
    about = path.stat()
    for above in path.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return False
    return about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


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
