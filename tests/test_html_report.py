"""The report of a run: everything in one file, and the worst molecules first."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import lspe
from lspe.html_report import losses
from lspe.predict.splits import SplitPredictions
from tests.small import write_table

SMALL = {"model.layers": 1, "model.hidden_dim": 8, "model.k": 4, "training.batch_size": 16}


pytestmark = pytest.mark.usefixtures("few_trees")


class Page(HTMLParser):
    """Counts elements and sees that each that begins also ends."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_a_run_has_a_report_that_needs_nothing_else(task: str, tmp_path: Path, session_cache: None) -> None:
    table = write_table(tmp_path / "<table>.csv", task)
    run = lspe.train(table, out=tmp_path / "run", members=2, epochs=1, settings=SMALL, threads=1)
    text = (run.path / "report.html").read_text()
    page = Page(text)
    assert not page.open
    assert page.seen.count("img") == 3
    assert page.seen.count("svg") == len((run.path / "predictions.csv").read_text().splitlines()) - 1
    for words in ("&lt;table&gt;.csv", "divided at random", "molecules of a new series will be predicted less well",
                  "test, forest", "test, together", "the networks count", "Predicted worst"):  # fmt: skip
        assert words in text
    assert set(re.findall(r"""(?:src|href)=["'](\w+):""", text)) == {"data"}
    assert "<script" not in text


@pytest.mark.parametrize(
    "division, words",
    [
        ({"split": "scaffold"}, "the scores are those of new series"),
        ({"split": "time", "split_column": "year"}, "the scores are those of molecules still to come"),
    ],
)
def test_what_the_division_of_a_single_network_tells_stands_there(
    division: dict[str, str], words: str, tmp_path: Path, session_cache: None
) -> None:
    table = write_table(tmp_path / "table.csv")
    header, *rows = table.read_text().splitlines()
    dated = [f"{row},{2000 + number * 7 % 20}" for number, row in enumerate(rows)]
    table.write_text("\n".join([f"{header},year", *dated]) + "\n")
    options = {"preset": "own/gatedgcn-lspe", "epochs": 1, "settings": SMALL, "threads": 1, **division}
    run = lspe.train(table, targets=["y"], out=tmp_path / "run", **options)
    assert words in (run.path / "report.html").read_text()


def test_the_worst_are_those_with_the_largest_errors() -> None:
    y = np.array([[0.0, 10.0], [1.0, np.nan], [2.0, 30.0]])
    predicted = np.array([[0.0, 10.0], [3.0, 0.0], [2.0, 31.0]])
    about = {"names": {"row": np.arange(3)}}
    found = losses(SplitPredictions("graph", "regression", ("a", "b"), (), y, predicted, **about))
    assert found.argmax() == 1
    assert found[0] == 0
    classes = np.array([[0.9, 0.1], [0.4, 0.6]])
    assert losses(
        SplitPredictions("graph", "multiclass", ("c",), ("x", "y"), np.array([0.0, 0.0]), classes, **about)
    ) == pytest.approx([0.1, 0.6])
