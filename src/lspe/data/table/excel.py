"""Excel workbooks (.xlsx) as tables: the cells of the first sheet as text, read without any other library."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Generator, Iterator
from typing import IO
from xml.etree import ElementTree

from lspe.data.errors import DataError

_WORKBOOK = "xl/workbook.xml"
_SHARED = "xl/sharedStrings.xml"
_LARGEST = 2**30
"""Bytes of a part of the workbook; more are not unpacked."""

Record = tuple[int, list[str]]


def is_zip(start: bytes) -> bool:
    """Whether a file begins as workbooks do."""
    return start[:4] == b"PK\x03\x04"


def excel_records(file: io.BufferedReader, name: str) -> Generator[Record]:
    """Row number and values of each row of the first sheet, but for empty ones."""
    seekable = file if file.seekable() else io.BytesIO(file.read())
    try:
        with zipfile.ZipFile(seekable) as book:
            if _WORKBOOK not in book.namelist():
                raise DataError(f"{name} is a zip archive, not a table: unpack it, or save the sheet as .xlsx or CSV")
            if max(part.file_size for part in book.infolist()) > _LARGEST:
                raise DataError(f"{name}: a sheet is larger than {_LARGEST >> 20:,} MB: save it as CSV (UTF-8)")
            yield from _rows(book.open(_first_sheet(book)), _shared_texts(book))
    except (zipfile.BadZipFile, ElementTree.ParseError, LookupError, ValueError, RuntimeError) as error:
        raise DataError(f"{name} is a damaged Excel workbook ({error}): save the sheet as CSV (UTF-8)") from None


def _first_sheet(book: zipfile.ZipFile) -> str:
    """The part of the archive that holds the first sheet."""
    sheets = [one for one in ElementTree.fromstring(book.read(_WORKBOOK)).iter() if _tag(one) == "sheet"]
    [wanted] = [value for key, value in sheets[0].attrib.items() if key.endswith("}id")]
    relations = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    target = {one.attrib["Id"]: one.attrib["Target"] for one in relations}[wanted]
    return target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join("xl", target))


def _shared_texts(book: zipfile.ZipFile) -> list[str]:
    """Texts that cells refer to by number."""
    if _SHARED not in book.namelist():
        return []
    entries = ElementTree.fromstring(book.read(_SHARED))
    return [_text(one) for one in entries if _tag(one) == "si"]


def _rows(sheet: IO[bytes], shared: list[str]) -> Iterator[Record]:
    number = 0
    with sheet:
        for _, row in ElementTree.iterparse(sheet):
            if _tag(row) != "row":
                continue
            number = int(row.attrib.get("r", number + 1))
            values: list[str] = []
            for cell in row:
                place = _column(cell.attrib["r"]) if "r" in cell.attrib else len(values)
                values += [""] * (place + 1 - len(values))
                values[place] = _value(cell, shared)
            row.clear()
            if any(values):
                yield number, values


def _value(cell: ElementTree.Element, shared: list[str]) -> str:
    """A cell as text; of a formula the value that was last computed."""
    kind = cell.attrib.get("t", "n")
    if kind == "inlineStr":
        return _text(cell)
    stored = next((one.text or "" for one in cell if _tag(one) == "v"), "")
    if kind == "s":
        return shared[int(stored)]
    if kind == "b":
        return "true" if stored == "1" else "false"
    if kind == "n" and stored:
        return f"{float(stored):.15g}"  # 0.10000000000000001 is what Excel writes for 0.1
    return stored


def _text(element: ElementTree.Element) -> str:
    """All pieces of a text, however they are formatted, without phonetic ones."""
    return "".join(
        piece.text or ""
        for part in element.iter()
        if _tag(part) in ("si", "is", "r")
        for piece in part
        if _tag(piece) == "t"
    )


def _column(reference: str) -> int:
    """``C5`` is in column 2."""
    letters = re.match(r"[A-Z]{1,3}", reference)
    if letters is None:
        raise ValueError(f"there is no cell {reference!r}")
    number = 0
    for letter in letters[0]:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
