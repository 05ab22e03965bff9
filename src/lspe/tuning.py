"""Search for a better network and training for one's own table, within a budget of minutes.

Optuna proposes configurations (tree-structured Parzen estimators) and ends those whose validation curve stays above the
median of the others. Every trial is written down as it goes, so that a search that was ended at any moment goes on. The
test part is never looked at.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lspe.errors import UserError
from lspe.experiment import Experiment, load_data, override
from lspe.experiment.protocol import FEWEST_EPOCHS
from lspe.files import make_folder, write_table, write_text
from lspe.training.fitting import fit
from lspe.training.module import EpochResult
from lspe.training.progress import Progress

Trial: TypeAlias = Any
Study: TypeAlias = Any
"""Optuna's, which is an extra and is loaded only here."""

BEST = "best.yaml"
TRIALS = "trials.csv"
JOURNAL = "study.journal"
HISTORY = "history.png"
IMPORTANCE = "importance.png"
_STUDY = "lspe"
_AS_IT_IS = "as it is"
_WARM_UP = FEWEST_EPOCHS // 4
"""Epochs that each trial may take, whatever its curve."""

_FEWEST_FOR_IMPORTANCE = 8
"""Trials with settings of their own below which it cannot be said what matters."""

SPACE: dict[str, Callable[[Trial, str], Any]] = {
    "model.layers": lambda trial, name: trial.suggest_int(name, 2, 8),
    "model.hidden_dim": lambda trial, name: trial.suggest_categorical(name, [32, 64, 96, 128]),
    "model.dropout": lambda trial, name: trial.suggest_float(name, 0.0, 0.4, step=0.1),
    "model.readout": lambda trial, name: trial.suggest_categorical(name, ["mean", "sum", "mean+sum"]),
    "model.descriptors": lambda trial, name: trial.suggest_categorical(name, ["rdkit", "morgan", "none"]),
    "training.batch_size": lambda trial, name: trial.suggest_categorical(name, [16, 32, 64]),
    "training.protocol.lr": lambda trial, name: round(trial.suggest_float(name, 3e-4, 5e-3, log=True), 6),
    "training.protocol.weight_decay": lambda trial, name: round(trial.suggest_float(name, 1e-6, 1e-2, log=True), 8),
}
"""What is searched: places of an experiment, and where their values come from."""


@dataclass(frozen=True)
class Tuned:
    """What a search found: the lowest validation loss, its settings, and the experiment with them as a file."""

    path: Path
    loss: float
    settings: dict[str, Any]
    trials: int
    first_loss: float | None


def tune(
    experiment: Experiment,
    folder: Path,
    *,
    minutes: float,
    trials: int | None = None,
    threads: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Tuned:
    """Search until ``minutes`` are used up, those of earlier calls for the same folder among them.

    The experiment as it is comes first, so that the best found is never worse on the validation part. Trials are single
    networks without a forest; the best settings go into ``folder / "best.yaml"`` with all else as it was.
    """
    optuna = _optuna()
    if experiment.table is None:
        raise UserError("tuning is for one's own table of molecules: name it with --data FILE")
    make_folder(folder)
    study = _open_study(optuna, folder)
    _check_same_table(study, experiment)
    left = 60 * minutes - _seconds_used(study)
    deadline = time.monotonic() + left
    if not study.trials:
        study.enqueue_trial({}, user_attrs={_AS_IT_IS: True})
    _take_up_again(optuna, study)

    def objective(trial: Trial) -> float:
        settings = {} if _AS_IT_IS in trial.user_attrs else {place: draw(trial, place) for place, draw in SPACE.items()}
        watch = _Watch(optuna, trial, deadline if _finished(study) else None)
        place = folder / f"trial{trial.number}"
        shutil.rmtree(place, ignore_errors=True)
        try:
            chosen = _single(with_settings(experiment, settings))
            fit(chosen, load_data(chosen), place, progress=watch, threads=threads, checkpoint_every=1e9)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        say(f"trial {trial.number}: validation loss {watch.lowest:.4f} {_in_words(settings)}")
        return watch.lowest

    def after(study: Study, _: Trial) -> None:
        if time.monotonic() > deadline or (trials is not None and len(_finished(study)) >= trials):
            study.stop()

    if left > 0 and (trials is None or len(_finished(study)) < trials):
        study.optimize(objective, callbacks=[after])
    return _write(study, experiment, folder)


def with_settings(experiment: Experiment, settings: dict[str, Any]) -> Experiment:
    """The experiment with the values of a trial."""
    return override(experiment, [f"{place}={value}" for place, value in settings.items()])


def _single(experiment: Experiment) -> Experiment:
    return override(experiment, ["training.members=1", "training.forest=false"])


class _Watch(Progress):
    """Shows a trial's validation curve to Optuna, and ends the trial where it leads nowhere or time is up."""

    def __init__(self, optuna: Any, trial: Trial, deadline: float | None) -> None:
        self.pruned = optuna.TrialPruned
        self.trial = trial
        self.deadline = deadline
        self.lowest = float("inf")

    def epoch(self, result: EpochResult) -> None:
        self.lowest = min(self.lowest, result.val.loss)
        self.trial.report(self.lowest, result.epoch)
        if self.trial.should_prune() or (self.deadline is not None and time.monotonic() > self.deadline):
            raise self.pruned


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed; get it with: pip install 'lspe[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _open_study(optuna: Any, folder: Path) -> Study:
    """The study of a folder; its journal only ever grows, so nothing that ends a search can damage it."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    path = str(folder / JOURNAL)
    storage = JournalStorage(JournalFileBackend(path, lock_obj=JournalFileOpenLock(path)))
    return optuna.create_study(
        storage=storage,
        study_name=_STUDY,
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=8),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=_WARM_UP),
    )


def _check_same_table(study: Study, experiment: Experiment) -> None:
    """Refuse to go on with another experiment's search."""
    given = experiment.model_dump(mode="json")
    before = study.user_attrs.get("experiment")
    if before is None:
        study.set_user_attr("experiment", given)
    elif before != given:
        raise UserError("the folder holds a search for another table or with other settings: choose another --out")


def _take_up_again(optuna: Any, study: Study) -> None:
    """Trials that were running when a search was ended are tried again."""
    for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        study.enqueue_trial(trial.params, user_attrs=trial.user_attrs)


def _finished(study: Study) -> list[Any]:
    return [trial for trial in study.trials if trial.state.name == "COMPLETE"]


def _seconds_used(study: Study) -> float:
    """By trials that came to an end; of others nobody knows."""
    ended = [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]
    return float(sum(trial.duration.total_seconds() for trial in ended))


def _write(study: Study, experiment: Experiment, folder: Path) -> Tuned:
    """best.yaml, trials.csv and the pictures."""
    rows = [
        {
            "trial": trial.number,
            "state": trial.state.name.lower(),
            "epochs": len(trial.intermediate_values),
            "validation_loss": _lowest_loss(trial),
            "seconds": None if trial.duration is None else round(trial.duration.total_seconds(), 1),
            **{place: trial.params.get(place) for place in SPACE},
        }
        for trial in study.trials
    ]
    write_table(folder / TRIALS, rows)
    if not _finished(study):
        raise UserError(
            f"the time was too short for a single trial; go on with more --minutes (trials: {folder / TRIALS})"
        )
    best = study.best_trial
    path = folder / BEST
    write_text(path, f"# lspe train {path} --out runs/best\n{with_settings(experiment, best.params).to_yaml(folder)}")
    _draw(study, folder)
    first = next((trial.value for trial in _finished(study) if _AS_IT_IS in trial.user_attrs), None)
    return Tuned(path, float(best.value or 0.0), dict(best.params), len(_finished(study)), first)


def _lowest_loss(trial: Trial) -> float | None:
    return trial.value if trial.value is not None else min(trial.intermediate_values.values(), default=None)


def _draw(study: Study, folder: Path) -> None:
    """How the search went; with enough trials also which settings mattered, by Optuna's functional ANOVA."""
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    from lspe.plots.search import TrialResult, search_history, setting_importance
    from lspe.plots.style import save

    seen = [
        TrialResult(trial.number, loss, trial.state.name == "COMPLETE")
        for trial in study.trials
        if (loss := _lowest_loss(trial)) is not None
    ]
    save(search_history(seen), (folder / HISTORY).with_suffix(""), "png")
    drawn = [trial for trial in _finished(study) if trial.params]
    if len(drawn) >= _FEWEST_FOR_IMPORTANCE and len({trial.value for trial in drawn}) > 1:
        evaluator = FanovaImportanceEvaluator(seed=0)
        shares = get_param_importances(study, evaluator=evaluator, params=list(SPACE))
        save(setting_importance(shares), (folder / IMPORTANCE).with_suffix(""), "png")


def _in_words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{place.rpartition('.')[2]} {value}" for place, value in settings.items()) or "(as it is)"
