"""The bench of the advice: what the unseen programs declare, and the interval of a measured gain."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

gains = pytest.importorskip("bench.gains", reason="the bench is in the checkout alone")
unseen = pytest.importorskip("bench.bottlenecks.unseen")

# The classes of advice, as the contract with other programs lists them.
CLASSES = {
    *("input_preprocessing", "input_file_read", "input_no_prefetch", "input_python", "input_transfer", "small_batch"),
    *("recompilation", "eager_dispatch", "host_sync", "python_overhead", "checkpoint_stall", "redundant_compute"),
    *("memory_churn", "straggler", "communication_bound", "low_precision", "none"),
}
SOURCE = """
class Words:
    def __getitem__(self, index):
        return index

@program("input_python", culprits=("Words.__getitem__", "DataLoader"), fix="encode once", also=("small_batch",))
def torch_words(run):
    yield
"""
PAGE = """# Truth

## Given

The first advice is right in 1 of 2.

| a |

## Own

The first advice is right in 3 of 4.
"""


def test_a_declaration_is_read_from_the_source():
    (found,) = unseen.read_declarations("unseen", "torch", SOURCE)
    assert (found.name, found.expected, found.also, found.lines) == (
        "torch_words",
        "input_python",
        ("small_batch",),
        ((3, 4),),
    )
    assert found.is_culprit("fetch", "/home/me/unseen_torch.py", 4)
    assert found.is_culprit("enumerate(DataLoader)#next", None, None)
    assert not found.is_culprit("fetch", "/home/me/unseen_torch.py", 6)
    assert not found.is_culprit("fetch", "/home/me/other.py", 4)


@pytest.mark.parametrize(("series", "planted_in_each"), [("unseen", [10, 10, 10]), ("second", [6, 5, 5])])
def test_each_unseen_program_declares_a_class_a_culprit_and_a_fix(series: str, planted_in_each: list[int]):
    programs = list(unseen.list_unseen(series))
    assert {kind for program in programs for kind in (program.expected, *program.also)} <= CLASSES
    assert all(program.fix and bool(program.culprits) == (program.expected != "none") for program in programs)
    planted = [program.framework for program in programs if program.expected != "none"]
    assert [planted.count(framework) for framework in unseen.FRAMEWORKS] == planted_in_each


def test_no_two_unseen_programs_have_the_same_name():
    names = [program.name for program in unseen.list_unseen()]
    assert len(names) == len(set(names))


def test_each_culprit_that_looks_like_a_function_is_one_of_the_file():
    """A name with a dot or a leading underscore is a place in the source, whose lines must be known."""
    for program in unseen.list_unseen("second"):
        places = [name for name in program.culprits if re.match(r"_[a-z]|\w+\.\w", name)]
        assert len(program.lines) >= len(places), program.name


def test_a_class_is_planted_once_per_framework_and_each_one_somewhere():
    """Of the second series: no computation of its programs runs on a device, so none gains by a lower precision."""
    planted = [(program.framework, program.expected) for program in unseen.list_unseen("second")]
    assert len(planted) == len(set(planted))
    assert {kind for _, kind in planted} == CLASSES - {"low_precision"}


def test_half_of_the_unseen_programs_is_held_out_in_each_framework():
    programs, series = list(unseen.list_unseen("unseen")), unseen.SERIES["unseen"]
    assert {program.name for program in programs} >= series.held_out | series.with_python
    held = [program.framework for program in programs if program.is_held_out and program.expected != "none"]
    assert [held.count(framework) for framework in unseen.FRAMEWORKS] == [5, 5, 5]


def test_python_calls_are_recorded_in_half_of_the_second_series():
    names = [program.name for program in unseen.list_unseen("second")]
    drawn = random.Random(20261123).sample(names, len(names) // 2)
    assert frozenset(drawn) == unseen.SERIES["second"].with_python


def test_the_gain_is_that_of_a_pair_whatever_the_load():
    load = np.array([1.0, 7.0, 2.0, 30.0])
    assert gains.measure_gain(6 * load, 3 * load) == gains.Gain(2.0, 2.0, 2.0)


def test_the_interval_holds_the_true_gain_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = [
        found.least <= 3 <= found.most
        for slow, fixed in np.exp(rng.normal(0, 0.2, (300, 2, 12)))
        if (found := gains.measure_gain(3 * slow, fixed))
    ]
    assert 0.9 <= np.mean(held) < 1.0


def test_a_gain_is_precise_if_its_interval_is_narrower_than_a_good_prediction():
    assert gains.Gain(2.0, 1.7, 2.3).is_precise
    assert not gains.Gain(2.0, 1.5, 2.3).is_precise


def test_blocks_are_paired_with_their_neighbours():
    order = [("slow", 1), ("fixed", 2), ("fixed", 3), ("slow", 4), ("slow", 5), ("fixed", 6)]
    blocks = [{"variant": variant, "step_ms": step_ms} for variant, step_ms in order]
    assert gains.pair_blocks(blocks, "step_ms") == ([1, 4, 5], [2, 3, 6])


def judge_as_right(program):
    """A verdict that agrees with the declaration, with a gain of 2."""
    gain = gains.Gain(2.0, 1.9, 2.1)
    said = {"first": program.expected, "culprit": None, "is_culprit_right": True, "predicted": 2.0, "fixed": "none"}
    times = {"untraced_ms": (20.0, 10.0), "traced_ms": (22.0, 11.0), "expected": (1.5, 2.5), "shown": 2.0}
    return gains.Verdict(program, gain, cpu=gain, **said, **times)


@pytest.mark.parametrize(
    ("series", "halves"),
    [("unseen", ["open half: 17 of 17", "held-out half: 17 of 17"]), ("second", ["the whole series: 18 of 18"])],
)
def test_a_series_has_a_section_of_its_own_with_a_score_per_half(series: str, halves: list[str]):
    verdicts = [judge_as_right(program) for program in unseen.list_unseen(series)]
    section = gains.make_section(series, verdicts, known=[])
    assert section.startswith(f"## {unseen.SERIES[series].title}\n")
    assert re.findall(r"^- Unseen, (.+?): the first advice is right in (\d+ of \d+)", section, re.M) == [
        tuple(half.split(": ")) for half in halves
    ]
    assert all(f"\n| {verdict.program.name} | {verdict.program.expected} |" in section for verdict in verdicts)


def test_a_section_replaces_its_older_self_and_leaves_the_rest():
    unseen_section, second_section = (f"## {series.title}\n\nolder\n" for series in unseen.SERIES.values())
    both = gains.replace_section(gains.replace_section(PAGE, unseen_section), second_section)
    assert gains.find_sections(both) == f"{unseen_section}\n{second_section}"
    newer = second_section.replace("older", "newer")
    assert gains.replace_section(both, newer) == f"{PAGE}\n{unseen_section}\n{newer}"


def test_the_known_scores_are_read_from_the_page():
    page = PAGE
    for series in unseen.SERIES.values():
        page = gains.replace_section(page, f"## {series.title}\n\nThe first advice is wrong.\n")
    assert gains.read_known_scores(page) == [
        "given: The first advice is right in 1 of 2.",
        "own: The first advice is right in 3 of 4.",
    ]
