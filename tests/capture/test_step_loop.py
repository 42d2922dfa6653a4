"""Which of the things that happen once per step are the steps of the training loop."""

from __future__ import annotations

import pytest

from stepscope.capture.steps.step_loop import (
    CALLS,
    DIFFERENTIATED,
    LOADED,
    MARKED,
    OPTIMIZED,
    StepLoop,
    StepSource,
    steps_in_a_row,
)

# One letter is one step of a source, and takes as long as the clock says.
SOURCES = {
    "b": StepSource(LOADED, "batch"),
    "g": StepSource(DIFFERENTIATED, "gradient"),
    "f": StepSource(CALLS, "small function", "f", size=1),
    "F": StepSource(CALLS, "large function", "F", size=9),
    "e": StepSource(CALLS, "gradients of one example", "e", size=6, updates=2),
    "u": StepSource(CALLS, "update", "u", size=6, updates=2),
    "v": StepSource(CALLS, "validation", "v", size=5),
    "o": StepSource(OPTIMIZED, "optimizer", "o"),
    "p": StepSource(OPTIMIZED, "another optimizer", "p"),
}

MANY = "".join(map(chr, range(0x410, 0x410 + 100)))
SOURCES |= {letter: StepSource(OPTIMIZED, "one of many", letter) for letter in MANY}


def _letter(source: StepSource) -> str:
    return next(letter for letter, each in {**SOURCES, "M": MARKED}.items() if each is source)


class Listener:
    """Writes down of which source each step is, and which start by themselves."""

    active = True

    def __init__(self) -> None:
        self.heard = ""

    def start_step(self, source: StepSource, number: int | None = None) -> None:
        self.heard += f"{_letter(source)}{number}-"

    def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
        self.heard += _letter(source)


def hear(happens: str, expected: int = 0, step_s: float = 1.0) -> StepLoop:
    """What a loop passes on of these steps; `M` is a mark of the program."""
    now, listener = [0.0], Listener()
    loop = StepLoop(clock=lambda: now[0])
    loop.add(listener)
    loop.expect(expected)
    for letter in happens:
        now[0] += step_s
        if letter == "M":
            loop.mark_step(1)
        else:
            loop.end_step(SOURCES[letter])
    loop.heard = listener.heard
    return loop


CASES = {
    "one source": ("ooo", "ooo"),
    "the more certain one counts at once": ("bgo" * 3, "bgooo"),
    "marks count before all, and the first one ends nothing": ("oMoMoM", "oM1-MM"),
    "of two functions the larger one": ("ffF" * 2, "ffFF"),
    "of two optimizers in one loop the one that steps first": ("op" * 3, "ooo"),
    "five steps of a critic for one of the generator": ("ooooop" * 2, "o" * 10),
    "gradients of single examples, and the update after all of them": ("eeeu" * 6, "eee" * 2 + "u" * 5),
    "an update after a number of them that varies": ("eeueeeueeeeu", "e" * 9),
    "two updates that take turns": ("eu" * 4, "eeee"),
    "a validation that comes regularly updates nothing": ("eeev" * 4, "e" * 12),
    "functions that are called twice between gradients are parts of a step": ("gFF" * 5, "gFFFFggg"),
    "one that is called once is the step": ("gF" * 4, "gFFFF"),
    "functions between gradients now and then are steps": ("gFFFgFFFFgFF", "gFFFFFFFFF"),
    "of a hundred optimizers in one loop the one that steps first": (MANY * 3, MANY[0] * 3),
    "evaluation between epochs": ("o" * 60 + "b" * 40 + "o" * 3, "o" * 63),
    "a long evaluation, shorter than the training": ("o" * 100 + "b" * 90 + "o", "o" * 101),
    "a warm-up by another optimizer": ("o" * 3 + "p" * 60, "o" * 3 + "p" * 10),
    "pretraining, then fine-tuning": ("o" * 70 + "p" * 100, "o" * 70 + "p" * 32),
    "three updates of an optimizer, then steps by hand": ("ggo" * 3 + "g" * 200, "ggoo" + "o" + "g" * 150),
    "a step after 64 moves is not given up during the next": ("f" * 64 + ("F" + "f" * 64) * 2, "f" * 64 + "FF"),
    "training comes back after an evaluation that was taken for the loop": (
        "oob" + "b" * 60 + "oo",
        "oo" + "b" * 11 + "oo",
    ),
}


@pytest.mark.parametrize(("happens", "heard"), CASES.values(), ids=CASES)
def test_one_source_is_the_loop(happens, heard):
    assert hear(happens).heard == heard


def test_while_an_optimizer_is_expected_batches_before_its_first_step_do_not_count():
    assert hear("bbgobgo", expected=OPTIMIZED).heard == "oo"


def test_an_optimizer_that_is_never_used_is_not_awaited_for_ever():
    assert hear("b" * 60, expected=OPTIMIZED).heard == "b" * 10


def test_steps_are_counted_on_when_a_loop_comes_back():
    loop = hear("oo" + "b" * 61 + "ooo")

    assert (loop.source, loop.count) == (SOURCES["o"], 5)


def test_a_loop_that_took_the_place_of_a_silent_one_is_counted_from_there():
    loop = hear("oo" + "b" * 61)

    assert (loop.source, loop.count, loop.was_silent) == (SOURCES["b"], 11, True)


def test_a_child_process_starts_anew():
    loop = hear("oooo")
    loop.forget()

    assert (loop.source, loop.count) == (None, 0)


def test_a_mark_that_a_listener_makes_is_not_one_of_the_program():
    class MarksSteps(Listener):
        def end_step(self, source: StepSource, another_follows: bool = True, number: int | None = None) -> None:
            super().end_step(source)
            loop.mark_step(0)

    loop, listener = StepLoop(), MarksSteps()
    loop.add(listener)
    for _ in range(3):
        loop.end_step(SOURCES["o"])

    assert listener.heard == "ooo"


def test_steps_that_come_in_rows_are_told_from_what_runs_between_them() -> None:
    """Updates of a policy: sixteen on the moves of a second, and again; the capture made two of them longer."""
    times, now = [], 0.0
    for update in range(80):
        now += 1.0 if update % 16 == 0 else 2.0 if update in (5, 14) else 0.01
        times.append(now)

    assert steps_in_a_row(times) == (16, pytest.approx(1.0))


@pytest.mark.parametrize("times", [[], [1.0], list(range(100)), [0, 1, 2, 30, 31, 60, 61, 62, 63, 64, 65, 99]])
def test_steps_that_nothing_interrupts_at_equal_distances_are_no_rows(times: list[float]) -> None:
    assert steps_in_a_row(times) is None
