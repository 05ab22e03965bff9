"""Where a person's own graphs are and how they are read, as a value."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from lspe.config import Strict
from lspe.data import GraphData
from lspe.data.graphs.recognition import is_named
from lspe.data.packed.cache import packed_path
from lspe.data.words import Level, TaskKind
from lspe.experiment.protocol import Seed

PACKED = ".lspe"


class GraphSource(Strict):
    """A person's own graphs with their targets: a file, a folder of files, or a data set of PyG by name.

    What is not given is found out; see :func:`lspe.from_pyg`. A packed file (:meth:`lspe.data.GraphData.save`) says
    everything itself. In the config.yaml of a run the path of a file in the run's own folder is relative to it: the
    file stays with the run wherever that is moved.
    """

    path: str
    level: Level | None = None
    task: TaskKind | None = None
    split_seed: Seed = 0
    folds: Annotated[int, Field(ge=3)] | None = None

    def load(self) -> GraphData:
        """Read the graphs, or take them from the cache."""
        if self.path.endswith(PACKED):
            return GraphData.open(Path(self.path))
        from lspe.data.graphs.storage import files_of  # loads PyG, which no table needs

        options = self.model_dump_json(exclude={"path"})
        files = [] if is_named(self.path) else files_of(self.path)
        names = [self.path] if is_named(self.path) else [file.name for file in files]
        return GraphData.open_or_build(packed_path(self.name, *files, *names, options), self._build)

    @property
    def name(self) -> str:
        """What to call the graphs."""
        return self.path.replace(":", "-").replace("/", "-") if is_named(self.path) else Path(self.path).stem

    def relative_to(self, folder: Path) -> str:
        """The path as it is written to a file in ``folder``."""
        if is_named(self.path) or not Path(self.path).is_relative_to(folder.absolute()):
            return self.path
        return os.path.relpath(self.path, folder)

    def found_from(self, folder: Path) -> "GraphSource":
        """The inverse of :meth:`relative_to`."""
        if is_named(self.path):
            return self
        return self.model_copy(update={"path": os.path.normpath(folder.absolute() / self.path)})

    def _build(self, path: Path) -> None:
        from lspe.data.graphs.named import read_named
        from lspe.data.graphs.pyg import from_pyg
        from lspe.data.graphs.storage import read_graphs

        stored = read_named(self.path) if is_named(self.path) else read_graphs(self.path)
        data = from_pyg(
            stored.graphs,
            level=self.level or stored.level,
            task=self.task,
            splits=None if self.folds else stored.splits,
            folds=self.folds,
            seed=self.split_seed,
            name=self.name,
        )
        data.save(path)
