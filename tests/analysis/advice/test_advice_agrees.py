"""What the verdict, the breakdown and the first advice of one profile say goes together, on real ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from framework_captures import FRESH, FrameworkCapture

import stepscope
from stepscope.analysis.account.selection import causes_of_class
from stepscope.analysis.account.verdict import row_of_change
from stepscope.analysis.overview.overview_tool import OverviewReport
from stepscope.api import LoadedProfile

CORPUS = (
    "jax-mi300x-attention", "jax-mi300x-conv", "tf-gpu-multi-worker", "torch-h100-owlv2", "torch-h100-qwen",
    "torch-mi300-resnet", "torch-multirank", "torch-nccl", "torch-sglang-qwen3", "torch-v100-resnet50-workers0",
    "torch-v100-resnet50-workers4", "tpu-inference",
)  # fmt: skip
NUMBER = re.compile(r"\d+(?:\.\d+)?")
ELSEWHERE = "the next that can be shortened is "


def contradictions(profile: LoadedProfile) -> Iterator[str]:
    """What would make a reader stop and ask which of two is right."""
    report = profile.overview()
    assert isinstance(report, OverviewReport)
    body, first = report.to_dict(), report.advice[0]
    bar = {row["cause"]: row["percent"] for row in body["account"]}
    headline, cause, step_ms = body["verdict_text"], body["verdict_cause"], body["account_step"]["ms"]
    if len(headline.split()) > 14 or len(NUMBER.findall(re.sub("`.*`", "", headline))) > 1:
        yield f"a long headline: {headline}"
    if abs(bar[cause] - body["verdict_percent"]) > 0.001 or f"{bar[cause]:.1f} %" not in headline:
        yield f"{headline!r} beside a bar of {bar[cause]} %"
    about = row_of_change(report.account, causes_of_class(first.kind)) if first.kind != "none" else None
    if about is not None and about.cause != cause and not any(ELSEWHERE in line for line in body["verdict_evidence"]):
        yield f"{headline!r} beside {first.kind} about {about.cause}, and no sentence says why"
    share = bar[cause if about is None else about.cause]
    if f"{share:.1f} % of {report.account.each_step} is " not in first.evidence:
        yield f"the first advice says another share than {share}: {first.evidence}"
    if max(bar.values()) > bar[cause] and not any("takes more" in line for line in body["verdict_evidence"]):
        yield "a longer cause than the limit is not spoken of"
    for item in profile.advice().to_dict()["advice"]:
        if item["step_time_ms"] not in (None, step_ms):
            yield f"{item['id']} is about a step of {item['step_time_ms']} ms, the account of {step_ms}"
    if [profile.advice().rows[0]["id"], profile.advice().verdict] != [first.id, headline]:
        yield "the tool advice says something else than the overview"
    mean = body["step_time_ms"]["mean"]
    if profile.input_pipeline().to_dict()["step_time_ms"]["mean"] != mean:
        yield "input-pipeline has other steps"


def test_the_corpus_is_all_here(corpus: Path) -> None:
    assert {folder.name for folder in corpus.iterdir() if folder.is_dir()} == set(CORPUS)


@pytest.mark.parametrize("name", CORPUS)
def test_verdict_and_advice_of_real_profiles_go_together(corpus: Path, name: str) -> None:
    assert list(contradictions(stepscope.load(corpus / name))) == []


@pytest.mark.parametrize("name", FRESH)
def test_verdict_and_advice_of_fresh_captures_go_together(request: pytest.FixtureRequest, name: str) -> None:
    capture: FrameworkCapture = request.getfixturevalue(name)

    assert list(contradictions(stepscope.load(capture.logdir))) == []


def test_verdict_and_advice_of_known_bottlenecks_go_together(bottleneck_captures: Path) -> None:
    folders = sorted(folder for case in bottleneck_captures.iterdir() if case.is_dir() for folder in case.iterdir())
    found = {folder: list(contradictions(stepscope.load(folder))) for folder in folders}

    assert {folder: each for folder, each in found.items() if each} == {}


def test_a_training_without_marks_of_its_gradients_is_not_taken_for_inference(corpus: Path) -> None:
    """PyTorch 1.9 records no `autograd::engine` events: only the ops' names tell that the model is trained."""
    first = stepscope.load(corpus / "torch-v100-resnet50-workers0").advice().to_dict()["advice"][0]

    assert first["actions"][0].endswith("DataLoader(num_workers=4 or more, persistent_workers=True)")
