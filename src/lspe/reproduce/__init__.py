"""The paper's tables, ours beside theirs."""

from lspe.reproduce.results import Result, collect
from lspe.reproduce.runner import reproduce
from lspe.reproduce.tables import BASELINES, TABLES, Baseline, Row, rows_of_table

__all__ = ["BASELINES", "TABLES", "Baseline", "Result", "Row", "collect", "reproduce", "rows_of_table"]
