"""``lspe plot``."""

from pathlib import Path
from typing import Annotated

import typer

from lspe.plots.style import Format


def plot(
    name: Annotated[
        str, typer.Argument(help="three-regular, csl, decalin, distinct, molecules, all; k-study, curves with SOURCES.")
    ],
    sources: Annotated[
        list[str] | None, typer.Argument(help="The table of k-study, or the run folders of curves.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path("figures"),
    form: Annotated[Format, typer.Option("--format", help="What to write.")] = "both",
    root: Annotated[Path | None, typer.Option(help="Where ZINC is, if not in $LSPE_DATA.")] = None,
) -> None:
    """Draw the paper's figures from our own data.

    Example: lspe plot decalin --out figures

    Example: lspe plot curves runs/first runs/second
    """
    from lspe.cli.console import console
    from lspe.plots import draw

    for path in draw(name, sources or (), out=out, form=form, root=root):
        console().print(f"wrote {path}", highlight=False)
