"""Names of workers.  Sessions are looked for with them before anything is computed, so no library is imported here."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.vocabulary.patterns import Pattern

_PROCESS = Pattern(r"_\d+$")
_RANK = Pattern(r"_rank\d+$")
_PLACE_IN_JOB = Pattern(
    r"(?i)(?:\[?\d+\]?|(?:(?:local|global)[_ -]?)?(?:rank|worker|process|proc|replica|task|gpu|npu)[_ -]?\d*)"
)


def without_process(worker: str) -> str:
    """A worker's name without the process number that PyTorch appends."""
    return _PROCESS.sub("", worker)


def machine_of(worker: str) -> str:
    """The machine of a worker: its name without the number of its process and the rank that Stepscope appends."""
    return _RANK.sub("", without_process(worker))


def count_machines(workers: Iterable[str]) -> int | None:
    """How many machines some workers run on; None if a name tells only the place in the job, such as `rank 0`."""
    machines = {machine_of(worker) for worker in workers}
    return None if any(_PLACE_IN_JOB.fullmatch(machine) for machine in machines) else len(machines)
