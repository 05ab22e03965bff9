"""What the benchmarks share: interleaved medians, memory, how times grow, tables."""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def interleaved(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each, taken in turns so that a busy moment hits all of them; a first round is not counted."""
    for work in works:
        work()
    times = [[seconds(work) for work in works] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def peak_mb() -> float:
    """The most memory that this process has held so far, in MiB.

    From /proc: what ``getrusage`` gives begins with the memory of the process that started this one.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """b of the least-squares fit time = a · size^b."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


class Growth:
    """Times of one kind of work at growing sizes."""

    def __init__(self, sizes: Sequence[int], works: Iterable[Callable[[], object]], repeats: int) -> None:
        self.sizes = list(sizes)
        self.seconds = interleaved(list(works), repeats)

    @property
    def exponent(self) -> float:
        return exponent(self.sizes, self.seconds)

    def to_dict(self) -> dict[str, object]:
        return {"sizes": self.sizes, "ms": [1e3 * s for s in self.seconds], "exponent": self.exponent}


def plot_growth(growths: Mapping[str, Growth], path: Path) -> None:
    """One panel for each, on logarithmic axes, beside a line of slope one."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(growths), figsize=(3.2 * len(growths), 3), layout="constrained")
    for axes, (name, growth) in zip(np.atleast_1d(panels), growths.items(), strict=True):
        sizes, milliseconds = np.array(growth.sizes), 1e3 * np.array(growth.seconds)
        axes.loglog(sizes, milliseconds[-1] * sizes / sizes[-1], color="0.7", linestyle="--", label="linear")
        axes.loglog(sizes, milliseconds, color="#0072b2", marker="o", label=f"exponent {growth.exponent:.2f}")
        axes.set(xlabel=name, ylabel="milliseconds")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45, fontsize=8)
        axes.xaxis.minorticks_off()
        axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def show(title: str, columns: Mapping[str, Mapping[str, float]]) -> None:
    """A table with a column for each of ``columns`` and a line for each of their values."""
    table = Table(title=title)
    for name in ("", *columns):
        table.add_column(name, overflow="fold")
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        table.add_row(name, *(f"{column[name]:,.4g}" if name in column else "" for column in columns.values()))
    Console().print(table)
