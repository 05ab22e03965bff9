"""How our pictures look: one size of type, few lines, colours that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from lspe.files import make_folder

Format = Literal["png", "svg", "both"]

# Okabe and Ito's palette, the light yellow last
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
INK = "#1b2733"
MUTED = "#6b7785"
FAINT = "#d9dee4"

_FONTS = ("Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans")


@contextmanager
def style() -> Iterator[None]:
    """Draw in our style; matplotlib's own settings come back afterwards."""
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.font_manager import fontManager

    here = {font.name for font in fontManager.ttflist}
    settings = {
        "font.family": "sans-serif",
        "font.sans-serif": [name for name in _FONTS if name in here] or ["DejaVu Sans"],
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 9,
        "axes.edgecolor": MUTED,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.labelcolor": INK,
        "axes.axisbelow": True,
        "axes.prop_cycle": cycler(color=list(OKABE_ITO)),
        "text.color": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "lines.linewidth": 1.4,
        "svg.hashsalt": "lspe",
        "savefig.bbox": "tight",
        "savefig.pad_inches": 0.06,
    }
    with mpl.rc_context(settings):
        yield


def save(figure: Any, stem: Path, form: Format = "both") -> list[Path]:
    """Write a figure as ``stem.png``, ``stem.svg`` or both; the same figure gives the same bytes."""
    make_folder(stem.parent)
    paths = []
    for suffix in ("png", "svg") if form == "both" else (form,):
        path = stem.with_name(f"{stem.name}.{suffix}")
        with style():
            figure.savefig(path, dpi=300, metadata={"Date": None} if suffix == "svg" else {"Software": None})
        paths.append(path)
    return paths


def kind_colours(count: int) -> list[Any]:
    """A colour for each of `count` kinds: Okabe and Ito's where they suffice, else steps along viridis."""
    if count <= len(OKABE_ITO) - 1:
        return list(OKABE_ITO[:count])
    from matplotlib import colormaps

    viridis = colormaps["viridis"]
    return [viridis(0.06 + 0.9 * step / (count - 1)) for step in range(count)]


def ink_on(colour: Any) -> str:
    """Dark or white, whichever is easier to read on `colour`."""
    from matplotlib.colors import to_rgb

    red, green, blue = (channel**2.2 for channel in to_rgb(colour))
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.28 else "white"


def panel_letters(axes: Sequence[Any]) -> None:
    """Mark panels a, b, … at their top left."""
    for letter, one in zip("abcdefgh", axes, strict=False):
        one.annotate(
            letter, (0, 1), (-26, 8), "axes fraction", textcoords="offset points", weight="bold", size=11, va="bottom"
        )
