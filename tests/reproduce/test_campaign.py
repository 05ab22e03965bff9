"""Processes share the trainings of a campaign; one that is killed loses the epoch in flight, and nothing else."""

import multiprocessing
import random
import time
from collections.abc import Iterator
from itertools import groupby
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch

from lspe.reproduce import campaign, collect, look, make_plan, reproduce, show
from lspe.reproduce.results import as_text
from lspe.training import Run
from lspe.training.lock import hold, is_held
from tests.reproduce import killable
from tests.reproduce.killable import JOBS, NAME, ROWS, Diary

OPTIONS = {"device": "cpu", "threads": 1}
PATIENCE = 600.0


@pytest.fixture(autouse=True, scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    values = {
        "LSPE_CACHE": str(tmp_path_factory.mktemp("cache")),
        "LSPE_DATA": str(tmp_path_factory.mktemp("data")),
        "OMP_NUM_THREADS": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield values
    torch.set_num_threads(1)


def lines(path: Path) -> list[tuple[str, int, str, int]]:
    """Run, process, what, epoch."""
    if not path.exists():
        return []
    words = [line.split() for line in path.read_text().splitlines()]
    return [(run, int(process), what, int(epoch)) for run, process, what, epoch in words]


def wait_for_lines(path: Path, count: int, worker: BaseProcess) -> None:
    end = time.monotonic() + PATIENCE
    while len(lines(path)) < count and worker.is_alive():
        assert time.monotonic() < end, f"no {count} lines in {PATIENCE} s"
        time.sleep(0.01)


@pytest.mark.parametrize(
    "kills, epochs", [pytest.param(4, 6, marks=pytest.mark.slow), pytest.param(20, 20, marks=pytest.mark.rare)]
)
def test_killed_at_any_moment_it_loses_the_epoch_in_flight_and_trains_nothing_twice(
    kills: int, epochs: int, tmp_path: Path, environment: dict[str, str]
) -> None:
    context = multiprocessing.get_context("forkserver")  # which imports once, and has no threads when it forks
    context.set_forkserver_preload(["tests.reproduce.killable"])
    out, diary = tmp_path / "out", tmp_path / "diary"
    moments = random.Random(kills)

    def start() -> BaseProcess:
        worker = context.Process(target=killable.work, args=(out, diary, epochs, environment))
        worker.start()
        return worker

    workers = [start(), start()]
    for _ in range(kills):
        number = moments.randrange(2)
        wait_for_lines(diary, len(lines(diary)) + moments.randrange(6), workers[number])
        time.sleep(moments.random() * 0.1)
        assert workers[number].is_alive(), "all was trained before the last kill: give it more epochs"
        workers[number].kill()
        workers[number].join()
        workers[number] = start()
    for worker in workers:
        worker.join(PATIENCE)
        assert worker.exitcode == 0

    by_run: dict[str, list[tuple[int, str, int]]] = {}
    for run, process, what, epoch in lines(diary):
        by_run.setdefault(run, []).append((process, what, epoch))
    assert len(by_run) == JOBS
    for run, entries in by_run.items():
        processes = [process for process, _ in groupby(process for process, _, _ in entries)]
        assert len(set(processes)) == len(processes), f"{run}: two processes at the same time"
        saved = 0
        for _, what, epoch in entries:
            if what == "begun":  # what was saved is kept; one epoch more if the process died before it could note it
                assert epoch in (saved, saved + 1), f"{run}: {saved} epochs were saved, it went on after {epoch}"
            else:
                assert epoch == saved + 1, f"{run}: after {saved} saved epochs came {epoch}"
            saved = epoch
        assert saved == epochs
        folder = out / run
        assert [row["epoch"] for row in Run.open(folder).history] == list(range(1, epochs + 1))
        assert not [path.name for path in folder.glob(".*")]
    (tiny,) = show([NAME], out, only=["csl/gatedgcn-lspe*"])[NAME]
    assert (tiny.runs, tiny.epochs, tiny.seeds) == (5, epochs, "41")
    assert look(make_plan([NAME], out, seeds=1).jobs).in_words() == "10 of 10 done, 0 running, 0 left"


def test_a_run_that_another_process_holds_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be killed; then its work is taken over."""
    plan = make_plan([NAME], tmp_path, only=["csl/gatedgcn-layers*"], seeds=1, epochs=1)
    first = plan.jobs[0]
    others_are_trained = False
    held = hold(first.folder)
    held.__enter__()

    def sleep(seconds: float) -> None:
        nonlocal others_are_trained
        others_are_trained = [job.state for job in plan.jobs] == ["running", *["done"] * 4]
        held.__exit__(None, None, None)

    monkeypatch.setattr(campaign.time, "sleep", sleep)
    reproduce(NAME, tmp_path, only=["csl/gatedgcn-layers*"], seeds=1, epochs=1, **OPTIONS)
    assert others_are_trained
    assert [job.state for job in plan.jobs] == ["done"] * 5
    assert Run.open(first.folder.parent).summary["parts"] == [f"fold{fold}" for fold in range(5)]


def test_the_file_that_a_killed_process_left_holds_nothing(tmp_path: Path) -> None:
    with hold(tmp_path):
        assert is_held(tmp_path)
        left = (tmp_path / ".training.json").read_text()
    assert not is_held(tmp_path)
    (tmp_path / ".training.json").write_text(left)
    assert not is_held(tmp_path)


def test_it_stops_after_the_epoch_in_which_time_is_over_and_goes_on_later(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    options = {"only": ["csl/gatedgcn-lspe*"], "seeds": 1, "epochs": 3, "callbacks": [Diary(diary)], **OPTIONS}
    (row,) = reproduce(NAME, tmp_path, hours=1e-9, **options)[NAME]
    assert lines(diary) == [], "time was over before anything began"
    (row,) = reproduce(NAME, tmp_path, hours=0.2 / 3600, **options)[NAME]
    assert row.runs < 5
    before = lines(diary)
    assert before
    (row,) = reproduce(NAME, tmp_path, **options)[NAME]
    assert (row.runs, row.begun, row.epochs) == (5, 0, 3)
    after = [(run, epoch) for run, _, what, epoch in lines(diary) if what == "saved"]
    assert len(after) == len(set(after)) == 15


def test_what_is_partly_trained_is_shown_and_marked(tmp_path: Path) -> None:
    row = ROWS[1]
    folder = tmp_path / "out"
    reproduce(NAME, folder, only=[row.name], seeds=1, epochs=2, results=tmp_path / "results", **OPTIONS)
    kept = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert kept == {"config.yaml", "metrics.csv", "summary.json", "tiny.csv", "tiny.md"}
    assert collect(row, tmp_path / "results" / row.name) == collect(row, folder / row.name)

    seed = tmp_path / "results" / row.name / "seed41"
    runs = [Run.open(seed / f"fold{fold}") for fold in range(5)]
    for run in runs[1:]:
        (run.path / "summary.json").unlink()
    mixed = collect(row, seed.parent)
    assert (mixed.runs, mixed.begun, mixed.test) == (1, 4, runs[0].summary["reported"]["test"]["accuracy"])
    assert as_text([mixed])[1][2] == "1, 4 at epoch 2 of 2"
    (runs[0].path / "summary.json").unlink()
    begun = collect(row, seed.parent)
    last = [run.history[-1]["val_accuracy"] for run in runs]
    assert (begun.runs, begun.begun, begun.test) == (0, 5, None)
    assert begun.val == pytest.approx(sum(map(float, last)) / 5)  # type: ignore[arg-type]
    assert "5 at epoch 2 of 2" in as_text([begun])[1]
    assert show([], tmp_path / "results")["csl"][0].begun == 5


def test_what_began_under_another_protocol_is_said_and_not_mixed(tmp_path: Path) -> None:
    options = {"only": ["csl/gatedgcn-lspe*"], "seeds": 1, **OPTIONS}
    reproduce(NAME, tmp_path, protocol="fast", epochs=1, **options)
    (row,) = reproduce(NAME, tmp_path, protocol="fast", epochs=2, **options)[NAME]
    assert "was begun with training.protocol.max_epochs = 1, not 2" in row.problem
    assert (row.runs, row.epochs) == (5, 1)


def test_more_epochs_go_on_where_the_protocol_lets_them(tmp_path: Path) -> None:
    options = {"only": ["csl/gatedgcn-lspe*"], "seeds": 1, "protocol": "paper", **OPTIONS}
    for epochs in (1, 2):
        (row,) = reproduce(NAME, tmp_path, epochs=epochs, **options)[NAME]
        assert (row.runs, row.epochs, row.problem) == (5, epochs, "")
        together = Run.open(tmp_path / ROWS[1].name / "seed41")
        assert (together.config.training.protocol.max_epochs, together.config.fold) == (epochs, None)
        assert together.summary["epochs"]["mean"] == epochs
