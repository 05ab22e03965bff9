"""``lspe predict``."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lspe.cluster.words import Engine
from lspe.training.words import Which

if TYPE_CHECKING:
    from lspe.predict import Predictor


def predict(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN... TABLE",
            help="Run folders (several are an ensemble) or an exported model; then a table with SMILES (CSV, TSV, "
            "Parquet, .smi, SDF; - is the standard input) unless --smiles gives molecules, or graphs (.npz, .parquet, "
            ".json, a folder).",
        ),
    ],
    smiles: Annotated[list[str] | None, typer.Option(help="A molecule; repeat for several.")] = None,
    output: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help=".csv, .tsv or .parquet, else CSV on the standard output; of --engine ray a folder.",
        ),
    ] = "-",
    smiles_column: Annotated[
        str | None, typer.Option("--smiles-column", help="Column of SMILES, if not found by name.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="Also write vectors of molecules and atoms: .npz or .parquet.")
    ] = None,
    nearest: Annotated[bool, typer.Option("--nearest", help="Also name the nearest training molecule.")] = False,
    explain: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also draw what atoms and bonds add."),
    ] = None,
    pairs: Annotated[Path | None, typer.Option(help="Of links: table of source and target.")] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Of links: so many likeliest ones (100).")] = None,
    weights: Annotated[Which, typer.Option(help="Of which epoch.")] = "reported",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes to work with.")] = None,
    engine: Annotated[Engine, typer.Option(help="ray: on a Ray cluster.")] = "local",
) -> None:
    """Predict molecules or graphs with a trained network, or with several: then mean and standard deviation.

    Every row and column is kept; a molecule that cannot be read gets no value but a reason.

    Examples: lspe predict runs/logS molecules.csv -o predicted.csv
              lspe predict runs/logS --smiles CCO --smiles c1ccccc1
              lspe predict runs/logS --smiles CCO --explain why
              lspe predict runs/mine graphs.npz -o predicted.csv
              lspe predict runs/links graph.npz --top 20
              cat molecules.smi | lspe predict runs/a runs/b -
              lspe predict runs/logS molecules.parquet --engine ray -o predicted
    """
    from lspe.data.graphs.recognition import are_graphs
    from lspe.errors import UserError
    from lspe.predict import load
    from lspe.predict.tables import predict_table

    if explain is not None:
        from lspe.plots.explained import ExplanationFolder
    runs, table = (names, smiles) if smiles else (names[:-1], names[-1])
    if not runs or (os.path.isfile(Path(names[-1], "config.yaml")) and not smiles):
        raise UserError(
            f"no molecules to predict: behind the run ({names[-1]}) name a table, - for the standard input, "
            "or give --smiles"
        )
    predictor = load(runs, which=weights, device=device)
    if engine == "ray":
        for option, given in (("--smiles", smiles), ("--embeddings", embeddings), ("--explain", explain)):
            if given:
                raise UserError(f"a cluster predicts the rows of a table: leave {option} or --engine ray out")
        _on_ray(predictor, names[-1], output, smiles_column, nearest, workers)
        return
    why = None if explain is None else ExplanationFolder(predictor, explain)
    try:
        if isinstance(table, str) and are_graphs(table):
            if why is not None:
                raise UserError(f"--explain is for molecules, and {table} holds graphs: give SMILES")
            from lspe.predict.graph_files import predict_graph_files

            summary: object = predict_graph_files(predictor, table, output, embeddings=embeddings, pairs=pairs, top=top)
        elif pairs is not None or top is not None:
            raise UserError("--pairs and --top are for links of graphs, not for a table of molecules: leave them out")
        else:
            summary = predict_table(
                predictor,
                table,
                output,
                smiles_column=smiles_column,
                embeddings=embeddings,
                nearest=nearest,
                processes=workers,
                watch=None if why is None else why.add,
            )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    where = "" if output == "-" else f": {output}"
    typer.echo(f"{summary}{where}", err=True)
    if why is not None:
        typer.echo(why.finish(), err=True)


def _on_ray(
    predictor: "Predictor", table: str, output: str, smiles_column: str | None, nearest: bool, workers: int | None
) -> None:
    from lspe.cluster import predict_on_ray
    from lspe.errors import UserError

    if output == "-":
        raise UserError("a cluster writes a folder of Parquet files: name it with -o")
    summary = predict_on_ray(predictor, table, output, smiles_column=smiles_column, nearest=nearest, workers=workers)
    typer.echo(f"{summary}: {output}", err=True)
