"""``lspe compare``."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from lspe.cli.encode import MOST_COLUMNS
from lspe.errors import UserError


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A SMILES, or a file with a graph: .graphml, .json, ...")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    label: Annotated[
        str | None,
        typer.Option(help="Also tell nodes apart by this attribute, 'element' for SMILES; else only bonds count."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=MOST_COLUMNS, help="Columns of the encodings to compare.")] = 16,
    picture: Annotated[Path | None, typer.Option(help="Draw both, too: a .png or .svg file.")] = None,
) -> None:
    """Try to tell two molecules or graphs apart: by random walks, by 1-WL, and by each encoding.

    Example: lspe compare C1CCC2CCCCC2C1 C1CCC(C1)C1CCCC1 --picture pair.png
    """
    from rich.table import Table

    from lspe.cli.console import console
    from lspe.files import check_picture
    from lspe.isomorphism import compare_encodings, in_words, random_walk_test, weisfeiler_lehman_test

    if picture is not None:
        check_picture(picture)
    graphs = [_read(one) for one in (first, second)]
    try:
        walk = random_walk_test(*graphs, label=label)
        refinement = weisfeiler_lehman_test(*graphs, label=label)
        encodings = compare_encodings(*graphs, k=k, label=label)
    except ValueError as error:
        raise UserError(str(error)) from None
    table = Table("test", "verdict", "first step that differs", box=None)
    for name, result in (("random walk", walk), ("1-WL", refinement)):
        table.add_row(name, result.verdict, "–" if result.step is None else str(result.step))
    console().print(table, in_words(walk, refinement), sep="\n", highlight=False)
    if 0 not in encodings.values():  # else they differ before the first column
        by_encoding = Table("encoding", "tells them apart", f"from which of {k} columns on", box=None)
        for kind, column in encodings.items():
            by_encoding.add_row(kind, "no" if column is None else "yes", "–" if column is None else str(column))
        console().print("", by_encoding, sep="\n", highlight=False)
    if picture is not None:
        _draw(graphs, [first, second], walk, refinement, picture)
        console().print(f"wrote {picture}", highlight=False)


def _read(text: str) -> Any:
    """The networkx graph of a graph file, or the SMILES itself if it is one."""
    from lspe.data.graphs.files import is_graph_file, read_graph_file
    from lspe.data.molecules.smiles import parse

    if is_graph_file(text) or os.path.isfile(text):
        return read_graph_file(text)
    parse(text)
    return text


def _draw(graphs: list[Any], titles: list[str], walk: Any, refinement: Any, picture: Path) -> None:
    from lspe.plots.drawable_graphs import sketch_graph, sketch_smiles
    from lspe.plots.node_kinds import comparison
    from lspe.plots.style import save

    first, second = (sketch_smiles(graph) if isinstance(graph, str) else sketch_graph(graph) for graph in graphs)
    names = [title if isinstance(graph, str) else Path(title).stem for graph, title in zip(graphs, titles, strict=True)]
    short = [name if len(name) <= 36 else f"{name[:35]}…" for name in names]
    figure = comparison(first, second, short, walk, refinement)
    save(figure, picture.with_suffix(""), "svg" if picture.suffix == ".svg" else "png")
