"""What reading graphs from files gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lspe.data.splits import Splits
from lspe.data.words import Level

if TYPE_CHECKING:
    from torch_geometric.data import Data


class StoredGraphs(NamedTuple):
    """Graphs from files, the level their writer gave, and the parts where the files say them."""

    graphs: list[Data]
    level: Level | None
    splits: Splits | None = None
