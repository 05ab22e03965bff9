"""The paper's tables, ours beside theirs."""

from lspe.reproduce.campaign import reproduce
from lspe.reproduce.overview import Overview, look, of_begun_seeds
from lspe.reproduce.plan import Job, Plan, make_plan
from lspe.reproduce.results import Result, collect, file_name
from lspe.reproduce.show import show
from lspe.reproduce.tables import BASELINES, TABLES, Baseline, Row, rows_found_in, rows_of_table

__all__ = [
    "BASELINES",
    "TABLES",
    "Baseline",
    "Job",
    "Overview",
    "Plan",
    "Result",
    "Row",
    "collect",
    "file_name",
    "look",
    "make_plan",
    "of_begun_seeds",
    "reproduce",
    "rows_found_in",
    "rows_of_table",
    "show",
]
