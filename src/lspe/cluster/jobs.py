"""What a cluster does with a table: predict its molecules, or encode them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lspe.cluster.parts import (
    ROWS_PER_PART,
    DividedTable,
    Part,
    can_be_divided,
    check_new_folder,
    divide_parquet,
    divide_rows,
)
from lspe.cluster.ray_engine import Work, work_on_parts
from lspe.data import TableChunk, iter_table_chunks
from lspe.data.encoding_files import (
    ParquetSink,
    Written,
    columns_of,
    encode_molecules,
    rows_at_once,
    write_pieces,
)
from lspe.data.graphs.files import is_graph_file
from lspe.data.progress import progress_bar
from lspe.data.table.columns import find_smiles_column
from lspe.encodings import check_encoding
from lspe.errors import UserError
from lspe.files import clear_unfinished, complete_or_nothing
from lspe.files.tables import open_table
from lspe.predict import Predictor
from lspe.predict.molecules import AT_ONCE
from lspe.predict.sources import iter_rows
from lspe.predict.tables import TableSummary, WiderTable

Path_ = str | os.PathLike[str]


def predict_on_ray(
    predictor: Predictor,
    table: Path_,
    folder: Path_,
    *,
    smiles_column: str | None = None,
    nearest: bool = False,
    workers: int | None = None,
    rows_per_part: int = ROWS_PER_PART,
) -> TableSummary:
    """Predict every row of a table on a Ray cluster.

    Every row and column is kept as :meth:`lspe.Predictor.predict_table` keeps them, with the same numbers, in Parquet
    files whose names are in the order of the rows. The cluster is the one this process is in, or that
    ``RAY_ADDRESS`` names; otherwise it is this machine. Its machines must see both paths.

    Args:
        predictor: of a network for molecules, or of several.
        table: a Parquet file, or a folder of them; whatever else :meth:`lspe.Predictor.predict_table` takes is written
            as Parquet first.
        folder: a new one, there only when it is complete.
        smiles_column: if it is not found by its name.
        nearest: also name the training molecule that is most like each one.
        workers: how many processes; as many as the cluster has cores, if not given.
        rows_per_part: of the table, which a process works on at a time: what is lost with it is done again.

    """
    predictor.check_level("graph", "a table of molecules takes")
    started = time.perf_counter()
    with _new_folder(folder) as job:
        divided = _divided(table, iter_rows(table, smiles_column), job, rows_per_part)
        wider = WiderTable.plan(predictor, divided.columns, str(table), smiles_column=smiles_column, nearest=nearest)
        work = _PredictPart(wider, str(job.parts), divided.schema)
        done = _done(work, divided, job, "predict", workers, gpu=_on_gpu(predictor))
    without = sum(answer["without"] for answer in done)
    return TableSummary(divided.rows, without, wider.smiles_column, time.perf_counter() - started)


def encode_on_ray(
    table: Path_,
    folder: Path_,
    *,
    encoding: str = "rwpe",
    k: int = 16,
    smiles_column: str | None = None,
    workers: int | None = None,
    rows_per_part: int = ROWS_PER_PART,
) -> Written:
    """Encode every molecule of a table on a Ray cluster; see :func:`predict_on_ray` for tables, folders and clusters.

    The Parquet files have the columns and numbers that ``lspe encode`` gives without a cluster.
    """
    if is_graph_file(table):
        raise UserError(f"{table} is one graph, and a cluster takes a table of molecules: leave --engine out")
    check_encoding(encoding, k)
    with _new_folder(folder) as job:
        divided = _divided(table, iter_table_chunks(table, rows=AT_ONCE, keep_empty=True), job, rows_per_part)
        column = find_smiles_column(divided.columns, smiles_column, str(table))
        done = _done(_EncodePart(column, encoding, k, str(job.parts)), divided, job, "encode", workers)
    each = [Written(**answer) for answer in done]
    first_reason = next((one.first_reason for one in each if one.first_reason is not None), None)
    return Written(divided.rows, sum(one.encoded for one in each), sum(one.nodes for one in each), first_reason)


@dataclass(frozen=True)
class _PredictPart:
    wider: WiderTable
    folder: str
    schema: Any | None

    def __call__(self, part: Part, processes: int) -> dict[str, Any]:
        without = 0
        with open_table(Path(self.folder, part.file_name), self.wider.columns, self.schema) as writer:
            for _, predictions, rows in self.wider.rows(part.chunks(AT_ONCE), processes):
                writer.write(rows)
                without += len(predictions.reasons)
        return {"without": without}


@dataclass(frozen=True)
class _EncodePart:
    smiles_column: str
    encoding: str
    k: int
    folder: str

    def __call__(self, part: Part, processes: int) -> dict[str, Any]:
        kind = check_encoding(self.encoding, self.k)
        pieces = (
            encode_molecules(chunk.column(self.smiles_column), kind, self.k, processes)
            for chunk in part.chunks(rows_at_once(kind))
        )
        with complete_or_nothing(Path(self.folder, part.file_name)) as path, ExitStack() as stack:
            sink = ParquetSink(stack, path, columns_of(kind, self.k))
            return asdict(write_pieces(sink, pieces, part.first))


@dataclass(frozen=True)
class _Folders:
    """Of a job on its way: the parts that are done, rows that are not yet Parquet, and the tries of each part."""

    parts: Path
    rows: Path
    tries: Path


@contextmanager
def _new_folder(target: Path_) -> Iterator[_Folders]:
    """Folders for a job, of which `parts` gets the name `target` when everything went well."""
    folder = Path(target).absolute()
    check_new_folder(folder)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    job = _Folders(temporary / "parts", temporary / "rows", temporary / "tries")
    try:
        for one in (job.parts, job.rows, job.tries):
            one.mkdir(parents=True)
        yield job
        clear_unfinished(job.parts)
        os.replace(job.parts, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _on_gpu(predictor: Predictor) -> bool:
    return next(predictor.members[0].network.parameters()).device.type == "cuda"


def _divided(table: Path_, chunks: Iterator[TableChunk], job: _Folders, rows_per_part: int) -> DividedTable:
    if can_be_divided(table):
        return divide_parquet(table, rows_per_part)
    return divide_rows(chunks, job.rows, rows_per_part)


def _done(
    work: Work, divided: DividedTable, job: _Folders, label: str, workers: int | None, *, gpu: bool = False
) -> list[dict[str, Any]]:
    """What became of the parts, in their order."""
    answers: dict[int, dict[str, Any]] = {}
    with progress_bar(label, divided.rows) as advance:
        for part, answer in work_on_parts(work, divided.parts, job.tries, workers=workers, gpu=gpu):
            answers[part.number] = answer
            advance(part.end - part.begin)
    return [answers[part.number] for part in divided.parts]
