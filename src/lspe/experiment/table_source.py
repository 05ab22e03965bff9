"""Where a person's own table is and how it is read, as a value."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from lspe.config import Strict
from lspe.data import GraphData, Table, read_table
from lspe.data.words import DescriptorKind, Duplicates, Fragments, OnInvalid, SplitKind, TaskKind
from lspe.experiment.protocol import Seed


class TableSource(Strict):
    """A person's own table: where it is, what its columns mean, and how it is divided.

    What is not given is found out; see :func:`lspe.data.read_table` and :meth:`lspe.data.Table.to_graphs`.
    """

    path: str
    smiles: str | None = None
    targets: tuple[str, ...] | None = None
    task: TaskKind | None = None
    weight: str | None = None
    extra: tuple[str, ...] = ()
    split: SplitKind | None = None
    split_column: str | None = None
    split_seed: Seed = 0
    folds: Annotated[int, Field(ge=3)] | None = None
    fragments: Fragments = "keep"
    duplicates: Duplicates = "keep"
    on_invalid: OnInvalid = "error"

    def read(self) -> Table:
        """The table, its columns understood."""
        return read_table(
            self.path,
            smiles=self.smiles,
            targets=self.targets,
            task=self.task,
            weight=self.weight,
            extra=self.extra,
            split_column=self.split_column,
            on_invalid=self.on_invalid,
        )

    def load(self, processes: int | None = None, *, descriptors: Iterable[DescriptorKind] = ()) -> GraphData:
        """Read the table and turn its molecules into graphs with descriptors, or take them from the cache."""
        return self.read().to_graphs(
            fragments=self.fragments,
            duplicates=self.duplicates,
            split=self.split,
            folds=self.folds,
            seed=self.split_seed,
            descriptors=descriptors,
            processes=processes,
        )
