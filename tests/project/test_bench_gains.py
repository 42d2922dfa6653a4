"""The interval of a gain that the bench of the advice measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

gains = pytest.importorskip("bench.gains", reason="the bench is in the checkout alone")
pages = pytest.importorskip("bench.pages")


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


def test_blocks_are_paired_with_their_neighbours():
    order = [("slow", 1), ("fixed", 2), ("fixed", 3), ("slow", 4), ("slow", 5), ("fixed", 6)]
    blocks = [{"variant": variant, "step_ms": step_ms} for variant, step_ms in order]
    assert gains.pair_blocks(blocks, "step_ms") == ([1, 4, 5], [2, 3, 6])


@pytest.mark.parametrize(
    ("value", "least", "most", "cell"),
    [
        (1.6, 1.5, 1.7, "1.60 (1.50 to 1.70)"),
        (4.0, 3.8, 4.2, "4.00 (3.80 to 4.20), **apart from the range**"),
        (None, None, None, ""),
    ],
)
def test_a_proof_stands_beside_the_prediction_and_says_where_they_are_apart(value, least, most, cell):
    proof = gains.Proof("job.py", "ablation", "input", step_ms=9.0, value=value, least=least, most=most)
    program = next(iter(gains.list_programs("third")))
    gain = gains.Gain(2.0, 1.9, 2.1)
    said = {"first": "input_python", "culprit": None, "is_culprit_right": True, "predicted": 2.0, "shown": 2.0}
    times = {"untraced_ms": (10.0, 5.0), "traced_ms": (12.0, 6.0)}
    verdict = gains.Verdict(program, gain, cpu=gain, **said, **times, expected=(1.5, 3.0), fixed="none", proof=proof)
    heading, row = (gains.make_section("third", [verdict], known=[]).splitlines()[at] for at in (-3, -1))
    assert dict(zip(heading.split("|"), row.split("|"), strict=True))[" proved "].strip() == cell


def test_a_run_replaces_what_it_measured_and_leaves_the_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nWhy.\n", encoding="utf-8")
    pages.put(page, "one", "| 1 |\n")
    pages.put(page, "two", "| 2 |\n")
    written = page.read_text("utf-8")
    page.write_text(written.replace("<!-- two -->", "What two says.\n\n<!-- two -->"), encoding="utf-8")
    pages.put(page, "one", "| 3 |")

    assert page.read_text("utf-8") == (
        "# Title\n\nWhy.\n\n<!-- one -->\n\n| 3 |\n\n<!-- end of one -->\n\n"
        "What two says.\n\n<!-- two -->\n\n| 2 |\n\n<!-- end of two -->\n"
    )
