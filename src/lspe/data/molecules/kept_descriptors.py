"""Descriptors of the molecules of a packed set: computed once, and kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lspe.data.molecules.descriptors import iter_described
from lspe.data.packed.cache import build_once
from lspe.data.packed.container import Array, ArrayWriter, open_arrays
from lspe.data.words import DescriptorKind, Fragments

_VERSION = 2


def kept_descriptors(
    graphs: Path | None,
    smiles: Callable[[], Sequence[str]],
    kind: DescriptorKind,
    *,
    fragments: Fragments = "keep",
    processes: int | None = None,
) -> Array:
    """What :func:`describe` gives for the molecules of the packed file ``graphs``, mapped from a file.

    ``smiles`` is asked for these molecules the first time only.
    """
    assert graphs is not None, "the graphs of a table or a benchmark are mapped from their file"
    path = graphs.with_name(f"{graphs.stem}.{kind}-v{_VERSION}.lspe")

    def build() -> None:
        with ArrayWriter(path) as writer:
            for part in iter_described(smiles(), kind, fragments=fragments, processes=processes):
                writer.append("descriptors", part)
            writer.finish({"kind": kind})

    return build_once(path, build, lambda: open_arrays(path).arrays["descriptors"])
