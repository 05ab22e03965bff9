"""The border: the only place where tensors become pointers.

``csrc/api.h`` declares what there is to call; cffi reads the same file as the compiler, so a call cannot differ from
its declaration. A function takes one structure. The declared type of each of its fields says what a tensor has to be:
``rows`` is a matrix of the library's precision whose numbers of a row stand side by side, ``line`` such a vector,
``indices`` a vector of int64; all in the CPU's memory. Each goes with its own sizes, which the C side compares with all
others, and looks at every index, before it touches a number.
"""

import logging
import math
import os
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import cffi
import torch
from torch import Tensor

from lspe.ops.fused.build import SOURCES, built
from lspe.ops.fused.pytorch import find_function

PRECISION = {torch.float32: 32, torch.float64: 64}

_LOADED_BY = os.getpid()

log = logging.getLogger(__name__)


class Refused(RuntimeError):
    """Arguments that the operators in C cannot serve; nothing has happened, and the plain twin says what to do."""


class Library:
    """The compiled functions of one precision: ``library.call("drop", x=x, ...)``.

    A tensor that is left out is ``None``. The interpreter's lock is released during the call.
    """

    def __init__(self, path: Path, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._ffi = _declarations(dtype)
        self._library = self._ffi.dlopen(str(path))
        self._convert = {
            "struct rows": self._rows,
            "struct line": self._line,
            "struct indices": self._indices,
            "uintptr_t": self._doubles,
        }
        self._calls: dict[str, tuple[Any, Any, dict[str, Callable[[Any], Any] | None]]] = {}
        borrowed = {"set_parallel_region": "GOMP_parallel", "set_eigensolver": "dsyevd_"}
        for name, function in borrowed.items():
            getattr(self._library, name)(self._ffi.cast("void *", find_function(function)))

    def do_without(self, setter: str) -> None:
        """Take nothing of PyTorch for this purpose."""
        getattr(self._library, setter)(self._ffi.NULL)

    def call(self, name: str, **fields: Any) -> None:
        """Call a function; :class:`Refused` where the fields do not fit it or each other."""
        function, structure, convert = self._prepared(name)
        values = {}
        for field, value in fields.items():
            conversion = convert[field]
            is_ready = conversion is None or isinstance(value, self._ffi.CData)
            values[field] = value if is_ready else conversion(value)  # type: ignore[misc]
        answer = function(self._ffi.new(structure, values))
        if answer == self._library.DONE:
            return
        if answer == self._library.NO_MEMORY:
            raise MemoryError(f"no memory for {name}")
        if answer == self._library.NOT_SERVED:
            raise Refused(f"{name}: what it takes of PyTorch is not there, or failed")
        what = "sizes" if answer == self._library.WRONG_SIZES else "indices"
        raise Refused(f"{name}: the {what} of its arguments do not fit together")

    def array(self, name: str, field: str, values: list[Any]) -> Any:
        """What a function is given for a field, ready for several calls; its tensors have to stay where they are."""
        _, structure, convert = self._prepared(name)
        conversion = convert[field]
        assert conversion is not None
        return self._ffi.new(dict(structure.item.fields)[field].type, conversion(values))

    def count(self, name: str, *sizes: int) -> int:
        """What a function makes of sizes alone."""
        return int(getattr(self._library, name)(*sizes))

    def _prepared(self, name: str) -> tuple[Any, Any, dict[str, Callable[[Any], Any] | None]]:
        if name not in self._calls:
            function = getattr(self._library, name)
            (structure,) = self._ffi.typeof(function).args
            self._calls[name] = function, structure, self._conversions(structure.item)
        return self._calls[name]

    def _conversions(self, structure: Any) -> dict[str, Callable[[Any], Any] | None]:
        return {field: self._conversion(about.type) for field, about in structure.fields}

    def _conversion(self, kind: Any) -> Callable[[Any], Any] | None:
        """From what Python gives for a field to what cffi takes; ``None`` where that is the same."""
        if kind.cname in self._convert:
            return self._convert[kind.cname]
        if kind.kind == "array":
            inner = self._conversion(kind.item)
            return None if inner is None else lambda values: [inner(value) for value in values]
        if kind.kind == "struct":
            inside = self._conversions(kind)

            def nested(values: Mapping[str, Any]) -> dict[str, Any]:
                return {
                    field: value if (conversion := inside[field]) is None else conversion(value)
                    for field, value in values.items()
                }

            return nested
        return None

    def _rows(self, x: Tensor | None) -> tuple[int, int, int, int]:
        if x is None:
            return 0, 0, 0, 0
        if x.dtype is not self.dtype or not x.is_cpu or x.dim() != 2:
            raise _refusal(x, f"[rows, width] of {self.dtype}")
        count, width = x.shape
        step, apart = x.stride()
        if count <= 1:  # PyTorch may say anything of a single row
            step = max(step, width)
        if (width > 1 and apart != 1) or step < width:
            raise _refusal(x, "rows whose numbers stand side by side")
        return x.data_ptr(), count, width, step

    def _line(self, x: Tensor | None) -> tuple[int, int]:
        if x is None:
            return 0, 0
        if x.dtype is not self.dtype or not x.is_cpu or not x.is_contiguous():
            raise _refusal(x, f"contiguous numbers of {self.dtype}")
        return x.data_ptr(), x.numel()

    def _indices(self, x: Tensor | None) -> tuple[int, int]:
        if x is None:
            return 0, 0
        if x.dtype is not torch.int64 or not x.is_cpu or not x.is_contiguous():
            raise _refusal(x, "contiguous int64")
        return x.data_ptr(), x.numel()

    def _doubles(self, x: Tensor | None) -> int:
        if x is None:
            return 0
        if x.dtype is not torch.float64 or not x.is_cpu or not x.is_contiguous():
            raise _refusal(x, "contiguous float64")
        return x.data_ptr()


def _refusal(x: Tensor, wanted: str) -> Refused:
    return Refused(f"a tensor {list(x.shape)} of {x.dtype} on {x.device} with strides {x.stride()}, not {wanted}")


@cache
def library(dtype: torch.dtype = torch.float32) -> Library | None:
    """The functions for tensors of ``dtype``; ``None``, after a line in the log that says why, where there are none."""
    try:
        native = Library(built(PRECISION[dtype]), dtype)
        _try(native)
        return native
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
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


def _declarations(dtype: torch.dtype) -> cffi.FFI:
    """What ``api.h`` declares; pointers to numbers are plain addresses, the conversions have looked at the type."""
    header = (SOURCES / "api.h").read_text()
    for pointer in ("real *", "integer *", "double *"):
        header = header.replace(pointer, "address ")
    real = "float" if dtype is torch.float32 else "double"
    ffi = cffi.FFI()
    ffi.cdef(f"typedef int64_t integer; typedef {real} real; typedef uintptr_t address;\n{header}")
    return ffi


def _try_eigensolver(native: Library) -> None:
    """On a ring of 256 nodes, so many that it is asked; where it is wrong it is done without."""
    n = 256
    node = torch.arange(n)
    graphs = {
        "largest": n,
        "node_start": torch.tensor([0, n]),
        "edge_start": torch.tensor([0, n]),
        "source": node,
        "target": node.roll(-1),
    }
    vectors, values = torch.zeros(n, 2, dtype=native.dtype), torch.zeros(1, 2, dtype=native.dtype)
    try:
        native.call("laplacian_eigenpairs", threads=1, graphs=graphs, vectors=vectors, values=values)
    except Refused:
        return
    if not torch.allclose(values, torch.full_like(values, 1 - math.cos(2 * math.pi / n)), atol=1e-6):
        native.do_without("set_eigensolver")


def _try(native: Library) -> None:
    """See that products are compiled as they are meant, and that what is taken of PyTorch does as it is thought to."""
    generator = torch.Generator().manual_seed(0)

    def random(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns + 3, generator=generator).to(native.dtype)[:, :columns]

    for transposed in (False, True):
        left, right, out = random(*((150, 13) if transposed else (13, 150))), random(150, 48), random(13, 48)
        native.call("try_product", transposed=transposed, a=left, b=right, c=out)
        expected = (left.mT if transposed else left).double() @ right.double()
        if not torch.allclose(out.double(), expected, rtol=1e-4, atol=1e-4):
            raise RuntimeError("products of matrices are not compiled as they are meant")
    _try_eigensolver(native)
    seen = torch.zeros(64, dtype=torch.int64)
    native.call("try_threads", threads=threads(), seen=seen)
    if not bool((seen == 1).all()):
        raise RuntimeError("GOMP_parallel of PyTorch's OpenMP does not share out tasks as expected")
