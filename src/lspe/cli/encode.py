"""``lspe encode``."""

from pathlib import Path
from typing import Annotated

import typer

from lspe.cluster.words import Engine
from lspe.encodings.kinds import KINDS, find_kind

MOST_COLUMNS = 10_000


def encode(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE_OR_GRAPH_FILE",
            help="A table with a SMILES column (CSV, TSV, Parquet, - for the standard input), or one graph: "
            ".graphml, .gml, .edgelist, .edges or .json.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A .parquet or .npz file; with --engine ray a folder.")],
    encoding: Annotated[str, typer.Option(help=f"{', '.join(KINDS)}, or my_module:my_encoding.")] = "rwpe",
    k: Annotated[
        int, typer.Option("-k", min=1, max=MOST_COLUMNS, help="Number of columns: steps, eigenvectors, ...")
    ] = 16,
    smiles_column: Annotated[str | None, typer.Option(help="The column with the SMILES, if not found by name.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes to work with.")] = None,
    engine: Annotated[Engine, typer.Option(help="ray: on a Ray cluster.")] = "local",
) -> None:
    """Write the positional encodings of a table of molecules, or of a graph, to a file.

    Examples: lspe encode molecules.csv -o encodings.parquet -k 20
              lspe encode molecules.parquet --engine ray -o encodings
    """
    from lspe.cli.console import console

    if engine == "ray":
        from lspe.cluster import encode_on_ray

        written = encode_on_ray(source, out, encoding=encoding, k=k, smiles_column=smiles_column, workers=workers)
    else:
        from lspe.data.encoding_files import write_encodings

        written = write_encodings(source, out, encoding=encoding, k=k, smiles_column=smiles_column, processes=workers)
    print_ = console().print
    what = "nodes" if find_kind(encoding).level == "node" else "pairs of nodes"
    print_(f"{written.encoded:,} of {written.rows:,} graphs encoded, {written.nodes:,} {what}: {out}", highlight=False)
    if written.first_reason is not None:
        failed = written.rows - written.encoded
        print_(
            f"{failed:,} could not be read (see the reasons in {out}), the first: {written.first_reason}",
            style="yellow", highlight=False, markup=False,
        )  # fmt: skip
