"""Names of workers.  Sessions are looked for with them before anything is computed, so no library is imported here."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

_PROCESS = Pattern(r"_\d+$")


def machine_of(worker: str) -> str:
    """The machine of a worker: the worker's name without the process number that PyTorch appends."""
    return _PROCESS.sub("", worker)
