"""Silence is no evidence: how the causes of a step are known, and what a thread waits for that nothing names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from draw import MS, Sort, draw
from gallery import gallery

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import account_json
from stepscope.analysis.account.causes import Cause, event_causes
from stepscope.analysis.account.counted import contradiction_of
from stepscope.analysis.facts.changes import changes_of
from stepscope.model import EventKind as K

SORTS = {
    "X": Sort(K.COMPILE, "compile"),
    "F": Sort(K.TRACED_FUNCTION, "train_step"),
    "Y": Sort(K.PYTHON_CALL, "$train.py:1 main"),
    "Q": Sort(K.PYTHON_CALL, "$array.py:650 _value"),
    "Z": Sort(K.PYTHON_CALL, "$queue.py:154 get"),
    "W": Sort(K.OTHER, "ThunkExecutor::Execute (wait for completion)"),
    "O": Sort(K.OTHER, "Pool::Run"),
    "N": Sort(K.ANNOTATION, "train"),
    "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: AddmmBackward0"),
}


@gallery("""
    a silent thread waits for the device that computes what it launched
        host main | M0----------M1----------
        host main | L1          L2
        gpu0 s    |   K1--------  K2--------
        causes = {"launch": 2, "device_compute": 10}
    silence with nothing else at work is not known
        host main | M0----------M1----------
        host main | aaaa        aaaa
        causes = {"host_compute": 4, "unknown": 8}
    a recorded call of Python is Python
        host main | M0----------M1----------
        host main | aaaaYYYYYYYYaaaaYYYYYYYY
        causes = {"host_compute": 4, "python": 8}
    a wait of JAX that only its name tells is a wait for the device
        host main | M0----------M1----------
        host main | L1Q---------L2Q---------
        gpu0 s    |   K1-------   K2-------
        causes = {"launch": 2, "device_compute": 9, "python": 1}
    the call that waits for the backward pass has started it
        host main | Y-------------------
        host main |  a-      a-Q--------
        host back |              B----B-
        causes = {"host_compute": 11, "python": 7, "launch": 2}
    a thread that polls a queue ends no wait
        host main   | M0----------M1----------
        host main   | F-Q---------F-Q---------
        host pool   |   a--------   a--------
        host logger | Z-Z--Z-Z-Z--Z-Z--Z-Z-Z--
        causes = {"unknown": 2, "host_compute": 9, "python": 1}
    waiting for a program whose ops are not recorded is computing
        host main | M0----------M1----------
        host main | F-Q---------F-Q---------
        host pool |   a--W------  a--W------
        causes = {"unknown": 2, "host_compute": 10}
    a call that hands over memory while a device copies it is copying, also where it returns first
        host main | M0----------M1----------
        host main | L1------aa  L2------aa
        gpu0 s    |  U1------    U2------
        causes = {"transfer": 8, "host_compute": 2, "unknown": 2}
    a range around the run says nothing of silence, and autograd's thread that launches most is not the loop
        host main           | N-----------------------
        host main           | L1          L2
        host pt_autograd_0  |               L3L4L5
        gpu0 s              |  K1          K2 K3K4K5
        causes = {"launch": 2, "device_compute": 10, "unknown": 12}
    what follows a compilation in one call prepares the first run of the program
        host main | M0----------M1----------
        host main | F-----------F-----------
        host main | XXXX        XXXX
        causes = {"compile": 12}
""")
def test_what_a_thread_waits_for(picture: str, expected: dict[str, Any]) -> None:
    account = account_of(draw(picture, SORTS))

    assert account is not None
    assert {row.cause: row.ps / MS for row in account.rows} == expected["causes"]


@pytest.mark.parametrize(
    ("picture", "known"),
    [
        ("host main | M0----M1----\nhost main | aaa---aaa---", {"host_compute": "recorded", "unknown": "not_recorded"}),
        ("host main | M0----M1----\nhost main | aaaYYYaaaYYY", {"host_compute": "recorded", "python": "recorded"}),
        (
            "host main | M0----M1----\nhost main | F-Q---F-Q---\nhost pool |   W---  W---",
            {"host_compute": "inferred"},
        ),
    ],
    ids=["silence", "a call of Python", "a program elsewhere"],
)
def test_each_cause_says_how_it_is_known(picture: str, known: dict[str, str]) -> None:
    found = account_json(account_of(draw(picture.replace("aaa---", "aaa   "), SORTS)))

    for row in found:
        parts = row["known"]
        assert isinstance(parts, dict)
        assert sum(parts.values()) == pytest.approx(100.0, abs=0.01)
        assert row["cause"] not in known or parts[known[str(row["cause"])]] == 100.0


def test_processor_time_says_that_a_silent_thread_ran() -> None:
    picture = "host main | M0--------M1--------\nhost main | a---      a---"
    busy = draw(picture, usage=[(0, 10, 10, 0), (10, 20, 10, 0)])

    assert {str(row["cause"]): row["known"] for row in account_json(account_of(busy))}["python"] == {
        "recorded": 100.0, "inferred": 0.0, "not_recorded": 0.0,
    }  # fmt: skip


def test_an_account_that_says_nothing_computes_while_a_device_does_is_found() -> None:
    quiet = draw("host main | M0--------M1--------\nhost main | L1        L2\ngpu0 s    |   K1------  K2------")
    alone = draw("host main | M0--------M1--------\nhost main | a---      a---")

    assert (found := contradiction_of(quiet)) is not None
    assert found.percent == 0.0
    assert contradiction_of(alone) is None


def test_a_file_of_which_no_row_is_of_a_known_kind_is_not_called_python() -> None:
    """Cycles of warps, requests of a server: another tool's rows, on threads that it made up."""
    account = account_of(draw("host main | LLLLLL-LLL---LLLLLL-", {"L": Sort(K.OTHER, "Line 58")}))

    assert account is not None
    assert [row.cause for row in account.rows] == ["unknown"]


def test_a_thread_that_waits_for_a_request_from_outside_says_nothing_of_the_loop_that_waits_for_it() -> None:
    trace = draw(
        """
        host main | M0------M1------
        host main | F-EEEEE F-EEEEE
        host io   | EEEEEEEEEEEEEEEE
        """,
        {"F": SORTS["F"], "E": Sort(K.PYTHON_CALL, "$poll.py:80 poll")},
    )
    calls = np.flatnonzero(trace.events.kind == K.PYTHON_CALL)
    of_main = trace.events.line[calls] == trace.events.line[np.flatnonzero(trace.events.kind == K.STEP_MARK)[0]]

    cause = event_causes(trace)[calls]
    assert {*cause[of_main].tolist()} == {Cause.PYTHON}
    assert {*cause[~of_main].tolist()} == {Cause.UNKNOWN}


def test_without_copies_the_calls_that_hand_them_over_take_no_time() -> None:
    trace = draw("""
        host main | M0----------M1----------M2----------
        host main | L1------aa  L2------aa  L3------aa
        gpu0 s    |  U1------    U2------    U3------
        """)
    found = changes_of(trace)

    assert found is not None
    assert found.predicted["copies_in"].then_ps <= 4 * MS
