"""Steps of which the record of the device holds nothing, though their launches were recorded."""

from __future__ import annotations

from stepscope.analysis.account.account import account_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import EventKind, HostTrace
from tests.helpers.draw import MS, Sort, draw

_SORTS = {
    "L": Sort(EventKind.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
    "W": Sort(EventKind.SYNC, "cudaDeviceSynchronize"),
}


def lengths(trace: HostTrace) -> list[int]:
    """How long each whole step lasts, in ms."""
    found = steps_of(trace)
    return (found.length_ps[found.complete] // MS).tolist()


def test_a_loop_that_waits_in_each_step_keeps_its_steps_though_the_record_of_the_device_ends() -> None:
    trace = draw(
        """
            host main | M0------M1------M2------M3------M4------
            host main | L1W----- L2W---- L3W---- L4W---- L5W----
            gpu0 s    |   K1---   K2---
        """,
        _SORTS,
    )
    assert lengths(trace) == [8, 8, 8, 8, 8]


def test_the_account_is_of_a_step_whose_work_was_recorded() -> None:
    trace = draw(
        """
            host main | M0------M1------M2------M3------M4------
            host main | L1W----- L2W---- L3W---- L4W---- L5W----
            gpu0 s    |   K1---   K2---
        """,
        _SORTS,
    )
    account = account_of(trace)
    assert account is not None
    shares = {row.cause: round(account.percent(row.ps)) for row in account.rows}
    assert shares["device_compute"] >= 60
