"""A few cases of every target of ``make fuzz``, and that the fuzzer itself finds what there is to find."""

from pathlib import Path

import pytest

from tests.fuzz import __main__ as fuzzer
from tests.fuzz.targets import TARGETS, Target, attack

SLOW = {"run_folders": 5, "packed_sets": 10, "tables": 25}


@pytest.mark.parametrize("name", TARGETS)
def test_a_slice_of_each_target(name: str, tmp_path: Path, session_cache: None) -> None:
    for number in range(SLOW.get(name, 40)):
        found = attack(name, 1, number, tmp_path / str(number))
        assert found is None, f"python -m tests.fuzz --only {name} --seed 1 --first {number} --cases 1\n{found}"


def test_the_shares_make_ten_thousand() -> None:
    assert sum(target.share for target in TARGETS.values()) == fuzzer.SHARES


def test_a_traceback_and_a_lost_row_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object) -> None:
        raise AssertionError("rows were lost")

    monkeypatch.setitem(TARGETS, "tables", Target(lose, 1))
    assert "rows were lost" in str(attack("tables", 0, 0, tmp_path / "case"))
    assert not (tmp_path / "case").exists()


def test_a_case_that_ends_or_holds_up_the_process_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "tests" / "fuzz"
    fake.mkdir(parents=True)
    (fake / "__main__.py").write_text(Path(fuzzer.__file__).read_text())
    (fake / "targets.py").write_text(
        "import os, time\n"
        "def attack(name, seed, number, folder):\n"
        "    if number == 2: os.abort()\n"
        "    if number == 4: time.sleep(60)\n"
        "    return 'odd' if number == 5 else None\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fuzzer, "HANGS", 5.0)
    findings = fuzzer.cases_of("any", 0, 0, 7, tmp_path / "cases")
    assert findings == [(2, "ended the process with code -6"), (4, "did not come to an end in 5 s"), (5, "odd")]
