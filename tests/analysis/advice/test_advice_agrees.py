"""What the verdict, the breakdown and the first advice of one profile say goes together, on real ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from framework_captures import FRESH, FrameworkCapture

import stepscope
from stepscope.analysis.overview.overview_tool import OverviewReport

CORPUS = (
    "jax-mi300x-attention", "jax-mi300x-conv", "tf-gpu-multi-worker", "torch-h100-owlv2", "torch-h100-qwen",
    "torch-mi300-resnet", "torch-multirank", "torch-nccl", "torch-sglang-qwen3", "torch-v100-resnet50-workers0",
    "torch-v100-resnet50-workers4", "tpu-inference",
)  # fmt: skip
SHARE = re.compile(r"([\d.]+) % (?:of|off) [\w' ]*")
INPUT = ("input_preprocessing", "input_file_read", "input_no_prefetch", "input_python", "input_transfer")
# The verdicts beside which a reader expects a class of advice.
_KEPT_WAITING = ("launch_bound", "host_bound")
VERDICTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(INPUT, ("input_bound",)),
    **dict.fromkeys(("small_batch", "eager_dispatch", "host_sync", "python_overhead"), _KEPT_WAITING),
    **dict.fromkeys(("redundant_compute", "memory_churn", "low_precision"), ("compute_bound",)),
    **dict.fromkeys(("straggler", "communication_bound"), ("communication_bound",)),
    "recompilation": ("compile_bound",),
    "checkpoint_stall": ("host_bound",),
    "none": ("compute_bound", "communication_bound", "host_bound", "launch_bound", "compile_bound"),
}


# Advice is not read from the account yet.
KNOWN = {
    "tf_save_every_step/slow", "tf_serial_decode/fixed", "torch_rank_zero_report/slow", "torch_reduce_each_tensor/slow",
}  # fmt: skip


def contradictions(report: OverviewReport) -> Iterator[str]:
    """What would make a reader stop and ask which of the two is right."""
    verdict, first = report.verdict, report.advice[0]
    if not {verdict.name, *verdict.between} & set(VERDICTS[first.kind]):
        yield f"{verdict.name} beside {first.kind}"
    if first.kind == "none" and verdict.sentence not in first.evidence:
        yield "the advice of no cause says something else of the limit"
    if (first.title == "Nothing stands out") != (first.kind == "none" and verdict.name == "compute_bound"):
        yield f"{first.title!r} beside {verdict.name}"
    mean = report.step_time_ms["mean"]
    assert isinstance(mean, float)
    told = list(SHARE.finditer(first.evidence)) if first.rows and not report.context.has_device else []
    largest = max(told, key=lambda each: float(each[1]), default=None)
    gain = None if "less time" in first.reasoning else first.gain_percent
    if largest and gain is not None and gain > float(largest[1]) + 20:
        yield f"{gain:.1f} % would go, but {largest[0]!r}"
    if abs(report.context.period_ms - mean) > 0.1 * mean:
        yield f"{report.context.period_ms} ms from step to step beside steps of {mean} ms"


def test_the_corpus_is_all_here(corpus: Path) -> None:
    assert {folder.name for folder in corpus.iterdir() if folder.is_dir()} == set(CORPUS)


@pytest.mark.parametrize("name", CORPUS)
def test_verdict_and_advice_of_real_profiles_go_together(corpus: Path, name: str) -> None:
    assert list(contradictions(stepscope.load(corpus / name).overview())) == []


@pytest.mark.parametrize("name", FRESH)
def test_verdict_and_advice_of_fresh_captures_go_together(request: pytest.FixtureRequest, name: str) -> None:
    capture: FrameworkCapture = request.getfixturevalue(name)

    assert list(contradictions(stepscope.load(capture.logdir).overview())) == []


def test_verdict_and_advice_of_known_bottlenecks_go_together(bottleneck_captures: Path) -> None:
    folders = sorted(folder for case in bottleneck_captures.iterdir() if case.is_dir() for folder in case.iterdir())
    found = {folder: list(contradictions(stepscope.load(folder).overview())) for folder in folders}

    assert {f"{folder.parent.name}/{folder.name}" for folder, each in found.items() if each} <= KNOWN
