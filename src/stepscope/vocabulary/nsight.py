"""What Nsight Systems says of itself in its reports: why the work of a device is not in one, and how to record it."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.vocabulary.patterns import Pattern

_WHY = (
    (
        Pattern(r"Installed CUDA driver version \((?P<driver>[\d.]+)\) is not supported by this build"),
        "this release of Nsight Systems does not know the CUDA driver {driver}",
        "install a newer Nsight Systems, which knows CUDA {driver}, and record again",
    ),
    (
        Pattern(r".*CUPTI_ERROR_(?P<error>(?!NOT_INITIALIZED)\w+)"),
        "CUPTI could not record the device ({error})",
        "check that Nsight Systems is as new as the driver, and that no other profiler uses the device; record again",
    ),
    (
        Pattern(r"CUDA profiling might have not been started correctly|Not all CUDA events might have been collected"),
        "CUDA was not recorded, or not all of it, as Nsight Systems says itself",
        "record again, until the program ends by itself; if the device is missing again, update Nsight Systems",
    ),
)


def why_no_device(messages: Iterable[str]) -> tuple[str, str] | None:
    """Why the work of devices was not recorded, and what to do, by the recorder's own messages; None if none says so.

    >>> why_no_device(["Not all CUDA events might have been collected."])[0]
    'CUDA was not recorded, or not all of it, as Nsight Systems says itself'
    """
    said = list(messages)
    for pattern, why, fix in _WHY:
        found = next(filter(None, map(pattern.match, said)), None)
        if found is not None:
            return why.format(**found.groupdict()), fix.format(**found.groupdict())
    return None
