"""Checkpoints: whole or not there, plain values, and words for what is wrong with them."""

import resource
from pathlib import Path

import pytest
import torch

from lspe.training import checkpoint
from lspe.training.checkpoint import CheckpointError

STATE = {"epoch": 3, "network": {"w": torch.arange(5000.0)}, "history": [{"lr": 1e-3, "val_mae": None}]}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "last.ckpt"
    checkpoint.save(path, STATE)
    return path


def test_what_is_saved_is_read_again(saved: Path) -> None:
    state = checkpoint.load(saved)
    assert torch.equal(state.pop("network")["w"], STATE["network"]["w"])
    assert state == {key: value for key, value in STATE.items() if key != "network"} | {"format": checkpoint.FORMAT}
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_cut_file_is_refused_in_words(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match=r"last\.ckpt is damaged .* Delete it to start again"):
        checkpoint.load(saved)


def test_an_altered_weight_is_refused(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    weight = content.index(torch.tensor([1234.0, 1235.0]).numpy().tobytes())
    content[weight + 2] ^= 1
    saved.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoint.load(saved)


def test_the_other_checkpoint_is_offered_where_there_is_one(saved: Path) -> None:
    checkpoint.save(saved.with_name("best.ckpt"), STATE)
    saved.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"go on from best\.ckpt instead, copy it over last\.ckpt"):
        checkpoint.load(saved)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    torch.save({"format": checkpoint.FORMAT, "network": Trap()}, tmp_path / "last.ckpt")
    with pytest.raises(CheckpointError):
        checkpoint.load(tmp_path / "last.ckpt")
    assert not (tmp_path / "sprung").exists()


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    with pytest.raises(CheckpointError, match="no such checkpoint"):
        checkpoint.load(path)
    torch.save({"state_dict": {}}, path)
    with pytest.raises(CheckpointError, match="not a checkpoint of lspe"):
        checkpoint.load(path)
    torch.save({"format": 99}, path)
    with pytest.raises(CheckpointError, match="format 99"):
        checkpoint.load(path)


def test_where_there_is_no_room_the_old_one_stays(saved: Path) -> None:
    """The system refuses to let a file grow, as it does on a full disk."""
    before = saved.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))
    try:
        with pytest.raises(CheckpointError, match=r"could not be written .* is intact.* Make room .* --resume"):
            checkpoint.save(saved, {**STATE, "epoch": 4})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
