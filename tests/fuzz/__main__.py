"""Attack the package with damaged input: ``python -m tests.fuzz`` (``make fuzz``).

Cases are made by numbers, so a finding can be had again: ``--only tables --seed 0 --first 123 --cases 1``. They are
used in a child process; one that ends it, keeps a core busy for more than ten seconds, or does not come to an end, is a
finding like a traceback.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SHARES = 10_000
SLOW = 10.0
"""Seconds of a core; those of the clock depend on what else the machine does."""
HANGS = 120.0
"""Seconds by the clock, the start of a process included."""


def child(name: str, seed: int, first: int, count: int, folder: Path) -> None:
    """Use the cases one by one; say before each which it is, and after it what was found and how long it took."""
    from tests.fuzz.targets import attack

    for number in range(first, first + count):
        print(json.dumps({"begins": number}), flush=True)
        started = time.process_time()
        found = attack(name, seed, number, folder / str(number))
        if not found and time.process_time() - started > SLOW:
            found = f"kept a core busy for more than {SLOW:.0f} s"
        if found:
            print(json.dumps({"finding": found}), flush=True)


def cases_of(name: str, seed: int, first: int, count: int, folder: Path) -> list[tuple[int, str]]:
    """The findings among some cases of a target: the number and what happened."""
    findings = []
    end = first + count
    while first < end:
        command = [sys.executable, "-m", "tests.fuzz", "--child", "--only", name, "--seed", str(seed)]
        command += ["--first", str(first), "--cases", str(end - first), "--folder", str(folder)]
        environment = {**os.environ, "LSPE_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
            at, late = _listen(process, first, findings)
            code = process.wait()
        if not late and code == 0:
            return findings
        findings.append(
            (at, f"did not come to an end in {HANGS:.0f} s" if late else f"ended the process with code {code}")
        )
        first = at + 1
    return findings


def _listen(process: "subprocess.Popen[bytes]", first: int, findings: list[tuple[int, str]]) -> tuple[int, bool]:
    """Follow a child until it ends: the case it was at, and whether it had to be ended for taking too long."""
    deadline = [time.monotonic() + HANGS]
    late = threading.Event()

    def watch() -> None:
        while process.poll() is None:
            if time.monotonic() > deadline[0]:
                late.set()
                process.kill()
            time.sleep(0.1)

    threading.Thread(target=watch, daemon=True).start()
    at = first
    assert process.stdout is not None
    for line in process.stdout:
        said = json.loads(line)
        if "begins" in said:
            at = said["begins"]
            deadline[0] = time.monotonic() + HANGS
        else:
            findings.append((at, said["finding"]))
    return at, late.is_set()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=SHARES, help="over all targets, or of the one of --only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one target")
    parser.add_argument("--first", type=int, default=0, help="number of the first case of each target")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.only, chosen.seed, chosen.first, chosen.cases, chosen.folder)
        return 0
    from tests.fuzz.targets import TARGETS

    total = 0
    for name, target in TARGETS.items():
        if chosen.only not in (None, name):
            continue
        count = chosen.cases if chosen.only else max(1, round(chosen.cases * target.share / SHARES))
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            findings = cases_of(name, chosen.seed, chosen.first, count, Path(folder))
        print(f"{name}: {count} cases in {time.perf_counter() - started:.0f} s, {len(findings)} findings", flush=True)
        for number, what in findings:
            print(f"--- --only {name} --seed {chosen.seed} --first {number} --cases 1\n{what}", flush=True)
        total += len(findings)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
