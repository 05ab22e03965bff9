"""The words data are described with: what is learned, how a set is divided, what is done with odd rows.

They need nothing else, so that the command line can offer them without loading anything.
"""

from typing import Literal

Level = Literal["graph", "node", "edge", "link"]
"""What a target belongs to: a whole graph, one of its nodes, one of its edges, or a pair of nodes: is it joined?"""

TaskKind = Literal["regression", "binary", "multiclass"]
"""Numbers, independent yes/no labels, or one of several classes."""

Divided = Literal["graphs", "targets"]
"""What is shared out among the parts of a set: whole graphs, or the targets of nodes or edges that all parts see."""

SplitName = Literal["train", "val", "test"]
"""The parts of a set."""

SplitKind = Literal["random", "scaffold", "time", "column"]
"""How a table is divided: by chance, by Bemis–Murcko scaffolds, into earlier and later, or as a column says."""

Fragments = Literal["keep", "largest", "error"]
"""What is done with molecules of several fragments, such as salts."""

OnInvalid = Literal["error", "skip", "nan"]
"""What is done with rows that cannot be used."""

Duplicates = Literal["keep", "first", "mean"]
"""What is done with rows of the same molecule: all kept, in one part of the division; only the first; or their mean."""

DescriptorKind = Literal["rdkit", "morgan"]
"""Numbers of a molecule as a whole: RDKit's descriptors, or a Morgan fingerprint."""

OptionalDescriptorKind = Literal["none", "rdkit", "morgan"]
"""The same, or none."""

DESCRIPTOR_WIDTH: dict[DescriptorKind, int] = {"rdkit": 206, "morgan": 2048}
"""How many numbers a molecule has of each kind."""
