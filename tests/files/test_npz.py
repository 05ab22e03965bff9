"""Arrays written a piece at a time are the arrays written at once."""

from pathlib import Path

import numpy as np
import pytest

from lspe.files.npz import NpzWriter


@pytest.mark.parametrize("compressed", [False, True])
def test_pieces_join_and_numpy_reads_them(tmp_path: Path, compressed: bool) -> None:
    generator = np.random.default_rng(0)
    pieces = [generator.normal(size=(rows, 3)).astype(np.float32) for rows in (4, 0, 7)]
    names = [["a", "long name"], [], ["ß"]]
    with NpzWriter(tmp_path / "out.npz", compressed=compressed) as writer:
        for piece, name in zip(pieces, names, strict=True):
            writer.append("values", piece)
            writer.append("names", np.array(name, dtype=np.str_))
        assert writer.rows == {"values": 11, "names": 3}
    with np.load(tmp_path / "out.npz") as read:
        np.testing.assert_array_equal(read["values"], np.concatenate(pieces))
        assert read["names"].tolist() == ["a", "long name", "ß"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with NpzWriter(tmp_path / "out.npz") as writer:
            writer.append("values", np.zeros(3))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()
    assert not list(tmp_path.iterdir())
