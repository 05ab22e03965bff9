"""``lspe``: the commands, each in its own file and imported only when it is called."""

import sys
from typing import Annotated

import typer

from lspe._version import __version__
from lspe.cli import data
from lspe.cli.compare import compare
from lspe.cli.doctor import doctor
from lspe.cli.encode import encode
from lspe.cli.evaluate import evaluate
from lspe.cli.explore import explore
from lspe.cli.plot import plot
from lspe.cli.predict import predict
from lspe.cli.presets import presets
from lspe.cli.reproduce import reproduce
from lspe.cli.train import train
from lspe.errors import UserError

app = typer.Typer(
    name="lspe",
    help="Learn from graphs with learnable structural and positional encodings.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lspe {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn from graphs with learnable structural and positional encodings."""


for command in (train, predict, evaluate, reproduce, presets, encode, compare, plot, explore, doctor):
    app.command()(command)
app.add_typer(data.app, name="data")


def run() -> None:
    """The entry point: what the user can put right is said in words, without a traceback."""
    try:
        app()
    except UserError as error:
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(2)
