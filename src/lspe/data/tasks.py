"""The kinds of task that a set of graphs can pose."""

from typing import Literal

TaskKind = Literal["regression", "binary", "multiclass"]
"""Numbers, independent yes/no labels, or one of several classes."""
