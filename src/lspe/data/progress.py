"""One progress bar for everything that takes a while; nothing where the output is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, total: int | None, *, bytes_: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar on the error output; call what it gives with the amount done since the last call."""
    from rich.console import Console
    from rich.progress import DownloadColumn, MofNCompleteColumn, Progress, ProgressColumn, TransferSpeedColumn

    console = Console(file=sys.stderr)
    if not console.is_terminal:  # rich before 14.3 ends a disabled bar with an empty line
        yield lambda amount: None
        return
    extra: list[ProgressColumn] = [DownloadColumn(), TransferSpeedColumn()] if bytes_ else [MofNCompleteColumn()]
    columns = (*Progress.get_default_columns(), *extra)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total)
        yield lambda amount: progress.advance(task, amount)
