"""What a device does or waits for at any time, on drawn traces: each picture has its ribbon drawn below it."""

from __future__ import annotations

import numpy as np
from draw import MS, Sort, draw

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import causes_by_device
from stepscope.analysis.account.ribbon import ribbon_of, ribbon_planes, stretch_of, work_wait
from stepscope.analysis.trace.spans import Spans
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

ITEM = Sort(K.PYTHON_CALL, "data.py(29): collate")
LETTERS = {
    "k": Cause.DEVICE_COMPUTE, "i": Cause.INPUT, "l": Cause.LAUNCH, "n": Cause.COMMUNICATION, "p": Cause.PYTHON,
}  # fmt: skip
FED_BY_HAND = """
    host main | M0-----------M1-----------
    host main | I----L1      I----L2
    host main | Y---         Y---
    gpu0 s    |        K1---        K2----
"""


def drawn_ribbon(trace: HostTrace) -> str:
    """A letter for each millisecond of the one ribbon; `.` where nothing is known."""
    (plane,) = ribbon_planes(trace)
    begin, end = (time // MS for time in trace.span_ps())
    found = ["."] * (end - begin)
    for letter, cause in LETTERS.items():
        spans = ribbon_of(trace, plane).spans[cause]
        for start, stop in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
            for at in range(start // MS - begin, stop // MS - begin):
                assert found[at] == "."
                found[at] = letter
    return "".join(found)


def test_a_device_that_idles_waits_for_what_the_step_waits_for():
    assert drawn_ribbon(draw(FED_BY_HAND, {"Y": ITEM})) == "iiiiillkkkkk.iiiiillkkkkkk"


def test_own_work_comes_before_the_cause_of_the_step_and_computing_before_communicating():
    trace = draw(
        """
        host main | M0--------M1--------
        host main | L1L2      L3L4
        gpu0 s    |   K1--      K3--
        gpu0 c    |     N2----    N4----
        """
    )
    assert drawn_ribbon(trace) == "llkkkknnnnllkkkknnnn"


def test_a_host_without_devices_has_the_ribbon_of_its_loop():
    trace = draw(
        """
        host main | M0--------M1--------
        host main | I----     I----
        """
    )
    assert drawn_ribbon(trace) == "iiiii.....iiiii....."


def test_a_stretch_is_told_with_its_culprit():
    trace = draw(FED_BY_HAND, {"Y": ITEM})
    found = stretch_of(trace, ribbon_planes(trace)[0], 0, 5 * MS)

    assert found is not None
    assert (found.cause, found.begin_ps, found.end_ps, found.busy) == ("input", 0, 5 * MS, False)
    assert found.sentence == "waits 5.00 ms for input: mostly `data.py:29 collate`"
    assert trace.name_of(found.event) == "data.py(29): collate"


def test_a_stretch_of_one_cause_leaves_out_the_others():
    trace = draw(FED_BY_HAND, {"Y": ITEM})
    found = stretch_of(trace, ribbon_planes(trace)[0], 0, 20 * MS, Cause.LAUNCH)

    assert found is not None
    assert (found.begin_ps, found.end_ps, found.ps, found.count) == (5 * MS, 20 * MS, 4 * MS, 2)
    assert stretch_of(trace, ribbon_planes(trace)[0], 0, 5 * MS, Cause.LAUNCH) is None


def test_shares_of_cells_add_up():
    trace = draw(FED_BY_HAND, {"Y": ITEM})
    shares = ribbon_of(trace, ribbon_planes(trace)[0]).shares(0, 4, 32)  # cells of 4.3 ms

    assert (abs(shares.astype(int).sum(axis=0) - 255) <= 3).all()
    assert shares[Cause.INPUT].tolist() == [255, 42, 0, 255 * (4 * 2**32 - 13 * MS) // 2**32 + 1]


def test_work_waits_for_its_launch_or_for_the_work_before_it():
    trace = draw(
        """
        host main | M0--------M1-----------
        host main | L1L2      L3   L4
        gpu0 s    |   K1--K2-    K3  K4---
        """
    )
    rows = {int(trace.events.start_ps[row] // MS): row for row in range(len(trace.events))}
    waits = {start: work_wait(trace, row) for start, row in rows.items() if trace.name_of(row) == "kernel"}
    told = {at: (wait.how, wait.idle_ps // MS) for at, wait in waits.items() if wait}

    assert told == {2: ("launch", 0), 6: ("stream", 0), 13: ("launch", 4), 17: ("launch", 2)}
    assert all(trace.name_of(wait.event) == "launch" for wait in waits.values() if wait and wait.how == "launch")
    assert work_wait(trace, 0) is None


def test_the_bar_of_a_device_is_its_ribbon_summed_over_the_step_of_the_account():
    trace = draw(FED_BY_HAND, {"Y": ITEM})
    account = account_of(trace)

    assert account is not None
    (bar,) = account.device_bars
    (plane,) = ribbon_planes(trace)
    first = Spans(np.array([0]), np.array([account.step_ps]))
    ribbon = {each.name.lower(): (ribbon_of(trace, plane).spans[each] & first).total for each in Cause}
    assert bar.causes_ps == {cause: ps for cause, ps in ribbon.items() if ps}
    assert bar.causes_ps == {"input": 5 * MS, "launch": 2 * MS, "device_compute": 5 * MS, "unknown": MS}
    assert (bar.device, bar.busy_ps, sum(bar.causes_ps.values())) == ("GPU:0", 5 * MS, account.step_ps)


def test_the_bars_of_several_devices_are_what_the_pages_of_devices_say():
    """What only the other device does is in neither of a device's causes."""
    trace = draw(
        """
        host main | M0-----------M1-----------
        host main | L1L2         L3L4
        gpu0 s    |   K1------     K3------
        gpu1 s    |     K2--         K4--
        """
    )
    account, of_devices = account_of(trace), causes_by_device(trace)

    assert account is not None
    assert [bar.device for bar in account.device_bars] == ["GPU:0", "GPU:1"]
    for bar in account.device_bars:
        (step,) = (each for each in of_devices[bar.device] if each.is_median)
        assert bar.causes_ps == {cause.name.lower(): step.causes_ps[cause] for cause in Cause if step.causes_ps[cause]}
        assert bar.causes_ps["device_compute"] == bar.busy_ps == {"GPU:0": 8, "GPU:1": 4}[bar.device] * MS


def test_the_moments_of_a_step_add_up_to_its_account():
    """Also where a cause takes less than any moment that can be drawn."""
    steps, parts, work = "M0" + "-" * 598, "I-L1I-L2" + "I" + "-" * 591, "   K1-  K2" + "-" * 300
    account = account_of(draw(f"host main | {steps}\nhost main | {parts}\ngpu0 s    | {work}"))

    assert account is not None
    spent: dict[str, int] = {}
    for cause, ps in account.moments:
        spent[cause] = spent.get(cause, 0) + ps
    assert spent == {row.cause: row.ps for row in account.rows}
