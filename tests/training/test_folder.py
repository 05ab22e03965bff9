"""A run folder belongs to one training at a time, and one that came to nothing is in nobody's way."""

import json
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from lspe.data import GraphData
from lspe.errors import UserError
from lspe.experiment import Experiment, override
from lspe.training import RunError, fit, train
from lspe.training.module import TrainingModule
from lspe.training.progress import Progress
from tests.small import without_times

Prepared = Callable[..., tuple[Experiment, GraphData]]
OPTIONS: dict[str, Any] = {"device": "cpu", "threads": 1, "checkpoint_every": 0.0}


@pytest.fixture(scope="module")
def prepared_run(prepared: Prepared) -> tuple[Experiment, GraphData]:
    return prepared("regression", "training.protocol.max_epochs=3")


class WaitsAfterAnEpoch(Progress):
    def __init__(self, begun: Any) -> None:
        self.begun = begun

    def epoch(self, result: Any) -> None:
        self.begun.set()
        time.sleep(300)


@pytest.fixture
def busy(prepared_run: tuple[Experiment, GraphData], tmp_path: Path) -> Iterator[Callable[..., BaseProcess]]:
    """Start a process that trains into ``tmp_path / "run"`` and stays there after its first epoch."""
    children = []

    def start(work: Callable[..., Any], experiment: Experiment) -> BaseProcess:
        fork = multiprocessing.get_context("fork")
        begun = fork.Event()
        arguments = (experiment, prepared_run[1], tmp_path / "run")
        options = {**OPTIONS, "progress": WaitsAfterAnEpoch(begun)}
        child = fork.Process(target=work, args=arguments, kwargs=options)
        child.start()
        children.append(child)
        assert begun.wait(240)
        return child

    yield start
    for child in children:
        child.kill()
        child.join()


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_is_refused_while_the_first_one_runs(
    busy: Callable[..., BaseProcess], prepared_run: tuple[Experiment, GraphData], tmp_path: Path, resume: bool
) -> None:
    experiment, data = prepared_run
    folder = tmp_path / "run"
    child = busy(fit, experiment)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(RunError, match=rf"{folder}: another process \({child.pid} on {socket.gethostname()}\)"):
        fit(experiment, data, folder, resume=resume, **OPTIONS)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert child.is_alive()


def test_the_lock_of_a_killed_process_is_in_nobodys_way(
    busy: Callable[..., BaseProcess], prepared_run: tuple[Experiment, GraphData], tmp_path: Path
) -> None:
    experiment, data = prepared_run
    child = busy(fit, experiment)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    run = fit(experiment, data, tmp_path / "run", resume=True, **OPTIONS)
    whole = fit(experiment, data, tmp_path / "whole", **OPTIONS)
    assert without_times(run.history) == without_times(whole.history)
    names = {"config.yaml", "interface.json", "metrics.csv", "last.ckpt", "best.ckpt", "summary.json"}
    assert {path.name for path in run.path.iterdir()} == {path.name for path in whole.path.iterdir()} == names


def test_several_runs_are_held_together(
    busy: Callable[..., BaseProcess], prepared_run: tuple[Experiment, GraphData], tmp_path: Path
) -> None:
    """The second command is refused as a whole, whichever part the first one is at."""
    experiment, data = prepared_run
    several = override(experiment, ["seeds=[1, 2]"])
    busy(train, several)
    for part in (several, override(experiment, ["seeds=[3, 4]"])):
        with pytest.raises(RunError, match=f"{tmp_path / 'run'}: another process"):
            train(part, data, tmp_path / "run", resume=True, **OPTIONS)
    assert not (tmp_path / "run" / "seed3").exists()


def test_a_holder_that_nobody_knows_is_not_named(
    busy: Callable[..., BaseProcess], prepared_run: tuple[Experiment, GraphData], tmp_path: Path
) -> None:
    experiment, data = prepared_run
    busy(fit, experiment)
    (tmp_path / "run" / ".training.json").write_text("half a fi")
    with pytest.raises(RunError, match="another process is training into this folder"):
        fit(experiment, data, tmp_path / "run", **OPTIONS)


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_leaves_no_folder(
    prepared_run: tuple[Experiment, GraphData], tmp_path: Path, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    experiment, data = prepared_run
    with pytest.raises(UserError, match=f"there is no device '{device}' here; there is: cpu"):
        fit(experiment, data, tmp_path / "run", device=device)
    assert list(tmp_path.iterdir()) == []


def test_more_devices_than_there_are_leave_no_folder(
    prepared_run: tuple[Experiment, GraphData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(UserError, match="not 2 devices 'cuda' here, but 1; choose --devices 1"):
        fit(*prepared_run, tmp_path / "run", device="cuda", devices=2)
    assert list(tmp_path.iterdir()) == []


def test_a_training_that_cannot_begin_leaves_no_folder(
    prepared_run: tuple[Experiment, GraphData], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, data = prepared_run

    def fails(*_: Any) -> None:
        raise UserError("no")

    monkeypatch.setattr("lspe.training.fitting.build_network", fails)
    with pytest.raises(UserError, match="no"):
        fit(experiment, data, tmp_path / "run", **OPTIONS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seeds", ["seeds=[]", "seeds=[1, 2]"])
def test_a_folder_without_a_whole_epoch_may_be_used_again(
    prepared_run: tuple[Experiment, GraphData], tmp_path: Path, seeds: str
) -> None:
    experiment, data = prepared_run
    experiment = override(experiment, [seeds])
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingModule, "training_step", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(experiment, data, folder, **OPTIONS)
    other = override(experiment, ["training.protocol.max_epochs=2"])
    run = train(other, data, folder, **OPTIONS)
    assert run.config.training.protocol.max_epochs == 2
    assert json.loads((folder / "summary.json").read_text())["metric"] == "mae"
    assert (folder / "notes.txt").read_text() == "mine"
    with pytest.raises(RunError, match="already holds a run"):
        train(other, data, folder, **OPTIONS)


def test_a_config_of_ones_own_is_not_written_over(prepared_run: tuple[Experiment, GraphData], tmp_path: Path) -> None:
    experiment, data = prepared_run
    own = f"# what I try next\n{experiment.to_yaml(tmp_path)}"
    (tmp_path / "config.yaml").write_text(own)
    with pytest.raises(RunError, match=r"has a config\.yaml that no training wrote"):
        fit(experiment, data, tmp_path, **OPTIONS)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"config.yaml": own}


def test_what_cannot_be_a_folder_is_said(prepared_run: tuple[Experiment, GraphData], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("file", "file/below", "loop", "loop/below", "long" * 100):
        with pytest.raises(RunError, match=r"cannot be used as a run folder: .*; choose another --out"):
            fit(*prepared_run, tmp_path / name, **OPTIONS)
    assert (tmp_path / "file").read_text() == "mine"
