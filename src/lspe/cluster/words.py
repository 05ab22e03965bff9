"""Words of the command line."""

from typing import Literal

Engine = Literal["local", "ray"]
"""Where a table is worked on: by processes of this machine, or of a Ray cluster."""
