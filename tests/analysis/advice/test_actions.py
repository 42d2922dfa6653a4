"""What each action on the input can give: on a few busy cores, workers give little."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import draw
from reporting import context_of

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.advice.rule import (
    Beside,
    Gain,
    Named,
    most_beside,
    name_interval,
    order_actions,
    place_actions,
)
from stepscope.analysis.trace.program_facts import OpThreads

ACTIONS = (Beside("use workers"), "do it once, before training")
GAIN = Gain(10.0, 2.0, "", 1.5, 2.5)  # of steps of 10 ms, 8 of which make input


def on_cores(cores: int | None, used: float | None) -> Context:
    context = context_of(draw("host main | M0--------M1--------\nhost main | I-------x-I-------x-"))
    host = replace(context.hosts[0], op_threads=OpThreads(cores, cores), cores_used=used)
    return replace(context, hosts=(host,))


@pytest.mark.parametrize(
    ("cores", "used", "most"),
    [(2, 1.9, 1.05), (2, 1.0, 2.0), (8, 1.0, 8.0), (2, None, 1.67), (None, None, None)],
)
def test_no_more_than_the_free_cores(cores: int | None, used: float | None, most: float | None) -> None:
    """Without a count, the step's 2 ms take all cores and the input's 8 ms one: 10 over 2 + 8 / 2."""
    found = most_beside(on_cores(cores, used), 8.0)

    assert most == (None if found is None else pytest.approx(found, abs=0.01))


def test_an_action_on_a_part_gains_its_share_and_cheaper_work_half_of_what_goes_at_least() -> None:
    """Of 10 ms, 8 go with the whole part: 2 with a quarter of it, and the whole of it bounds what that gives."""
    of_quarter = GAIN.of_part(0.25)

    assert (of_quarter.then_ms, of_quarter.least_ms, of_quarter.most_ms) == (8.0, 1.5, 8.125)
    assert (GAIN.of_cheaper().then_ms, GAIN.of_cheaper().most_ms) == (2.0, 6.0)


def test_what_cannot_help_here_is_not_said_and_the_first_action_has_its_own_gain() -> None:
    actions, gain = place_actions(on_cores(2, 1.95), ACTIONS, GAIN, 8.0)
    assert actions == ("do it once, before training: up to 6.7x",)
    assert (gain.then_ms, gain.least_ms, gain.most_ms) == (2.0, 1.5, 6.0)

    actions, _ = place_actions(on_cores(2, 1.25), ACTIONS, GAIN, 8.0)
    assert actions == ("do it once, before training: up to 6.7x", "use workers: at most 1.6x on these 2 cores")


def test_where_cores_are_free_workers_come_first() -> None:
    actions, gain = place_actions(on_cores(16, 1.0), ACTIONS, GAIN, 8.0)

    assert actions[0] == "use workers: at most 5x on these 16 cores"
    assert gain.then_ms == 2.0


def test_work_that_only_moves_gives_no_more_than_the_cores() -> None:
    actions, gain = place_actions(on_cores(2, 1.0), ACTIONS[:1], GAIN, 8.0)

    assert (actions, gain.then_ms) == (("use workers: at most 2x on these 2 cores",), 5.0)


def test_on_an_unknown_machine_nothing_is_said_of_cores() -> None:
    assert place_actions(on_cores(None, None), ACTIONS, GAIN, 8.0) == (ACTIONS, GAIN)


def test_what_the_recording_shows_to_be_done_comes_first() -> None:
    actions = (*ACTIONS, Named("parse that text once"), ACTIONS[1])

    assert order_actions(actions) == ("parse that text once", *ACTIONS)
    assert place_actions(on_cores(16, 1.0), actions, GAIN, 8.0)[0][0] == "parse that text once: up to 6.7x"


def test_without_an_upper_end_cheaper_work_gains_no_named_most() -> None:
    open_end = replace(GAIN, least_ms=0.0)

    assert place_actions(on_cores(2, 1.95), ACTIONS, open_end, 8.0)[0] == ("do it once, before training",)


def rarely(*actions: str) -> Advice:
    """Advice on 6 of 10 ms."""
    gain = Gain(10.0, 4.0, "", 3.0, 5.0)
    return gain.advice(
        rule="line", kind="python_overhead", title="", evidence="", actions=actions, tool="", confidence=0.8
    )


def test_doing_it_every_so_many_steps_has_a_number_and_keeps_a_twentieth() -> None:
    found = name_interval(rarely("log every N steps", "log less"))

    assert found.actions == ("log every 20 steps", "log less")
    assert (found.predicted_step_time_ms, found.predicted_speedup) == (4.3, 2.33)


def test_of_an_action_that_is_not_the_first_it_is_said_beside_it() -> None:
    found = name_interval(rarely("log less", "or log every N steps"))

    assert found.actions == ("log less", "or log every 20 steps: about 2.33x faster")
    assert found.predicted_speedup == 2.5


def test_what_runs_in_each_fourth_step_now_has_to_run_in_each_eightieth() -> None:
    assert name_interval(rarely("collect every N steps"), every=4.0).actions == ("collect every 80 steps",)
