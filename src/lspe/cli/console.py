"""Where the commands print."""

from rich.console import Console

PIPE_WIDTH = 120


def console(*, stderr: bool = False, pipe_width: int = PIPE_WIDTH) -> Console:
    """A rich console as wide as the terminal, or wide enough for our tables where there is none."""
    plain = Console(stderr=stderr)
    return plain if plain.is_terminal else Console(stderr=stderr, width=pipe_width)
