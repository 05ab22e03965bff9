"""``lspe export``."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    output: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The model: a name that ends in .lspe.")],
    molecules: Annotated[
        bool,
        typer.Option(help="Whether the molecules it was trained on go with it, to compare others with them."),
    ] = True,
) -> None:
    """Write all that predicts into one file, and a card beside it that says what it can do.

    lspe predict, lspe explore and lspe.load in Python open it like a run folder.

    Examples: lspe export runs/logS -o logS.lspe
              lspe export runs/logS -o logS.lspe --no-molecules
    """
    from lspe.files import write_text
    from lspe.predict import load
    from lspe.predict.card import model_card
    from lspe.predict.model_file import check_model_path, save_model
    from lspe.training.run import Run

    check_model_path(output)
    opened = Run.open(run)
    predictor = load(run, device="cpu")
    card = model_card(opened, predictor, molecules=molecules)
    save_model(predictor, output, card=card, molecules=molecules)
    beside = output.with_suffix(".md")
    write_text(beside, card)
    size = output.stat().st_size / 1e6
    typer.echo(f"{output} ({size:.1f} MB) and its card {beside}")
    if molecules and predictor.known is not None:
        count = len(predictor.known.smiles)
        typer.echo(
            f"it holds the {count:,} molecules it was trained on, with their labels; --no-molecules leaves them out"
        )
