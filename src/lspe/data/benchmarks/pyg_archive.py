"""The archives PyG publishes of graph benchmarks: three lists of dictionaries of tensors in one file."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from lspe.data.errors import DataError
from lspe.locations import cache_root

Sizes = tuple[int, int, int]


def read_archive(
    archive: Path, benchmark: str, expected: Sizes | None = None
) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    """All graphs of an archive in order, and how many of them train, validate and test."""
    import torch

    cache_root().mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as files, tempfile.TemporaryDirectory(dir=cache_root()) as folder:
        members = [name for name in files.namelist() if name.endswith(".pt")]
        if len(members) != 1:
            raise DataError(
                f"{archive} should hold one .pt file, not {len(members)}; it is not PyG's archive of {benchmark}"
            )
        parts = torch.load(files.extract(members[0], folder), weights_only=True)
    sizes = tuple(len(part) for part in parts)
    if len(sizes) != 3 or (expected is not None and sizes != expected):
        raise DataError(f"{archive} holds parts of {sizes} graphs; {benchmark} has {expected or 'three parts'}")
    return [graph for part in parts for graph in part], sizes
