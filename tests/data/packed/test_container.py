import hashlib
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lspe.data.errors import CorruptFileError, DataError
from lspe.data.packed import container
from lspe.data.packed.container import ArrayWriter, open_arrays

PIECES = {
    "small": [np.arange(5, dtype=np.uint8), np.arange(3, dtype=np.uint8)],
    "wide": [np.arange(12, dtype=np.float32).reshape(4, 3)],
    "empty": [np.empty((0, 2), dtype=np.int64)],
    "flags": [np.array([True, False])],
}


def write(path: Path) -> Path:
    with ArrayWriter(path) as writer:
        for name, pieces in PIECES.items():
            for piece in pieces:
                writer.append(name, piece)
        writer.finish({"what": "a test, ü"})
    return path


def test_what_was_written_in_pieces_is_read_whole(tmp_path: Path) -> None:
    file = open_arrays(write(tmp_path / "set.lspe"))
    assert file.meta == {"what": "a test, ü"}
    for name, pieces in PIECES.items():
        expected = np.concatenate(pieces)
        assert file.arrays[name].dtype == expected.dtype
        np.testing.assert_array_equal(file.arrays[name], expected)
        assert file.arrays[name].ctypes.data % 64 == 0
        assert not file.arrays[name].flags.writeable
    assert [path.name for path in tmp_path.iterdir()] == ["set.lspe"]


def test_the_content_decides_the_bytes(tmp_path: Path) -> None:
    assert write(tmp_path / "a").read_bytes() == write(tmp_path / "b").read_bytes()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_or_missing_byte_is_noticed(tmp_path: Path, data: st.DataObject) -> None:
    whole = write(tmp_path / "whole").read_bytes()
    offset = data.draw(st.integers(0, len(whole) - 1))
    damaged = tmp_path / "damaged"
    if data.draw(st.booleans()):
        damaged.write_bytes(whole[:offset])
        with pytest.raises(CorruptFileError):
            open_arrays(damaged)
        return
    changed = bytearray(whole)
    changed[offset] ^= data.draw(st.integers(1, 255))
    damaged.write_bytes(changed)
    try:
        arrays = open_arrays(damaged).arrays
    except CorruptFileError:
        return
    for name, pieces in PIECES.items():  # only the padding between arrays may change unnoticed
        np.testing.assert_array_equal(arrays[name], np.concatenate(pieces))


def test_bytes_behind_the_end_are_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "set")
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(CorruptFileError, match="goes on after"):
        open_arrays(path)


def test_another_version_is_refused_by_number(tmp_path: Path) -> None:
    path = write(tmp_path / "set")
    content = bytearray(path.read_bytes())
    content[8:12] = struct.pack("<I", 7)
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match="format version 7"):
        open_arrays(path)


@pytest.mark.parametrize(
    "header",
    [
        "[" * 100_000,
        "[]",
        "{}",
        '{"arrays": 1, "meta": {}}',
        '{"arrays": {"x": {}}, "meta": {}}',
        '{"arrays": {"x": {"dtype": "O", "shape": [1], "offset": 0, "digest": ""}}, "meta": {}}',
        '{"arrays": {"x": {"dtype": "<f8", "shape": [-1], "offset": 0, "digest": ""}}, "meta": {}}',
        '{"arrays": {"x": {"dtype": "<f8", "shape": "1", "offset": "0", "digest": ""}}, "meta": {}}',
    ],
    ids=range(8),
)
def test_a_header_of_something_else_is_refused(tmp_path: Path, header: str) -> None:
    """Whose checksum is right."""
    path, text = tmp_path / "set", header.encode()
    digest = hashlib.blake2b(text, digest_size=32).digest()
    path.write_bytes(container._PREFIX.pack(container.MAGIC, container.FORMAT_VERSION, len(text), digest) + text)
    for verify in (True, False):
        with pytest.raises(CorruptFileError):
            open_arrays(path, verify=verify)


def test_an_interrupted_writer_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "set")
    before = path.read_bytes()

    def interrupted() -> None:
        with ArrayWriter(path) as writer:
            writer.append("x", np.zeros(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["set"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "set")
    before = path.read_bytes()

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", no_room)
    with pytest.raises(OSError, match="No space"):
        write(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize("piece", [np.zeros((2, 2)), np.array([1.5]), np.array(["a"])])
def test_a_piece_that_does_not_fit_is_refused(tmp_path: Path, piece: np.ndarray) -> None:
    with ArrayWriter(tmp_path / "set") as writer:
        writer.append("x", np.zeros(2, dtype=np.int32))
        with pytest.raises(DataError, match="array 'x'"):
            writer.append("x", piece)
