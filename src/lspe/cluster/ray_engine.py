"""Work on the parts of a table, done by processes of a Ray cluster.

Ray Data keeps the processes, gives them parts, and gives a part of a process that was lost to another one.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from lspe.cluster.parts import Part
from lspe.errors import UserError

_MOST_TRIES = 4
_MEMORY_FOR_OBJECTS = 200 * 2**20
"""Of a cluster on this machine: nothing but descriptions of parts and of what became of them goes through it."""


class Work(Protocol):
    """What is done with a part; can be pickled, and gives the same when it is done again."""

    def __call__(self, part: Part, processes: int) -> dict[str, Any]:
        """Work on a part with so many processes that read molecules, and say what became of it, fit for JSON."""


def work_on_parts(
    work: Work, parts: Sequence[Part], folder: Path, *, workers: int | None = None, gpu: bool = False
) -> Iterator[tuple[Part, dict[str, Any]]]:
    """Each part with what `work` says of it, in the order in which they are done.

    Args:
        work: what to do.
        parts: of the table.
        folder: where it is noted how often a part was tried.
        workers: how many processes; as many as the cluster has cores, if not given.
        gpu: whether each needs a GPU.

    """
    ray = _import_ray()
    with _cluster(ray, workers):
        workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        rows = ray.data.from_items([asdict(part) for part in parts], override_num_blocks=len(parts))
        done = rows.map(
            _Worker,
            fn_constructor_args=(work, str(folder.absolute())),
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(parts))),
            num_cpus=1,
            num_gpus=1 if gpu else None,
        )
        for row in done.iter_rows():
            answer = json.loads(row["answer"])
            if "error" in answer:
                raise UserError(answer["error"])
            yield parts[row["number"]], answer


class _Worker:
    """Lives in a process of the cluster."""

    def __init__(self, work: Work, folder: str) -> None:
        self.work, self.folder = work, Path(folder)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        part = Part(**row)
        return {"number": part.number, "answer": json.dumps(self._answer(part))}

    def _answer(self, part: Part) -> dict[str, Any]:
        tries = self._count_try(part)
        if tries > _MOST_TRIES:
            return {
                "error": f"{part.path}: the process at rows {part.begin:,} to {part.end:,} was lost {_MOST_TRIES} "
                "times. It may be for want of memory: use fewer processes on a machine (--workers)"
            }
        try:
            # a molecule may have ended the process: then those who read it are others, and it is found out
            return self.work(part, processes=1 if tries == 1 else 2)
        except UserError as error:
            return {"error": str(error)}

    def _count_try(self, part: Part) -> int:
        """Which try this is, from 1."""
        for number in range(1, _MOST_TRIES + 1):
            try:
                (self.folder / f"{part.number:06d}.{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return number
        return _MOST_TRIES + 1


def _import_ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError:
        raise UserError("--engine ray needs Ray Data: pip install 'lspe[ray]'") from None
    return ray


@contextmanager
def _cluster(ray: Any, workers: int | None) -> Iterator[None]:
    """The cluster this process is in, else the one that RAY_ADDRESS names, else one of this machine's cores."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if not os.environ.get("RAY_ADDRESS"):
        options |= {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _MEMORY_FOR_OBJECTS}
    try:
        ray.init(**options)
    except Exception as error:  # Ray has no class of its own for a cluster that does not answer or start in time
        what, then = "Ray could not be started", "On a busy machine try again, or leave --engine ray out"
        if where := os.environ.get("RAY_ADDRESS"):
            what = f"the Ray cluster at RAY_ADDRESS={where} does not answer"
            then = "Start it (ray start --head), or leave RAY_ADDRESS out for processes on this machine"
        raise UserError(f"{what}: {error}. {then}") from error
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()
