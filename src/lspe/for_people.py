"""The files of a run folder that people look at: curves, predictions, pictures, a report."""

from __future__ import annotations

from lspe.blending import blend, is_blended
from lspe.data import GraphData
from lspe.experiment import OWN
from lspe.html_report import write_report
from lspe.plots.predictions import picture_of
from lspe.plots.scores import training_curves
from lspe.plots.style import save
from lspe.plots.trust import picture_of_trust
from lspe.predict.known import KNOWN, KnownMolecules
from lspe.predict.member import Member
from lspe.predict.splits import SplitPredictions, predict_split, together
from lspe.training.progress import Progress
from lspe.training.run import Run, open_runs

CURVES = "curves.png"


def write_for_people(run: Run, data: GraphData, progress: Progress, threads: int) -> None:
    """Curves; of one's own data the rows that were noted, and the test graphs' predictions as tables and a picture.

    The molecules of a table that were learned from are kept, to compare others with them. What predicts as one is put
    together first; the curves come last, but for the report of a table, and tell that all the others are there.
    """
    runs = open_runs(run.path, run.given)
    if data.report is not None:
        progress.note(data.report.summary())
        if data.report.findings:
            data.report.write_csv(run.path / "rows.csv")
            progress.note(f"every row left out, changed or noted: {run.path / 'rows.csv'}")
    if data.smiles is not None:
        KnownMolecules.of(Member.of_run(runs[0]), data).save(run.path / KNOWN)
    tests: list[SplitPredictions] = []
    as_one = [run] if (run.config.training.members or 1) > 1 else runs
    if run.config.dataset == OWN:
        for one in as_one:
            tests.append(blend(one, data, threads=threads).both if is_blended(one) else predict_split(one, data))
            tests[-1].write(one.path / "predictions.csv")
        name, figure = picture_of(together(tests))
        [picture] = save(figure, run.path / name, "png")
        if is_blended(run) and (trust := picture_of_trust(together(tests))) is not None:
            save(trust[1], run.path / trust[0], "png")
        tables = run.path / ("predictions.csv" if len(tests) == 1 else "*/predictions.csv")
        progress.note(f"true and predicted values of the test {tests[0].level}s: {picture}, {tables}")
    elif is_blended(run):
        for one in as_one:
            blend(one, data, threads=threads)
    save(training_curves(runs), (run.path / CURVES).with_suffix(""), "png")
    if run.config.table is not None:
        report = write_report(run, together(tests), fragments=run.config.table.fragments)
        progress.note(f"everything at a glance, for a web browser: {report}")
