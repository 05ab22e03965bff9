"""A run that was killed, interrupted or out of room goes on as if nothing had happened, to the last bit."""

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lspe.data import GraphData
from lspe.experiment import Experiment, override
from lspe.training import Interrupted, Run, checkpoint, fit
from lspe.training.checkpoint import CheckpointError
from lspe.training.module import EpochResult, TrainingModule
from lspe.training.progress import Progress
from tests.small import without_times

Prepared = Callable[..., tuple[Experiment, GraphData]]
EPOCHS = 8
PROTOCOLS = {
    "fast": f"training.protocol={{kind: fast, lr: 0.005, ema: 0.9, max_epochs: {EPOCHS}}}",
    "paper": f"training.protocol={{kind: paper, lr: 0.01, patience: 0, max_epochs: {EPOCHS}, report: best}}",
}
RANDOM = ("model.dropout=0.3", "model.encoding=lappe")  # dropout and random signs


def train(experiment: Experiment, data: GraphData, folder: Path, **options: Any) -> Run:
    return fit(experiment, data, folder, device="cpu", threads=1, checkpoint_every=0.0, **options)


class Until(Progress):
    """Does something after so many epochs and steps."""

    def __init__(self, epoch: int, step: int, act: Callable[[], None]) -> None:
        self.left, self.steps, self.act = epoch, step, act

    def epoch(self, result: EpochResult) -> None:
        self.left -= 1

    def step(self) -> None:
        if self.left == 0:
            self.steps -= 1
            if self.steps == 0:
                self.act()


@pytest.fixture(scope="module", params=PROTOCOLS)
def whole(
    request: pytest.FixtureRequest, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Run, Experiment, GraphData]:
    """An uninterrupted run."""
    experiment, data = prepared("binary", PROTOCOLS[request.param], *RANDOM)
    return train(experiment, data, tmp_path_factory.mktemp("whole") / "run"), experiment, data


def assert_same(one: Run, other: Run) -> None:
    for which in ("last", "best"):
        ours, theirs = one.checkpoint(which), other.checkpoint(which)
        for part in ("network", "average", "optimizer", "plateau"):
            assert_equal(ours[part], theirs[part], f"{which}: {part}")
    assert without_times(one.history) == without_times(other.history)
    for which in ("last", "best", "reported"):
        assert one.summary[which] == other.summary[which]


def assert_equal(one: Any, other: Any, place: str) -> None:
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other), place
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            assert_equal(one[key], other[key], f"{place}.{key}")
    else:
        assert one == other, place


@pytest.mark.parametrize("epoch, step", [(0, 2), (3, 1), (5, 4)])
def test_killed_at_any_moment(whole: tuple[Run, Experiment, GraphData], tmp_path: Path, epoch: int, step: int) -> None:
    run, experiment, data = whole
    folder = tmp_path / "run"

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = multiprocessing.get_context("fork").Process(
        target=train, args=(experiment, data, folder), kwargs={"progress": Until(epoch, step, die)}
    )
    child.start()
    child.join(240)
    assert child.exitcode == -signal.SIGKILL
    assert not (folder / "summary.json").exists()
    assert_same(train(experiment, data, folder, resume=True), run)


def test_killed_while_a_checkpoint_is_written(whole: tuple[Run, Experiment, GraphData], tmp_path: Path) -> None:
    run, experiment, data = whole
    folder = tmp_path / "run"

    def killed_in_save() -> None:
        written = 0
        save = torch.save

        def half(state: Any, file: Any) -> None:
            nonlocal written
            written += 1
            if written == 5:
                file.write(b"half a checkpoint")
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            save(state, file)

        torch.save = half
        train(experiment, data, folder)

    child = multiprocessing.get_context("fork").Process(target=killed_in_save)
    child.start()
    child.join(240)
    assert child.exitcode == -signal.SIGKILL
    assert_same(train(experiment, data, folder, resume=True), run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_preemption_save_the_last_whole_epoch_and_say_how_to_go_on(
    whole: tuple[Run, Experiment, GraphData], tmp_path: Path, number: int
) -> None:
    run, experiment, data = whole
    folder = tmp_path / "run"
    handler = signal.getsignal(number)
    with pytest.raises(Interrupted, match=rf"lspe train {folder} --resume"):
        fit(
            experiment,
            data,
            folder,
            device="cpu",
            threads=1,
            checkpoint_every=1e9,
            progress=Until(4, 2, lambda: signal.raise_signal(number)),
        )
    assert signal.getsignal(number) == handler
    assert checkpoint.load(folder / "last.ckpt")["epoch"] == 4
    assert_same(train(experiment, data, folder, resume=True), run)


def test_elapsed_time_is_counted_over_interruptions(whole: tuple[Run, Experiment, GraphData], tmp_path: Path) -> None:
    _, experiment, data = whole
    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(experiment, data, folder, progress=Until(2, 1, lambda: signal.raise_signal(signal.SIGINT)))
    path = folder / "last.ckpt"
    state = checkpoint.load(path)
    assert 0 < state["seconds"] < 60
    limited = override(experiment, ["training.protocol.max_hours=1"])
    checkpoint.save(path, {key: value for key, value in state.items() if key != "format"} | {"seconds": 3600.0})
    (folder / "config.yaml").write_text(
        (folder / "config.yaml").read_text().replace("max_hours: null", "max_hours: 1.0")
    )
    run = train(limited, data, folder, resume=True)
    assert (run.summary["epochs"], run.summary["stopped"]) == (3, "1 hours had passed")


def test_no_room_for_a_checkpoint_stops_in_words_and_keeps_the_last_good_one(
    whole: tuple[Run, Experiment, GraphData], tmp_path: Path
) -> None:
    run, experiment, data = whole
    folder = tmp_path / "run"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))

    try:
        with pytest.raises(CheckpointError, match=r"could not be written .*is intact.*--resume"):
            train(experiment, data, folder, progress=Until(3, 1, no_room))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert checkpoint.load(folder / "last.ckpt")["epoch"] == 3
    assert_same(train(experiment, data, folder, resume=True), run)


def test_no_room_for_a_row_of_metrics_stops_in_words(whole: tuple[Run, Experiment, GraphData], tmp_path: Path) -> None:
    run, experiment, data = whole
    folder = tmp_path / "run"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, ((folder / "metrics.csv").stat().st_size + 8, limits[1]))

    try:
        with pytest.raises(ValueError, match=r"could not be written .*--resume"):
            fit(experiment, data, folder, device="cpu", threads=1, checkpoint_every=1e9, progress=Until(3, 1, no_room))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_same(train(experiment, data, folder, resume=True), run)


def test_a_damaged_checkpoint_is_named(whole: tuple[Run, Experiment, GraphData], tmp_path: Path) -> None:
    _, experiment, data = whole
    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(experiment, data, folder, progress=Until(2, 1, lambda: signal.raise_signal(signal.SIGINT)))
    (folder / "last.ckpt").write_bytes((folder / "last.ckpt").read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"last\.ckpt is damaged .*copy it over last\.ckpt"):
        train(experiment, data, folder, resume=True)


def test_a_number_lost_in_training_leaves_the_checkpoint_of_the_epoch_before(
    whole: tuple[Run, Experiment, GraphData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, experiment, data = whole
    folder = tmp_path / "run"
    step = TrainingModule.learn_from

    def poisoned(self: TrainingModule, batch: Any, index: int) -> None:
        if (self.epoch, index) == (3, 2):
            next(self.network.parameters()).data.fill_(float("nan"))
        step(self, batch, index)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingModule, "learn_from", poisoned)
        with pytest.raises(ValueError, match="not a number in epoch 4, batch 3"):
            train(experiment, data, folder)
    assert_same(train(experiment, data, folder, resume=True), run)


def test_other_threads_are_mentioned(whole: tuple[Run, Experiment, GraphData], tmp_path: Path) -> None:
    _, experiment, data = whole
    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(experiment, data, folder, progress=Until(EPOCHS - 1, 1, lambda: signal.raise_signal(signal.SIGINT)))
    notes: list[str] = []

    class Notes(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    fit(experiment, data, folder, device="cpu", threads=2, resume=True, progress=Notes())
    assert notes == ["the run was begun with threads 1 and goes on with 2: last digits may differ"]


def test_the_papers_limits_may_be_moved(prepared: Prepared, tmp_path: Path) -> None:
    experiment, data = prepared("regression", PROTOCOLS["paper"], "training.protocol.patience=50")
    longer = override(experiment, [f"training.protocol.max_epochs={EPOCHS + 2}"])
    train(experiment, data, tmp_path / "run")
    run = train(longer, data, tmp_path / "run", resume=True)
    assert_same(run, train(longer, data, tmp_path / "at once"))
    assert run.config.training.protocol.max_epochs == run.summary["epochs"] == EPOCHS + 2
