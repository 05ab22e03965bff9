"""Where a person's own graphs are, as a value."""

from pathlib import Path

from lspe.config import Strict
from lspe.data import GraphData


class GraphSource(Strict):
    """A person's own graphs with their targets and splits, packed into one file (:meth:`lspe.data.GraphData.save`).

    In the config.yaml of a run the path is relative to it: the file stays with the run wherever that is moved.
    """

    path: str

    def load(self) -> GraphData:
        """Map the file."""
        return GraphData.open(Path(self.path))
