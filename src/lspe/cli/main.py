"""``lspe``: the commands, each in its own file and imported only when it is called."""

import os
import sys
import traceback
from typing import Annotated

import typer

from lspe._version import __version__
from lspe.cli import data
from lspe.cli.compare import compare
from lspe.cli.doctor import doctor
from lspe.cli.encode import encode
from lspe.cli.evaluate import evaluate
from lspe.cli.explore import explore
from lspe.cli.export import export
from lspe.cli.plot import plot
from lspe.cli.predict import predict
from lspe.cli.presets import presets
from lspe.cli.reproduce import reproduce
from lspe.cli.sweep import sweep
from lspe.cli.train import train
from lspe.cli.tune import tune
from lspe.errors import UserError

DEBUG = "LSPE_DEBUG"

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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Learn from graphs with learnable structural and positional encodings."""
    if debug:
        os.environ[DEBUG] = "1"


for command in (
    train,
    tune,
    sweep,
    predict,
    evaluate,
    export,
    reproduce,
    presets,
    encode,
    compare,
    plot,
    explore,
    doctor,
):
    app.command()(command)
app.add_typer(data.app, name="data")


def run() -> None:
    """The entry point: what the user can put right is said in words; what is our bug, in one line.

    ``--debug`` (or the environment variable LSPE_DEBUG) shows the traceback of both.
    """
    _wait_politely()
    try:
        app()
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        message, code = _in_words(error)
        typer.secho(f"error: {message}", fg="red", err=True)
        sys.exit(code)


def _wait_politely() -> None:
    """Let threads sleep while they wait, after some microseconds; torch reads this when it is loaded.

    Threads that spin take the cores from those that work. Those that sleep at once are late for the next operator: in
    small batches that costs a third of a step.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def _in_words(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the code to end with: 2 where the user can put it right."""
    match error:
        case UserError():
            return str(error), 2
        case OSError():
            return f"{error.filename or 'the system'}: {error.strerror or error}", 2
        case MemoryError():
            return "there is not enough memory for this", 2
    first_line = (str(error).strip() or "no message").splitlines()[0]
    advice = "" if os.environ.get(DEBUG) else "; lspe --debug shows where it happened"
    return f"a bug in lspe: {type(error).__name__}: {first_line}. Please report it{advice}", 1
