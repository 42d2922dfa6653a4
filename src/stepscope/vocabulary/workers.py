"""Names of workers.  Sessions are looked for with them before anything is computed, so no library is imported here."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.vocabulary.patterns import Pattern

_PROCESS = Pattern(r"_\d+$")
_RANK = Pattern(r"_rank\d+$")
_NUMBERED_RANK = Pattern(r"(?i)rank[ _-]?\d+")
_PLACE_IN_JOB = Pattern(
    r"(?i)(?:\[?\d+\]?|(?:(?:local|global)[_ -]?)?(?:rank|worker|process|proc|replica|task|gpu|npu)[_ -]?\d*)"
)


def without_process(worker: str) -> str:
    """A worker's name without the process number that PyTorch appends."""
    return _PROCESS.sub("", worker)


def machine_of(worker: str) -> str:
    """The machine of a worker: its name without the number of its process and the rank that Stepscope appends."""
    return _RANK.sub("", without_process(worker))


def describe_workers(workers: Sequence[str]) -> str:
    """How many hosts, processes of them or ranks some workers are.

    >>> describe_workers(["a", "b"]), describe_workers(["a_17", "a_18"]), describe_workers(["rank 0", "rank 1"])
    ('2 hosts', '2 processes of one host', '2 ranks')
    """
    count, machines = len(workers), {machine_of(worker) for worker in workers}
    names_places = any(map(_PLACE_IN_JOB.fullmatch, machines))  # such as `rank 0`: of which machine is not known
    if count == 1 or (count == len(machines) and not names_places):
        return f"{count} host{'' if count == 1 else 's'}"
    if names_places:
        return f"{count} {'ranks' if all(map(_NUMBERED_RANK.fullmatch, workers)) else 'processes'}"
    return f"{count} processes of {'one host' if len(machines) == 1 else f'{len(machines)} hosts'}"
