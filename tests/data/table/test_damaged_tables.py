"""Tables with every kind of damage: a clear error or a report, never a stack trace, never a silent loss."""

import csv
import gzip
import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lspe.data import DataError, GraphData, read_table
from lspe.data.molecules.smiles import parse
from lspe.data.table.targets import to_number

SOUND = [
    *(
        "CCO",
        "c1ccccc1",
        "CC(=O)O",
        "C",
        "[Na+].[Cl-]",
        "C" * 500,
        "[13CH4]",
        "F/C=C/F",
        " CCN ",
        "[Fe+2]",
        "*",
        "[H][H]",
    )
]
BROKEN = [
    *(
        "",
        "C1CC",
        "hello world",
        "c1cccc1",
        "C(C)(C)(C)(C)C",
        "Ü",
        "🙂",
        "'CCO'",
        "NaN",
        '"',
        "CCO,",
        "C\nC",
        "\x00",
        "1",
    )
]
CELLS = [
    *("1", "0", "2.5", "-7e3", "", "nan", "NA", "inf", "-inf", "1,5", "high", "TRUE", "no", "0x1", "1_000", "½", " 3 "),
    *("9" * 400, "1e39", "-2e300"),
]

messy = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def graphs_or_clear_error(
    path: Path,
    on_invalid: str,
    *,
    targets: list[str] | None = None,
    task: str | None = None,
    fragments: str = "keep",
) -> GraphData | None:
    """The table's graphs, or nothing if the table gave an error that names the file."""
    message = ""
    try:
        table = read_table(path, targets=targets, task=task, on_invalid=on_invalid)  # type: ignore[arg-type]
        return table.to_graphs(fragments=fragments)  # type: ignore[arg-type]
    except DataError as error:
        message = str(error)
    assert path.name in message
    return None


@messy
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(SOUND) | st.sampled_from(BROKEN),
            st.sampled_from(["1", "0", "2.5"]) | st.sampled_from(CELLS),
            st.sampled_from(CELLS),
        ),
        max_size=14,
    ),
    targets=st.sampled_from([None, ["a"], ["a", "b"]]),
    task=st.sampled_from([None, "regression", "binary", "multiclass"]),
    on_invalid=st.sampled_from(["error", "skip", "nan"]),
    fragments=st.sampled_from(["keep", "largest", "error"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
)
def test_mixed_damage(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    targets: list[str] | None,
    task: str | None,
    on_invalid: str,
    fragments: str,
    line_end: str,
    bom: bool,
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "damaged.csv"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=line_end)
    writer.writerow(["smiles", "a", "b"] if targets else ["smiles", "a"])
    writer.writerows(row if targets else row[:2] for row in rows)
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.getvalue().encode())
    data = graphs_or_clear_error(path, on_invalid, targets=targets, task=task, fragments=fragments)
    if data is None:
        return
    assert data.report is not None
    left_out = {finding.row for finding in data.report.findings if finding.action == "left out"}
    used = set(data.graphs.column("table_row").tolist())
    with_content = {
        number for number, row in enumerate(rows, 2) if any(c.strip() for c in (row if targets else row[:2]))
    }
    assert used | left_out == with_content
    assert not used & left_out
    assert on_invalid != "error" or not left_out
    for graph in data.graphs:
        smiles, *cells = rows[int(graph.table_row) - 2]
        assert graph.num_nodes == parse(smiles, fragments=fragments).GetNumAtoms()  # type: ignore[arg-type]
        for position, name in enumerate(data.task_names):
            cell = cells["ab".index(name)]
            if data.task == "multiclass":
                assert data.class_names[int(graph.y)] == cell.strip()
                continue
            number, label = to_number(cell), float(graph.y[0, position])
            if number is None or not abs(number) < 3.4e38 or (data.task == "binary" and number not in (0, 1)):
                assert math.isnan(label)
            else:
                assert label == np.float32(number)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
@messy
@given(data=st.data())
def test_damaged_bytes(kind: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    frame = pd.DataFrame({"smiles": ["CCO", "CCN", "c1ccccc1", "CC"] * 3, "y": np.arange(12) / 4})
    buffer = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(buffer)
        content = buffer.getvalue()
    else:
        content = frame.to_csv(index=False).encode()
        content = gzip.compress(content, mtime=0) if kind == "csv.gz" else content
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.just(len(damaged)) | st.integers(0, len(damaged))) :]
    path = tmp_path_factory.mktemp("fuzz") / f"damaged.{kind}"
    path.write_bytes(damaged)
    result = graphs_or_clear_error(path, "skip")
    assert result is None or (result.report is not None and result.report.used == len(result.graphs))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; a table needs a first row"),
        (b"\n\n  \n", "is empty"),
        (b"smiles,y\n", r"has a header \(smiles, y\) but no rows"),
        (b"smiles,y\n\n,\n", "but no rows"),
        (b"CCO,1\nCCN,2\n", "no column is called 'smiles'. Its columns are CCO, 1; the first row must name them"),
        (b"smiles,smiles\nC,C\n", "more than one column called 'smiles'"),
        (b"smiles,y\nCCO,1,2\n", "row 2: 3 values for 2 columns \\('2' is too many\\)"),
        (b'smiles,y\nCCO,1\n"CCN,2\nCC,3\n', "row 3: unexpected end of data. A quote"),
        (b"smiles,y\nCCO,1\nCC\xe9,2\n", "not UTF-8"),
        (b"smiles,y\nfoo,1\nbar,2\n", "no row is left"),
        (b"smiles,y\nCCO,\nCCN,\n", "the target column 'y' is empty"),
        (b"smiles,y\nCCO,1\nCCN,1\n", "the target 'y' holds only 1; there is nothing to learn"),
        (b"smiles,y\nCCO,a\nCCN,a\n", "all rows are of the class 'a'"),
        (b"smiles,y\nCCO,1\nCCN,2\n", "2 rows cannot be divided into 3 parts"),
        (b"smiles\nCCO\n", "no column is left that could be the target"),
        (b"PK\x03\x04 sheet", "is a damaged Excel workbook"),
        (b"\xd0\xcf\x11\xe0 sheet", r"is a spreadsheet of an old Excel. Save it as .xlsx or as CSV"),
        (b"\x1f\x8b\x08\x00 no gzip", "is damaged or was cut off"),
        (b"PAR1 no parquet", "is a damaged Parquet file"),
    ],
)
def test_messages(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "damaged.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_table(path, on_invalid="skip").to_graphs()
    assert "damaged.csv" in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing\.csv does not exist"):
        read_table(tmp_path / "missing.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)


def test_a_text_column_is_no_set_of_classes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,comment\n" + "".join(f"CCO,remark {number}\n" for number in range(50)))
    with pytest.raises(DataError, match="'comment' holds 50 different texts; these are no classes"):
        read_table(path)


def test_a_class_that_only_broken_molecules_had_leaves_nothing_to_learn(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,y\nCCO,0\nCCN,0\nbroken,1\nCC,0\n")
    with pytest.raises(DataError, match="holds only 0; there is nothing to learn"):
        read_table(path, on_invalid="skip").to_graphs()
