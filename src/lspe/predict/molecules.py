"""Molecules on their way to the networks: read in other processes while the networks work on the ones before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

import torch

from lspe.data import DataError
from lspe.data.molecules.conversion import MoleculeGraphs, to_packed
from lspe.data.molecules.descriptors import read_described
from lspe.data.molecules.processes import map_in_processes, processes_for
from lspe.data.molecules.smiles import arrays_for
from lspe.data.words import DescriptorKind, Fragments
from lspe.features import Features

AT_ONCE = 1024
"""Molecules that go through the networks together."""

_LOOK_AHEAD = 10
Piece = TypeVar("Piece")
Item = TypeVar("Item")


def read_pieces(
    pieces: Iterable[Piece],
    smiles_of: Callable[[Piece], Sequence[str]],
    features: Features,
    fragments: Fragments,
    processes: int | None,
    descriptors: Sequence[DescriptorKind] = (),
) -> Iterator[tuple[Piece, MoleculeGraphs]]:
    """Each piece with the graphs and descriptors of its molecules, in order.

    A few pieces ahead are in the hands of other processes. Where nobody says how many, there are as many processes as
    cores, or none for a few molecules.
    """
    waiting: deque[Piece] = deque()

    def texts() -> Iterator[Sequence[str]]:
        for piece in pieces:
            waiting.append(piece)
            yield smiles_of(piece)

    coming = texts()
    first = list(islice(coming, _LOOK_AHEAD))
    if processes is None:
        processes = processes_for(sum(map(len, first)))
    work = partial(read_described, features=features, fragments=fragments, kinds=descriptors)
    with half_of_the_threads() if processes > 1 else nullcontext():
        for reading, described in map_in_processes(work, chain(first, coming), processes=processes):
            graphs = MoleculeGraphs(to_packed(reading.arrays), reading.rows, reading.reasons, described)
            yield waiting.popleft(), graphs


@contextmanager
def half_of_the_threads() -> Iterator[None]:
    """Leave half of the cores to the processes that read molecules: both halves take about as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // 2))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def check_molecules_fit(features: Features, name: str) -> None:
    """Refuse to give molecules to a network that was trained on something else."""
    try:
        arrays_for(features)
    except DataError:
        raise DataError(
            f"{name} was trained on graphs with {features.kind!r} features, which molecules do not have: it cannot "
            "predict SMILES. Give it such graphs: lspe.load(run).predict(graphs), a list of PyG Data."
        ) from None


def pieces_of(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Items in lists of as many as go through the networks together."""
    items = iter(items)
    while piece := list(islice(items, AT_ONCE)):
        yield piece


def as_texts(molecules: Iterable[Any]) -> list[str]:
    """SMILES as text; what is no text (a missing value of a Series) is empty and later said to be no SMILES."""
    return [one if isinstance(one, str) else "" for one in molecules]
