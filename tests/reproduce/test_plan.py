"""What a campaign trains and in which order, and how it says how far it has come."""

from datetime import datetime
from pathlib import Path

import pytest

from lspe.config import ConfigError
from lspe.data import available, load_benchmark
from lspe.experiment.protocol import PAPER_SEEDS
from lspe.reproduce import Overview, look, make_plan
from lspe.reproduce.plan import Job


def names(jobs: tuple[Job, ...], folder: Path) -> list[str]:
    return [job.folder.relative_to(folder).as_posix() for job in jobs]


def test_every_row_has_one_seed_before_any_has_two(tmp_path: Path) -> None:
    plan = make_plan(["zinc", "zinc/pna"], tmp_path, seeds=2, epochs=60, protocol="fast")
    assert len(plan.jobs) == 30
    assert [job.experiment.seed for job in plan.jobs] == [PAPER_SEEDS[0]] * 15 + [PAPER_SEEDS[1]] * 15
    protocols = {
        (job.experiment.training.protocol.kind, job.experiment.training.protocol.max_epochs) for job in plan.jobs
    }
    assert protocols == {("fast", 60)}


def test_folds_are_jobs_of_their_own(tmp_path: Path) -> None:
    plan = make_plan(["csl"], tmp_path)
    assert names(plan.jobs, tmp_path)[4:6] == ["csl/gatedgcn/seed41/fold4", "csl/gatedgcn-lspe/seed41/fold0"]
    assert [job.experiment.fold for job in plan.with_folds_of(plan.jobs[7])] == [0, 1, 2, 3, 4]
    assert len(make_plan(["imdb-multi"], tmp_path).jobs) == 2 * 4 * 10


@pytest.mark.parametrize("name", ["csl", "nci"])
def test_the_catalogue_knows_how_many_folds_a_set_has(name: str) -> None:
    assert len(load_benchmark(name).folds) == available()[name].folds


@pytest.mark.parametrize("name", ["imdb-binary", "imdb-multi", "zinc"])
def test_the_catalogue_knows_the_folds_of_shared_sets(name: str, shared_data: Path) -> None:
    assert len(load_benchmark(name, shared_data).folds) == available()[name].folds


def test_only_some_rows(tmp_path: Path) -> None:
    plan = make_plan(["zinc"], tmp_path, only=["zinc/san*", "zinc/pna"], seeds=1)
    assert names(plan.jobs, tmp_path) == ["zinc/pna/seed41", "zinc/san/seed41", "zinc/san-lspe/seed41"]
    with pytest.raises(ConfigError, match="unknown row 'zinc/sam': did you mean 'zinc/san'"):
        make_plan(["zinc"], tmp_path, only=["zinc/pna", "zinc/sam"])


def test_the_end_follows_from_the_epochs_that_were_measured(tmp_path: Path) -> None:
    plan = make_plan(["zinc"], tmp_path, only=["zinc/pna*"], seeds=1, epochs=10, protocol="fast")
    assert look(plan.jobs) == Overview(done=0, running=0, left=2, seconds=None)
    first = plan.jobs[0]
    first.folder.mkdir(parents=True)
    (first.folder / "config.yaml").write_text(first.experiment.to_yaml(first.folder))
    rows = ["epoch,lr,train_loss,train_mae,val_loss,val_mae,seconds"]
    rows += [f"{epoch},0.1,1,1,1,1,{seconds}" for epoch, seconds in enumerate((20, 40, 7200), 1)]  # stopped in between
    (first.folder / "metrics.csv").write_text("\n".join(rows) + "\n")
    overview = look(plan.jobs)
    assert (overview.done, overview.running, overview.left) == (0, 0, 2)
    assert overview.seconds == pytest.approx((7 + 10) * 40.0)
    assert overview.in_words(datetime(2026, 1, 5, 23, 55)) == "0 of 2 done, 0 running, 2 left: 11 min, until Tue 00:06"


def test_a_protocol_that_may_end_earlier_gives_an_upper_bound(tmp_path: Path) -> None:
    assert look(make_plan(["zinc/pna"], tmp_path, seeds=1).jobs).at_most
    text = Overview(1, 2, 3, 7200.0, at_most=True).in_words(datetime(2026, 1, 5, 10, 0))
    assert text == "1 of 6 done, 2 running, 3 left: at most 2.0 h, until Mon 12:00"
