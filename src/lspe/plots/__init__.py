"""The paper's figures, drawn from our own data.

>>> from lspe.plots import draw
>>> draw("distinct", out="figures")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lspe.config import unknown_name
from lspe.errors import UserError
from lspe.plots.style import Format, save

__all__ = ["FIGURES", "draw"]

FIGURES = {
    "three-regular": "three kinds of nodes in a 3-regular graph, and their random walk encodings",
    "csl": "CSL(11, 2) and CSL(11, 3), and their random walk encodings",
    "decalin": "decalin and bicyclopentyl, and their random walk encodings",
    "distinct": "distinct encodings against nodes, Laplacian and random walk, on ZINC's validation graphs",
    "molecules": "four of ZINC's validation molecules, coloured by distinct random walk encodings",
    "k-study": "test score against k, from the table of `lspe reproduce k-study`",
    "curves": "loss, score and learning rate of one or several runs",
}
"""What can be drawn, in a line each. The last two need a table or run folders as sources."""

_FROM_SOURCES = ("k-study", "curves")


def draw(
    name: str,
    sources: Sequence[str | os.PathLike[str]] = (),
    *,
    out: str | os.PathLike[str] = "figures",
    form: Format = "both",
    root: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Draw one of :data:`FIGURES` (or ``all`` that need no sources) and give back the files written.

    Args:
        name: Of the figure.
        sources: The table of ``k-study``, the run folders of ``curves``.
        out: The folder to write to.
        form: ``png``, ``svg`` or ``both``.
        root: Where ZINC is looked for, see :func:`lspe.data.load_benchmark`.

    """
    if name == "all":
        names = [one for one in FIGURES if one not in _FROM_SOURCES]
        return [path for one in names for path in draw(one, out=out, form=form, root=root)]
    if name not in FIGURES:
        raise UserError(unknown_name("figure", name, ["all", *FIGURES]))
    if name in _FROM_SOURCES and not sources:
        raise UserError(f"{name} needs a source: {_SOURCE_HINTS[name]}")
    if sources and name not in _FROM_SOURCES:
        raise UserError(f"{name} takes no source, got {', '.join(map(str, sources))}")
    return save(_figure(name, sources, root), Path(out) / name, form)


_SOURCE_HINTS = {
    "k-study": "lspe plot k-study k-study.csv (a table that lspe reproduce k-study writes)",
    "curves": "lspe plot curves RUN... (run folders that lspe train writes)",
}


def _figure(name: str, sources: Sequence[str | os.PathLike[str]], root: str | os.PathLike[str] | None) -> Any:
    if name in ("three-regular", "csl", "decalin"):
        from lspe.plots import node_kinds

        draw_example: dict[str, Callable[[], Any]] = {
            "three-regular": node_kinds.three_regular,
            "csl": node_kinds.skip_links,
            "decalin": node_kinds.decalin,
        }
        return draw_example[name]()
    if name == "k-study":
        from lspe.plots.scores import read_k_study, score_against_k

        if len(sources) > 1:
            raise UserError(f"k-study takes one table, got {len(sources)}")
        return score_against_k(read_k_study(sources[0]))
    if name == "curves":
        from lspe.plots.scores import training_curves
        from lspe.training.run import open_runs

        return training_curves([run for source in sources for run in open_runs(Path(source))])

    from lspe.data import load_benchmark

    data = load_benchmark("zinc", root)
    if name == "distinct":
        from lspe.plots.distinct import count_distinct, distinct_encodings

        return distinct_encodings(*count_distinct(data.split("val")))
    from lspe.data.benchmarks.zinc import VOCABULARY
    from lspe.plots.molecules import PAPER_MOLECULES, colour_molecules, coloured_molecules

    return coloured_molecules(colour_molecules(data.split("val"), VOCABULARY, PAPER_MOLECULES))
