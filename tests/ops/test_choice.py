"""Which operators are used, and how the C sources get compiled."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from lspe.ops import choose, chosen, fusible, status, use
from lspe.ops.fused.library import Library, library
from tests.graphs import CORNER_CASES


@pytest.fixture
def fresh_library() -> Iterator[None]:
    library.cache_clear()
    yield
    library.cache_clear()


def python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, timeout=600
    )


def test_use_from_here_on_and_for_a_block() -> None:
    before = chosen()
    x = torch.zeros(2, 2)
    with use("plain"):
        assert not fusible(x)
        with use("fused"):
            assert fusible(x)
        assert not fusible(x)
    assert chosen() == before
    try:
        choose("plain")
        assert not fusible(x)
        assert "as chosen" in status()
    finally:
        choose(before)


def test_unknown_choice() -> None:
    with pytest.raises(ValueError, match="'quick' is not one of auto, fused, plain"):
        choose("quick")  # type: ignore[arg-type]


def test_choice_of_the_environment() -> None:
    program = "import lspe.ops; print(lspe.ops.chosen())"
    assert python(program, LSPE_OPS="plain").stdout.strip() == "plain"
    assert "LSPE_OPS: 'fast' is not one of" in python(program, LSPE_OPS="fast").stderr


@pytest.mark.parametrize(
    "tensors",
    [
        (torch.zeros(2, dtype=torch.float16),),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2, device="meta"),),
    ],
)
def test_what_cannot_be_fused(tensors: tuple[torch.Tensor, ...]) -> None:
    with use("auto"):
        assert not fusible(*tensors)
    with use("fused"), pytest.raises(RuntimeError, match="fused operators were asked for, but"):
        fusible(*tensors)


def test_autocast_takes_the_plain_operators() -> None:
    with use("auto"), torch.autocast("cpu", dtype=torch.bfloat16):
        assert not fusible(torch.zeros(2))


def test_without_a_compiler(
    fresh_library: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with use("auto"), caplog.at_level(logging.WARNING):
        assert not fusible(torch.zeros(2))
        assert not fusible(torch.zeros(2))
        assert "could not be compiled" in status()
    assert [record.getMessage() for record in caplog.records] == [
        "lspe uses its plain PyTorch operators, which are slower: no C compiler found (looked for no-such-compiler)"
    ]
    with use("fused"), pytest.raises(RuntimeError, match="could not be compiled"):
        fusible(torch.zeros(2))


def test_a_compiler_that_fails(
    fresh_library: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exit 0\necho 'note' >&2\necho 'error: out of luck' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "cache"))
    with use("auto"), caplog.at_level(logging.WARNING):
        assert not fusible(torch.zeros(2))
    (record,) = caplog.records
    assert record.getMessage().endswith("cannot compile them: error: out of luck")
    assert not list((tmp_path / "cache" / "ops").iterdir())


def test_a_cache_that_cannot_be_written(
    fresh_library: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LSPE_CACHE", str(tmp_path / "file"))
    with use("auto"), caplog.at_level(logging.WARNING):
        assert not fusible(torch.zeros(2))
    assert "plain PyTorch operators" in caplog.text


SUM = """
import torch
from lspe.ops import Edges
print(Edges(torch.tensor([[0, 1], [1, 0]]), 2).by_target[0].tolist())
"""


def test_two_processes_compile_at_once(tmp_path: Path) -> None:
    environment = os.environ | {"LSPE_CACHE": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", SUM], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=600)[0].strip() for process in processes] == ["[0, 1, 2]"] * 2
    (built,) = (tmp_path / "ops").iterdir()
    assert built.suffix == ".so"
    changed = built.stat().st_mtime_ns
    assert python(SUM, LSPE_CACHE=str(tmp_path)).stdout.strip() == "[0, 1, 2]"
    assert built.stat().st_mtime_ns == changed


FORK = """
import os, torch
from tests.ops import cases
from lspe.ops import choose
torch.set_num_threads(2)
choose("fused")
case = cases.activation(4000)
before = case.results(torch.float32)
child = os.fork()
if child == 0:
    torch.set_num_threads(1)  # as PyTorch's own loaders do
    after = cases.activation(4000).results(torch.float32)
    os._exit(0 if torch.equal(after[0], before[0]) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_works_alone() -> None:
    """Threads of OpenMP do not survive a fork: the child must not wait for them."""
    assert python(FORK, PYTHONPATH=str(Path(__file__).parents[2])).stdout.strip() == "0"


def library_file(cache: Path) -> Path:
    (built,) = (cache / "ops").glob("lspe-*.so")
    return built


def test_a_library_that_was_changed_is_not_loaded(tmp_path: Path) -> None:
    """Its name ends in its digest: a file that is not what it says is compiled again."""
    assert python(SUM, LSPE_CACHE=str(tmp_path)).stdout.strip() == "[0, 1, 2]"
    built = library_file(tmp_path)
    sound = built.read_bytes()
    built.write_bytes(b"#!/bin/sh\ntouch was-run\n")
    assert python(SUM, LSPE_CACHE=str(tmp_path)).stdout.strip() == "[0, 1, 2]"
    assert library_file(tmp_path).read_bytes() == sound


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners of files")
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir(mode=0o777)
    (tmp_path / "ops").chmod(0o777)
    ended = python(STATUS, LSPE_CACHE=str(tmp_path))
    assert ended.stdout.strip() == "plain PyTorch: they could not be compiled"
    assert f"others can write to {tmp_path / 'ops'}" in ended.stderr
    assert ended.stderr.count("lspe uses its plain PyTorch operators") == 1
    (tmp_path / "ops").chmod(0o700)
    assert python(STATUS, LSPE_CACHE=str(tmp_path)).stdout.strip() == "fused, compiled C"
    assert library_file(tmp_path).stat().st_mode & 0o022 == 0


STATUS = "import logging; logging.basicConfig(); import lspe.ops; print(lspe.ops.status())"


def test_a_product_that_is_wrong_is_found_out(
    fresh_library: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a compiler's mistake would have it: one number of the result is another."""
    call = Library.call

    def mistaken(native: Library, name: str, **fields: Any) -> None:
        call(native, name, **fields)
        if name == "try_product" and fields["transposed"]:
            fields["c"][12, 47] += 1

    monkeypatch.setattr(Library, "call", mistaken)
    with use("auto"), caplog.at_level(logging.WARNING):
        assert not fusible(torch.zeros(2, dtype=torch.float64))
    assert "are not compiled as they are meant" in caplog.text


def test_without_the_functions_of_pytorch(fresh_library: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread, and a product of our own."""
    from tests.ops import cases
    from tests.ops.test_equal_to_plain import assert_equal_to_plain

    monkeypatch.setattr("lspe.ops.fused.library.find_function", lambda name: 0)
    assert_equal_to_plain(cases.gate(CORNER_CASES["decalin"], positions=True))


VECTORS = """
from tests.ops import test_full_layers as full, test_gated_layers as gated, test_tower_layers as tower
for test, at_once in ((gated, gated.run_layers), (tower, tower.run_layers), (full, full.at_once)):
    layers = test.build("dropout")
    expected = test.results(test.one_by_one, layers, test.MANY)
    with test.use("fused"):
        print(test.largest_difference(test.results(at_once, layers, test.MANY), expected) < 1e-10)
"""


@pytest.mark.parametrize("width", [16, 64])
def test_vectors_of_other_processors(width: int, tmp_path: Path) -> None:
    """SSE's and AVX-512's: the compiler makes do with what there is."""
    flags = f"-DVECTOR_BYTES={width} -Wno-psabi"
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    said = python(VECTORS, LSPE_CACHE=str(tmp_path), LSPE_CFLAGS=flags, PYTHONPATH=path).stdout.split()
    assert said == ["True"] * 3
