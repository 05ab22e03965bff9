"""Excel workbooks: the cells of the first sheet, as Excel writes them."""

import io
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from lspe.data import DataError, iter_table_chunks, read_table

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
WORKBOOK = f"""<?xml version="1.0"?><workbook {MAIN}
  xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
  <sheets><sheet name="Data" sheetId="4" r:id="rId9"/><sheet name="Notes" sheetId="1" r:id="rId1"/></sheets>
</workbook>"""
RELATIONS = """<?xml version="1.0"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Id="rId1" Target="worksheets/sheet1.xml"/><Relationship Id="rId9" Target="{target}"/></Relationships>"""


def write_workbook(path: Path, sheet: str, shared: list[str], target: str = "worksheets/sheet2.xml") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/workbook.xml", WORKBOOK)
        book.writestr("xl/_rels/workbook.xml.rels", RELATIONS.format(target=target))
        book.writestr("xl/worksheets/sheet1.xml", f"<worksheet {MAIN}><sheetData/></worksheet>")
        book.writestr("xl/worksheets/sheet2.xml", f"<worksheet {MAIN}><sheetData>{sheet}</sheetData></worksheet>")
        texts = "".join(f"<si>{text}</si>" for text in shared)
        book.writestr("xl/sharedStrings.xml", f"<sst {MAIN}>{texts}</sst>")
    return path


HEADER = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>'
    '<c r="C1" t="inlineStr"><is><t>ok</t></is></c></row>'
)
SHARED = ["<t>smiles</t>", "<r><t>log</t></r><r><rPr/><t>S</t></r><rPh><t>x</t></rPh>", "<t>CCO</t>"]


def test_cells_of_every_kind(tmp_path: Path) -> None:
    sheet = (
        HEADER
        + '<row r="2"><c r="A2" t="s"><v>2</v></c><c r="B2"><v>0.10000000000000001</v></c>'
        + '<c r="C2" t="b"><v>1</v></c></row>'
        + '<row r="3"/><row r="5"><c r="A5" t="str"><f>A2&amp;"C"</f><v>CCOC</v></c><c r="C5" t="b"><v>0</v></c></row>'
        + '<row r="6"><c r="B6" t="e"><v>#N/A</v></c></row>'
    )
    [chunk] = iter_table_chunks(write_workbook(tmp_path / "book.xlsx", sheet, SHARED))
    assert chunk.columns == ("smiles", "logS", "ok")
    assert [list(row) for row in chunk.rows] == [["CCO", "0.1", "true"], ["CCOC", "", "false"], ["", "#N/A", ""]]
    assert list(chunk.numbers) == [2, 5, 6]


@pytest.mark.parametrize("target", ["worksheets/sheet2.xml", "/xl/worksheets/sheet2.xml"])
def test_a_workbook_is_learned_from(target: str, tmp_path: Path) -> None:
    rows = "".join(
        f'<row><c t="inlineStr"><is><t>{escape("C" * (n + 1))}</t></is></c><c><v>{n / 4}</v></c></row>'
        for n in range(20)
    )
    table = read_table(write_workbook(tmp_path / "book.xlsx", HEADER + rows, SHARED, target), targets=["logS"])
    assert (table.smiles_column, table.targets.task) == ("smiles", "regression")
    assert table.targets.y[4].tolist() == [1.0]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"xl/workbook.xml": None}, "is a zip archive, not a table"),
        ({"xl/workbook.xml": "<workbook>"}, "is a damaged Excel workbook"),
        ({"xl/sharedStrings.xml": f"<sst {MAIN}/>"}, "is a damaged Excel workbook"),
        ({"xl/_rels/workbook.xml.rels": "<a/>"}, "is a damaged Excel workbook"),
    ],
)
def test_what_is_no_workbook_is_said(change: dict[str, str | None], words: str, tmp_path: Path) -> None:
    good = write_workbook(tmp_path / "good.xlsx", HEADER, SHARED)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as new:
        for name in old.namelist():
            content = change.get(name, old.read(name).decode())
            if content is not None:
                new.writestr(name, content)
    with pytest.raises(DataError, match=words):
        list(iter_table_chunks(tmp_path / "bad.xlsx"))


def test_a_workbook_that_was_cut_off(tmp_path: Path) -> None:
    content = write_workbook(tmp_path / "book.xlsx", HEADER, SHARED).read_bytes()
    (tmp_path / "book.xlsx").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="is a damaged Excel workbook"):
        list(iter_table_chunks(tmp_path / "book.xlsx"))


def test_a_workbook_from_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_workbook(tmp_path / "book.xlsx", HEADER, SHARED).read_bytes()

    class Input:
        buffer = io.BytesIO(content)

    monkeypatch.setattr("sys.stdin", Input())
    [chunk] = iter_table_chunks("-")
    assert chunk.columns == ("smiles", "logS", "ok")
