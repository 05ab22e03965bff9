"""What is shown while a network trains."""

import pytest

from lspe.training.evaluation import Evaluation
from lspe.training.module import EpochResult
from lspe.training.progress import Bar, Lines, clock


def result(epoch: int) -> EpochResult:
    train, val = Evaluation(0.5, {"mae": 0.4}), Evaluation(0.6, {"mae": 0.25})
    return EpochResult(epoch, 1e-3, train, val, 60.0, 1234.0)


def test_lines_are_few_and_the_last_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(every=1000)
    lines.begin("zinc/gatedgcn", "mae", 0, 4, 10)
    for epoch in (1, 2, 3, 4):
        lines.step()
        lines.epoch(result(epoch))
    lines.end()
    assert capsys.readouterr().out.splitlines() == [
        "zinc/gatedgcn",
        "epoch 1/4  loss 0.5000  val mae 0.2500  lr 1.0e-03  1,234 graphs/s  60.0 s  3 min left",
        "epoch 4/4  loss 0.5000  val mae 0.2500  lr 1.0e-03  1,234 graphs/s  60.0 s  0 s left",
    ]


def test_the_bar_shows_epochs_score_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar()
    bar.begin("zinc/gatedgcn", "mae", 2, 4, 10)
    for _ in range(10):
        bar.step()
    bar.epoch(result(3))
    bar.note("something")
    bar.end()
    shown = capsys.readouterr().out
    assert "something" in shown
    assert "3/4" in shown
    for word in ("mae 0.2500", "1.0e-03", "1,234", "min left"):
        assert all(part in shown for part in word.split())


def test_how_all_trainings_stand_is_shown_beside_one(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    lines.begin("zinc/gatedgcn", "mae", 0, 4, 10)
    for done in (1, 2):
        lines.status(done, 15, f"{done} of 15 done")
    assert capsys.readouterr().out.splitlines() == ["zinc/gatedgcn", "1 of 15 done"]  # the next line in some minutes
    bar = Bar()
    bar.begin("zinc/gatedgcn", "mae", 2, 4, 10)
    bar.status(1, 15, "14 left")
    bar.status(2, 15, "13 left")
    bar.end()
    shown = capsys.readouterr().out
    assert "2/15" in shown
    assert "13 left" in shown


def test_times_are_said_as_people_say_them() -> None:
    assert [clock(seconds) for seconds in (5, 130, 9000)] == ["5 s", "2 min", "2.5 h"]
