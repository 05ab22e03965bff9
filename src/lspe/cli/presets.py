"""``lspe presets``."""

import json
from typing import Annotated, Any

import typer


def presets(
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects instead of a table.")] = False,
) -> None:
    """List the presets: every row of the paper's tables, and the defaults.

    Example: lspe presets --json
    """
    from lspe.experiment import describe_preset, list_presets, load_preset

    rows = [describe_preset(load_preset(name)) for name in list_presets()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    _print_table(rows)


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from lspe.cli.console import console

    table = Table(box=None)
    for header in ("preset", "encoding", "layers", "width", "parameters", "metric", "paper's test"):
        is_number = header in ("layers", "width", "parameters")
        table.add_column(header, justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        paper = row["paper"]
        encoding = f"{row['encoding']} {row['k']}" if row["k"] else "–"
        table.add_row(
            row["name"],
            encoding + (" + LSPE" if row["lspe"] else ""),
            str(row["layers"]),
            str(row["hidden_dim"]),
            f"{row['parameters']:,}",
            row["metric"],
            f"{paper['test']:g} ± {paper['test_sd']:g}" if paper else "–",
        )
    console().print(table)
