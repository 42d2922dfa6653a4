"""The verdict read from the account and the first change: which cause it names, and what the headline says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from draw import Sort, draw
from places import ROOT

from stepscope.analysis.account.account import AccountRow, NextCause, StepAccount, account_of
from stepscope.analysis.account.account_text import (
    SENTENCE_OF,
    VERDICT_OF_CAUSE,
    FirstChange,
    cause_words,
    judge_account,
)
from stepscope.analysis.registry import TOOLS
from stepscope.errors import Problem
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

SYNC = Sort(K.SYNC, "cudaStreamSynchronize")
ITEM = Sort(K.PYTHON_CALL, "train.py(9): __getitem__")
LOADER = Sort(K.PYTHON_CALL, "/x/site-packages/torch/utils/data/dataloader.py(7): fetch")
LOOP = Sort(K.PYTHON_CALL, "train.py(20): main")


def account(shares: dict[str, float], *, devices: str | None = "the GPU", error: float = 0.0) -> StepAccount:
    """An account of a step of 100 ms without culprits."""
    rows = [AccountRow(cause, int(share * 1e9), None, None, None) for cause, share in shares.items()]
    rows.sort(key=lambda row: -row.ps)
    return StepAccount("host", 3, 100 * 10**9, rows, error, 5, devices, None, [], {}, {}, 100 * 10**9)


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ({"input": 60, "device_compute": 40}, "input_bound"),
        ({"launch": 60, "device_compute": 40}, "launch_bound"),
        ({"communication": 60, "device_compute": 40}, "communication_bound"),
        ({"compile": 60, "device_compute": 40}, "compile_bound"),
        ({"python": 60, "device_compute": 40}, "host_bound"),
        ({"checkpoint": 60, "device_compute": 40}, "host_bound"),
        ({"host_compute": 60, "device_compute": 40}, "host_bound"),
        ({"copy": 60, "device_compute": 40}, "compute_bound"),
        ({"device_gap": 60, "launch": 40}, "compute_bound"),
        ({"unknown": 60, "device_compute": 40}, "unknown"),
    ],
)
def test_without_a_change_the_longest_cause_is_the_limit(shares: dict[str, float], verdict: str) -> None:
    found = judge_account(account(shares))

    assert (found.name, found.cause, found.share_percent) == (verdict, next(iter(shares)), 60.0)


def test_a_cause_without_which_the_step_would_be_as_long_is_not_the_limit() -> None:
    """The device works beside a longer host: the limit is what the step would be shorter without."""
    beside = account({"device_compute": 60, "host_compute": 40})
    gains = {"device_compute": 10**9, "host_compute": 30 * 10**9}
    rows = [replace(row, gain_ps=gains[row.cause]) for row in beside.rows]

    found = judge_account(replace(beside, rows=rows))

    assert (found.name, found.cause, found.share_percent) == ("host_bound", "host_compute", 40.0)
    assert found.sentence == "host-bound: 40.0 % of each step is computation on the host; fixing it saves most"
    assert found.evidence[1] == "computation on the device takes 60.0 %, but other work runs beside it"


def test_where_no_cause_alone_shortens_the_step_much_the_longest_is_the_limit() -> None:
    beside = account({"device_compute": 60, "host_compute": 40})
    rows = [replace(row, gain_ps=10**9) for row in beside.rows]

    assert judge_account(replace(beside, rows=rows)).name == "compute_bound"


@pytest.mark.parametrize(
    ("python", "cause"), [(35, "python"), (20, "device_compute")], ids=["idle for more than half", "idle for less"]
)
def test_where_devices_idle_for_more_than_half_of_the_step_it_is_what_they_idle_for(python: int, cause: str) -> None:
    """All that keeps devices from work stands against what they do."""
    split = account({"device_compute": 100 - python - 25, "python": python, "launch": 25})
    rows = [replace(row, idle_ps=0 if row.cause == "device_compute" else row.ps) for row in split.rows]

    found = judge_account(replace(split, rows=rows))

    assert found.cause == cause
    assert ("computation on the device takes 40.0 %, but the GPU is idle for 60.0 % of the step" in found.evidence) == (
        cause == "python"
    )


def test_without_a_device_the_host_s_computation_is_the_computation() -> None:
    assert judge_account(account({"host_compute": 90, "python": 10}, devices=None)).name == "compute_bound"


def test_copies_to_a_device_bring_the_input() -> None:
    found = judge_account(account({"device_compute": 40, "transfer": 45, "copy": 15}))

    assert (found.name, found.share_percent) == ("input_bound", 45.0)
    assert found.sentence == "input-bound: 45.0 % of each step is copying data in"


def test_of_the_causes_that_a_change_shortens_the_one_that_takes_most_of_the_step_is_the_limit() -> None:
    change = FirstChange(("launch", "python"), 40.0)

    assert judge_account(account({"python": 56, "launch": 28, "host_compute": 16}), change).cause == "python"
    assert judge_account(account({"python": 45, "launch": 28, "host_compute": 27}), change).cause == "launch"


COMPUTING = {"device_compute": 45.0, "input": 33.0, "launch": 22.0}


def test_what_the_first_change_shortens_is_the_limit_and_one_sentence_says_that_another_cause_is_longer() -> None:
    found = judge_account(account(COMPUTING), FirstChange(("input", "python"), 31.0))

    said = "input-bound: 33.0 % of each step is input; fixing it saves most"
    assert (found.name, found.sentence) == ("input_bound", said)
    assert found.evidence == (
        "33.0 % of each step is input",
        "computation on the device takes more, 45.0 %, but no known change shortens it as much",
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (FirstChange(("input", "device_compute"), 31.0), "; the first advice shortens both"),
        (FirstChange(("input",), 60.0), "; the first advice shortens both"),
        (FirstChange(("input", "python"), None), ", but how much of it the first advice saves is not known"),
    ],
    ids=["shortens both", "gains more than its causes take", "of unknown gain"],
)
def test_of_a_change_of_the_longest_cause_or_of_unknown_gain_it_is_not_said_that_it_saves_most(change, why) -> None:
    rows = {"device_compute": 45.0, "input": 43.0, "launch": 12.0}
    found = judge_account(account(rows), change)

    assert found.sentence == "input-bound: 43.0 % of each step is input; advice shortens it"
    assert found.evidence[1] == f"computation on the device takes more, 45.0 %{why}"


@pytest.mark.parametrize(("share", "cause"), [(49.0, "python"), (51.0, "device_compute")])
def test_devices_that_compute_for_over_half_of_a_step_are_its_limit(share: float, cause: str) -> None:
    """A pass that computed for 59 % was called host-bound, as CUDA graphs would save the 31 % of Python between."""
    passes = account({"device_compute": share, "python": 96.0 - share, "launch": 4.0})

    assert judge_account(passes, FirstChange(("launch", "python"), 34.0)).cause == cause


@pytest.mark.parametrize(
    ("shares", "cause"),
    [
        ({"contention": 60.0, "python": 30.0, "host_compute": 10.0}, "python"),
        ({"contention": 60.0, "input": 16.0, "host_compute": 14.0, "python": 10.0}, "input"),
        ({"contention": 60.0, "host_compute": 30.0, "python": 10.0}, "host_compute"),
        ({"contention": 90.0, "python": 10.0}, "python"),
    ],
)
def test_a_busy_machine_is_said_beside_the_limit_of_the_program(shares: dict[str, float], cause: str) -> None:
    found = judge_account(account(shares, devices=None))
    own = 100.0 * shares[cause] / (100.0 - shares["contention"])
    said = f"{shares['contention']:.1f} % of each step waits for a free core; of the rest, {own:.1f} % is "

    assert found.cause == cause
    assert found.sentence.startswith("machine busy, else ")
    assert found.sentence.partition(": ")[2].startswith(said)
    assert not any("takes more" in sentence for sentence in found.evidence)


@pytest.mark.parametrize(
    ("percent", "said"),
    [
        (60.0, "compute-bound: 90.0 % of each step computes, mostly gradients that no update uses"),
        (20.0, "compute-bound: 90.0 % of each step computes, partly gradients that no update uses"),
        (5.0, "compute-bound: 90.0 % of each step is computation on the host"),
    ],
    ids=["most of it", "a part", "little"],
)
def test_of_computation_the_headline_says_what_the_first_change_is_about(percent: float, said: str) -> None:
    change = FirstChange(("host_compute",), percent, "gradients that no update uses", percent)

    assert judge_account(account({"host_compute": 90, "python": 10}, devices=None), change).sentence == said


def test_of_a_step_that_only_waits_for_a_core_nothing_else_is_the_limit() -> None:
    waits = account({"contention": 100.0}, devices=None)

    found = judge_account(replace(waits, rows=[replace(waits.rows[0], gain_ps=0)]))

    assert (found.cause, found.sentence) == (
        "contention",
        "machine busy: 100.0 % of each step is waiting for a free core",
    )


def test_a_change_that_gains_little_does_not_decide() -> None:
    """A run that computes for 65 % of each step was called communication-bound."""
    shares = {"device_compute": 65.0, "communication": 16.0, "python": 19.0}
    found = judge_account(account(shares), FirstChange(("communication",), 9.0))

    assert (found.name, found.share_percent) == ("compute_bound", 65.0)
    assert len(found.evidence) == 1  # that it is about something else stands above the advice


def test_a_change_that_gains_more_than_its_cause_takes_in_the_step_shown_does_not_decide() -> None:
    """A loop over a DataLoader was called host-bound beside a bar of 74 % computation: input took 11 % of the median
    step, and more of those in which an epoch begins."""
    shares = {"host_compute": 74.0, "python": 15.5, "input": 10.5}

    assert judge_account(account(shares, devices=None), FirstChange(("input",), 29.0)).cause == "host_compute"


@pytest.mark.parametrize(("share", "cause"), [(35.0, "launch"), (32.0, "host_compute")])
def test_a_change_decides_if_its_cause_takes_at_least_half_as_long_as_the_longest(share: float, cause: str) -> None:
    """A step that runs Python for 55 % was called input-bound, as 25 % of input could be taken away."""
    computes = account({"host_compute": 100.0 - share, "launch": share}, devices=None)

    assert judge_account(computes, FirstChange(("launch", "python"), None)).cause == cause
    assert judge_account(computes, FirstChange(("launch", "python"), share)).cause == cause


def test_in_a_capture_without_steps_a_change_of_unknown_gain_decides_only_if_nothing_else_takes_longer() -> None:
    """A forward pass of which the DataLoader took 33 % was called input-bound above a bar of 65 % computation."""
    found = replace(account({"host_compute": 65.0, "input": 35.0}, devices=None), has_steps=False)

    assert judge_account(found, FirstChange(("input",), None)).cause == "host_compute"
    assert judge_account(found, FirstChange(("input",), 30.0)).cause == "input"


def test_of_the_causes_of_a_change_the_most_telling_one_with_a_large_share_is_named() -> None:
    shares = {"python": 40.0, "checkpoint": 25.0, "host_compute": 35.0}

    assert judge_account(account(shares), FirstChange(("checkpoint", "python"), 60.0)).cause == "checkpoint"
    assert judge_account(account(shares), FirstChange(("launch", "python"), 60.0)).cause == "python"


def test_two_causes_that_differ_by_less_than_the_noise_are_both_named() -> None:
    found = judge_account(account({"input": 40.2, "launch": 39.8, "device_compute": 20}, error=1.0))

    assert found.evidence[1] == "waiting for launches takes as long, within the noise, 39.8 %"


def test_one_step_that_differs_from_the_others_makes_no_noise() -> None:
    """90 % against 10 % was called within the noise, because one step of nine was slow."""
    steps = "".join(f"M{number}--------" for number in range(9)) + "M9---------------M10"
    work = "aaaaaaaaaI" * 9 + "aaaaaaaaaI-------a"
    found = account_of(draw(f"host main | {steps}\nhost main | {work}"))
    assert found is not None

    assert found.mean_percent["input"] > 10
    assert not any("noise" in sentence for sentence in judge_account(found).evidence)


def test_a_cause_whose_place_another_one_takes_is_said_to_gain_little() -> None:
    rival = replace(account({"launch": 60, "device_compute": 40}), rivals=[NextCause("device_compute", 40, 10**11)])
    rival.rows[0] = replace(rival.rows[0], gain_ps=5 * 10**9)

    assert judge_account(rival).evidence[1] == (
        "computation on the device comes close behind: shortening only one of the two saves little"
    )


@pytest.mark.parametrize("has_steps", [True, False])
@pytest.mark.parametrize("cause", SENTENCE_OF)
def test_a_headline_has_at_most_15_words_and_one_number_or_two_on_a_busy_machine(cause: str, has_steps: bool) -> None:
    longest, shorter = account({cause: 60, "copy": 40}), account({cause: 40, "copy": 60})
    for each, change in ((longest, None), (shorter, FirstChange((cause,) * (cause != "contention"), 30.0))):
        found = judge_account(replace(each, has_steps=has_steps), change).sentence
        is_busy = found.startswith("machine busy, else")

        assert len(found.split()) <= (22 if is_busy else 15)
        assert len(re.findall(r"\d+(?:\.\d+)?", found)) == 1 + is_busy


def test_the_headline_names_the_culprit_and_the_evidence_its_place_and_that_the_device_is_idle() -> None:
    trace = draw(
        """
        host main | Z------------------------------
        host main |  M0------    M1------    M2
        host main |  L1S- I------L2S- I------L3
        host main |        Q----       Q----
        host main |        Y----       Y----
        gpu0 s    |    K1          K2
        """,
        {"S": SYNC, "Y": ITEM, "Q": LOADER, "Z": LOOP},
    )
    found = account_of(trace)
    assert found is not None
    verdict = judge_account(found)

    assert verdict.sentence == "input-bound: 58.3 % of each step is input, mostly `__getitem__`"
    assert verdict.evidence[0] == (
        "58.3 % of each step is input, while the GPU is idle; most of it is `train.py:9 __getitem__`"
    )


def test_the_page_on_verdicts_has_every_verdict_with_its_words_and_tools_to_look_closer() -> None:
    text = (ROOT / "docs" / "verdicts.md").read_text("utf-8").partition("Beside the verdict")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and "`" in line]

    said = {(row[0], row[1].strip("`"), row[2]) for row in rows}
    verdicts = [*VERDICT_OF_CAUSE.items(), ("host_compute", "compute_bound")]
    wanted = {(label_of(cause, verdict), cause, cause_words(cause)) for cause, verdict in verdicts}
    assert said == wanted
    tools = {tool.strip("` ") for row in rows for tool in row[5].split(",")}
    assert tools <= {tool.name for tool in TOOLS}
    assert all(len(row[4].split()) <= 25 for row in rows)


def label_of(cause: str, verdict: str) -> str:
    return {"contention": "machine busy", "copy": "copy-bound"}.get(cause, verdict.replace("_", "-"))


def test_time_that_the_lost_ops_of_a_framework_may_have_taken_is_unexplained_and_not_python():
    """A job that ended with `os._exit` inside its capture was told to run less Python and promised 12.5x."""
    loop = "host main | M0--------M1--------M2--------"
    busy = [(0, 10, 10, 0), (10, 20, 10, 0), (20, 30, 10, 0)]
    cut = replace(draw(loop), framework="torch", problems=(Problem("unfinished", "the program ended with os._exit"),))

    assert [row.cause for row in found_account(draw(loop, usage=busy)).rows] == ["python"]
    assert [row.cause for row in found_account(cut).rows] == ["unknown"]
    assert judge_account(found_account(cut)).sentence == "unknown: 100.0 % of each step is unexplained"


def found_account(trace: HostTrace) -> StepAccount:
    account = account_of(trace)
    assert account is not None
    return account
