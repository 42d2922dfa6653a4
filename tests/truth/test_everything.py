"""Every corpus file, and every fresh capture, through every tool and every form of result: one walk, read once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from draw import Sort, draw
from every_form import SESSIONS, exercise
from framework_captures import FRESH, FrameworkCapture

import stepscope
from stepscope.analysis.account.account_text import causes_of_class, row_of_change
from stepscope.analysis.advice.ranking import causes_shortened
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.analysis.registry import TOOLS
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.api import LoadedProfile
from stepscope.errors import InputError
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind as K

# What is doubtful about the recordings, each looked at by hand: collectives that were launched before the recording
# began; a step that the end of the recording cuts.
DOUBTS = {
    "jax-mi300x-conv": ["steps_cut"],
    "torch-mi300-resnet": ["collectives_without_details"],
    "torch-sglang-qwen3": ["launched_work_waits"],
}


@pytest.fixture(scope="module", params=SESSIONS)
def profile(request: pytest.FixtureRequest, corpus: Path) -> LoadedProfile:
    """A session of the corpus; all tests of it come one after the other, so it is read once."""
    return stepscope.load(corpus / request.param)


def takes_every_form(profile: LoadedProfile) -> None:
    for tool in TOOLS:
        report = profile.report(tool.name)
        exercise(report)
        assert report.hosts, tool.name


def parts_add_up(rows: Any) -> None:
    assert rows
    for row in rows:
        assert sum(row[category] for category in CATEGORIES) == pytest.approx(row["duration_ms"], abs=1e-5)
        assert all(row[category] >= 0 for category in CATEGORIES)


def test_every_session_goes_through_every_tool_and_form(profile: LoadedProfile) -> None:
    takes_every_form(profile)


def test_the_parts_of_a_step_add_up_to_the_step(profile: LoadedProfile) -> None:
    parts_add_up(profile.steps().rows)
    parts_add_up(profile.pod_viewer().rows)


@pytest.mark.parametrize("name", FRESH)
def test_every_fresh_capture_goes_through_every_tool_and_form(name: str, request: pytest.FixtureRequest) -> None:
    capture: FrameworkCapture = request.getfixturevalue(name)
    profile = stepscope.load(capture.logdir)

    takes_every_form(profile)
    assert profile.overview().steps_source == "markers"
    assert len(profile.steps().rows) == len(capture.step_ms)
    parts_add_up(profile.steps().rows)
    parts_add_up(profile.pod_viewer().rows)
    assert list(contradictions(profile)) == []


def test_real_recordings_raise_no_false_alarm(profile: LoadedProfile, request: pytest.FixtureRequest) -> None:
    report = profile.report("trust")
    session = request.node.callspec.params["profile"]

    assert sorted({row["check"] for row in report.to_dict()["rows"]}) == DOUBTS.get(session, [])
    line = getattr(report, "line", "")
    assert all((line in profile.report(tool).warnings) == bool(line) for tool in ("overview", "op-stats", "idle"))


def test_a_session_compared_with_itself_is_all_zeros(profile: LoadedProfile) -> None:
    report = stepscope.compare(profile, profile)

    assert report.difference.verdict in ("within_noise", "unknown")
    tables = (*report.table("breakdown").rows, *report.rows, *report.table("kernels").rows)
    assert not any(row["difference_ms"] for row in tables)
    assert report.notes[0].startswith("both sides are the session")
    exercise(report)


# -- verdict, breakdown and first advice go together -----------------------------------------------------------------

NUMBER = re.compile(r"\d+(?:\.\d+)?")
ELSEWHERE = "the next cause that can be shortened is "


# What readers had to read twice, or what the field calls otherwise.
RIDDLES = re.compile(
    r"\b(begins?|sorts? of|is told|is no |known work|no one cause|undisturbed|not certain|unknown which|contention|"
    r"threshold|whether it is not|as there are no|a quarter are|one in ten|_\w+_told)\b"
)


def clumsy_sentences(report: OverviewReport) -> Iterator[str]:
    """Sentences of an overview that are too long, hold too many numbers, or are riddles."""
    body = report.to_dict()
    headline = re.sub(r"^.{1,40} holds up the others, ", "", body["verdict_text"])  # who is late comes before all
    if len(NUMBER.findall(re.sub("`.*`", "", headline))) > 1:
        yield f"more than one number: {headline}"
    advice = body["advice"]
    evidence = [*body["verdict_evidence"], *(item[name] for item in advice for name in ("evidence", "reasoning"))]
    limits = (
        (15, [headline, *(item["title"] for item in advice)]),
        (25, [action for item in advice for action in item["actions"]]),
        (30, [part for text in evidence for part in text.split("; ")]),
    )
    for most, texts in limits:
        yield from (f"more than {most} words: {text}" for text in texts if len(text.split()) > most)
    said = [*report.summary_lines(), *report.warnings, *(text for _, texts in limits for text in texts)]
    yield from (f"a riddle: {text}" for text in said if RIDDLES.search(re.sub("`.*?`", "", text)))


def contradictions(profile: LoadedProfile) -> Iterator[str]:
    """What would make a reader stop and ask which of two is right."""
    report = profile.overview()
    assert isinstance(report, OverviewReport)
    body, first = report.to_dict(), report.advice[0]
    bar = {row["cause"]: row["percent"] for row in body["account"]}
    headline, cause, step_ms = body["verdict_text"], body["verdict_cause"], body["account_step"]["ms"]
    yield from clumsy_sentences(report)
    says_share = f"{bar[cause]:.1f} %" in headline or " of the recording lies " in headline
    if abs(bar[cause] - body["verdict_percent"]) > 0.001 or not says_share:
        yield f"{headline!r} beside a bar of {bar[cause]} %"
    about = row_of_change(report.account, causes_shortened(first)) if first.kind != "none" else None
    if (
        about is not None
        and about.cause != cause
        and not first.beside
        and not any(ELSEWHERE in line for line in body["verdict_evidence"])
    ):
        yield f"{headline!r} beside {first.kind} about {about.cause}, and no sentence says why"
    share = bar[cause if about is None else about.cause]
    wholes = (report.account.each_step, "the median step")
    is_of_function = first.id.startswith("line.") and re.match(r"[\d.]+ % of \w+( \w+)? step is ", first.evidence)
    if not is_of_function and not any(f"{share:.1f} % of {whole} is " in first.evidence for whole in wholes):
        yield f"the first advice says another share than {share}: {first.evidence}"
    is_said = any(words in headline for words in ("fixing it saves most", "; advice shortens it", "machine busy"))
    if max(bar.values()) > bar[cause] and not is_said:
        yield "a longer cause than the limit is not spoken of"
    for item in profile.advice().to_dict()["advice"]:
        if item["step_time_ms"] not in (None, step_ms):
            yield f"{item['id']} is about a step of {item['step_time_ms']} ms, the account of {step_ms}"
    if [profile.advice().rows[0]["id"], profile.advice().verdict.sentence] != [first.id, headline]:
        yield "the tool advice says something else than the overview"
    yield from unbounded_gains(report)
    mean = body["step_time_ms"]["mean"]
    if profile.input_pipeline().to_dict()["step_time_ms"]["mean"] != mean:
        yield "input-pipeline has other steps"


def unbounded_gains(report: OverviewReport) -> Iterator[str]:
    """Gains of more than the part that the advice names takes, and than what else it says that the change saves.

    That part is a cause of the step, or a function, whose share the evidence says: other causes lie inside it too.
    """
    account = report.account
    assert account is not None
    for item in report.advice:
        row = row_of_change(account, causes_shortened(item))
        if row is None or item.gain_percent is None or not item.change:
            continue
        average, _, saved = item.also.partition("the change also saves ")
        shares = [100 * row.ps / account.step_ps, *map(float, re.findall("([0-9.]+) %", average))]
        if item.change.startswith("function "):
            shares += map(
                float, re.findall(f"^([0-9.]+) % of each step is {re.escape(item.culprit.name)}", item.evidence)
            )
        others = [float(each) for each in re.findall("([0-9.]+) %", saved)]
        not_said = 0.5 * len(account.rows)  # half a percent of a cause is not worth a word
        if item.gain_percent > max(shares) + sum(others) + not_said:
            yield f"{item.id} gains {item.gain_percent:.1f} %, but {max(shares):.1f} % is {row.cause}; {item.also!r}"


# -- every face says the same --------------------------------------------------------------------------------------


def what_if_is_the_advice(profile: LoadedProfile) -> None:
    """What-if of each advised class is the advice, to the last digit; where nothing is predicted, in neither."""
    step = profile.overview().to_dict()["account_step"]
    for item in profile.advice().rows:
        assert item["step_time_ms"] is None or item["step_time_ms"] == pytest.approx(step["ms"], abs=1e-3)
    for item in {row["class"]: row for row in reversed(profile.advice().rows) if row["class"] != "none"}.values():
        if item["predicted_speedup"] is None:
            with pytest.raises(InputError, match="not predictable from this recording, because"):
                profile.whatif(item["class"])
            continue
        found = profile.whatif(item["class"]).to_dict()
        for figure in ("step_time_ms", "predicted_step_time_ms", "predicted_speedup"):
            assert found[figure] == item[figure], (item["class"], figure)


def same_limit(profile: LoadedProfile) -> None:
    overview, advice = profile.overview().to_dict(), profile.advice().to_dict()
    share = next(part["percent"] for part in overview["account"] if part["cause"] == overview["verdict_cause"])

    assert share == pytest.approx(overview["verdict_percent"], abs=1e-3)
    if " of the recording lies " not in overview["verdict_text"]:  # then that is the share which is said
        assert re.findall(r"[\d.]+(?= %)", overview["verdict_text"]) == [f"{share:.1f}"]
    assert advice["verdict_text"] == overview["findings"][0]["title"] == overview["verdict_text"]
    for first, listed in zip(overview["advice"][:1], advice["advice"], strict=False):
        assert all(listed[key] == first[key] for key in ("id", "predicted_speedup", "step_time_ms"))
        # The page of advice adds what other tools know.
        assert set(first["evidence"].split("; ")) <= set(listed["evidence"].split("; "))


def first_advice_is_about_the_limit_or_says_so(profile: LoadedProfile) -> None:
    overview = profile.overview().to_dict()
    for first in overview["advice"][:1]:
        shown = {row["key"] for row in first["rows"] if row["tool"] == "overview"}
        is_about_it = overview["verdict_cause"] in shown | set(causes_of_class(first["class"]))
        if first["beside"]:
            assert not is_about_it
        elif first["class"] != "none" and not first["change"]:  # what is replayed shortens whatever it contains
            assert is_about_it
    assert not any(item["beside"] for item in overview["advice"][1:])


def test_every_face_of_a_session_says_the_same(profile: LoadedProfile) -> None:
    same_limit(profile)
    first_advice_is_about_the_limit_or_says_so(profile)
    what_if_is_the_advice(profile)
    assert list(contradictions(profile)) == []


@pytest.mark.parametrize(
    "work", ["I----a----", "C----a----", "Iaaaaaaaa-"], ids=["waits", "copies in", "waits a little"]
)
def test_every_face_of_a_drawn_session_says_the_same(work: str, tmp_path: Path) -> None:
    sorts = {"C": Sort(K.COPY_HOST_TO_DEVICE_CALL, "H2D Dispatch")}
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(write(draw(f"host main | M0--------M1--------M2--------\nhost main | {work * 3}", sorts)))
    profile = stepscope.load(path)

    same_limit(profile)
    first_advice_is_about_the_limit_or_says_so(profile)


def test_what_is_said_of_known_bottlenecks_goes_together(bottleneck_captures: Path) -> None:
    for folder in sorted(each for each in bottleneck_captures.glob("*/*") if each.is_dir()):
        profile = stepscope.load(folder)
        what_if_is_the_advice(profile)
        first_advice_is_about_the_limit_or_says_so(profile)
        assert (folder, list(contradictions(profile))) == (folder, [])


def test_the_corpus_is_all_here(corpus: Path) -> None:
    assert {folder.name for folder in corpus.iterdir() if folder.is_dir()} == set(SESSIONS)
