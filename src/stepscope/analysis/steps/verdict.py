"""What limits a training run, decided from the shares of its step time.

The thresholds are those of the reference (XProf's bottleneck analysis) so that both say the same of the same profile;
what XProf leaves out of GPU profiles (launches, host work, waits for input) is judged by the same rules here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stepscope.records import dataclass

HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
LARGE_SHARE = 15.0  # launches, collectives, compilation, time of the host: percent of the step from which they matter
LEAST_GAIN_PERCENT = 20.0  # of the time from step to step: what gains less does not decide what limits a run
_NO_GAPS = 5.0  # percent of the time between steps below which the steps are all the time there is

_VERDICT_OF = {
    "input": "input_bound",
    "kernel_launch": "launch_bound",
    "device_collectives": "communication_bound",
    "compilation": "compile_bound",
    "host": "host_bound",
}
_SENTENCE_OF = {
    "input_bound": "{level} input-bound: {share:.1f} % of {time} waits for input",
    "launch_bound": "launch-bound: {share:.1f} % of {time} goes to launching device work",
    "communication_bound": "communication-bound: {share:.1f} % of {time} goes to collectives",
    "compile_bound": "compile-bound: {share:.1f} % of {time} goes to tracing and compiling",
    "host_bound": "host-bound: in {share:.1f} % of {time} {work}",
    "compute_bound": "compute-bound: {share:.1f} % of {time} computes on the {where}",
    "unknown": "unknown: the profile holds no steps that take time",
}
# What a class of advice says of the limit, in words that follow "would go without"; a verdict that says the same stays.
_CAUSE_OF = {
    "input_bound": "waiting for input, or copying and converting it",
    "launch_bound": "starting work in small pieces",
    "host_bound": "what the host does while nothing computes",
    "compute_bound": "computation that is not needed",
    "communication_bound": "waiting for other workers and talking to them",
    "compile_bound": "tracing and compiling",
}
_VERDICTS_OF_CLASS = {
    **dict.fromkeys(
        ("input_preprocessing", "input_file_read", "input_no_prefetch", "input_python", "input_transfer"),
        ("input_bound",),
    ),
    "small_batch": ("launch_bound",),
    "eager_dispatch": ("launch_bound",),
    "recompilation": ("compile_bound",),
    "host_sync": ("host_bound", "launch_bound"),
    "python_overhead": ("host_bound",),
    "checkpoint_stall": ("host_bound",),
    "redundant_compute": ("compute_bound",),
    "memory_churn": ("compute_bound",),
    "low_precision": ("compute_bound",),
    "straggler": ("communication_bound",),
    "communication_bound": ("communication_bound",),
}
# A device that the host keeps waiting because it launches too slowly waits for the host, however that is named.
_VERDICTS_WITH_DEVICE = {
    **_VERDICTS_OF_CLASS,
    "small_batch": ("launch_bound", "host_bound"),
    "eager_dispatch": ("launch_bound", "host_bound"),
    "python_overhead": ("host_bound", "launch_bound"),
}
# What the time goes to that a limit is about, where that is not the largest part.
_GOES_TO = {
    "input_bound": "waits for input",
    "launch_bound": "goes to launches",
    "host_bound": "runs no known work",
    "communication_bound": "goes to collectives",
    "compile_bound": "goes to tracing and compiling",
}


@dataclass(frozen=True)
class Verdict:
    """What limits the run.

    Attributes:
        name: one of the contract's verdicts.
        share_percent: the share of the time that decided; None for "unknown".
        threshold_percent: the threshold that the share exceeded; None if none was.
        sentence: the verdict in words.
    """

    name: str
    share_percent: float | None
    threshold_percent: float | None
    sentence: str


def judge(
    shares: Mapping[str, float], has_device: bool, between: Mapping[str, float] | None = None, stepped: bool = True
) -> Verdict:
    """Judges a run.

    Of all limits above their threshold the largest wins; without any, input that is still noticeable; else the run is
    bound by its computation.  On a run without a device, work of the host is the computation.  Time between steps
    counts like time in steps: a loop may well wait for its input before it begins the step.

    Args:
        shares: percent of the step time by category; empty if there are no steps.
        has_device: whether an accelerator took part.
        between: percent of the time from the first step to the last that lies between steps, by category.
        stepped: whether there are steps; else the shares are those of the whole capture.
    """
    if not shares:
        return Verdict("unknown", None, None, _SENTENCE_OF["unknown"])
    shares, time = _of_all_time(shares, between or {}, stepped)
    host = shares["other"] + (shares["host_compute"] if has_device else 0.0)
    limits = {
        "input": (shares["input"], HIGHLY_INPUT_BOUND),
        "kernel_launch": (shares["kernel_launch"], LARGE_SHARE),
        "device_collectives": (shares["device_collectives"], LARGE_SHARE),
        "compilation": (shares["compilation"], LARGE_SHARE),
        "host": (host, LARGE_SHARE),
    }
    compute = shares["device_compute"] if has_device else shares["host_compute"]
    above = {name: share for name, (share, threshold) in limits.items() if share >= threshold}
    if above:
        name = max(above, key=lambda key: above[key])
        return _verdict(_VERDICT_OF[name], above[name], limits[name][1], time, has_device)
    if shares["input"] >= MODERATELY_INPUT_BOUND:
        return _verdict("input_bound", shares["input"], MODERATELY_INPUT_BOUND, time, has_device)
    return _verdict("compute_bound", compute, None, time, has_device)


def _of_all_time(
    shares: Mapping[str, float], between: Mapping[str, float], stepped: bool
) -> tuple[Mapping[str, float], str]:
    """Shares of the time from the first step to the last, where some of it lies between steps, and what to call it."""
    if not stepped:
        return shares, "the capture"
    gaps = sum(between.values())
    if gaps < _NO_GAPS:
        return shares, "the step time"
    thinned = {key: share * (1 - gaps / 100) + between.get(key, 0.0) for key, share in shares.items()}
    return thinned, "the time from the first step to the last"


def unexplained(
    verdict: Verdict,
    shares: Mapping[str, float],
    has_device: bool,
    between: Mapping[str, float] | None = None,
    stepped: bool = True,
) -> Verdict:
    """The verdict where no rule finds a cause behind it.

    With a device it stays: the reference says the same.  Without one, computation is the limit if more time goes to it
    than to what `judge` found.

    Args:
        verdict: what `judge` found in the same shares.
    """
    if has_device or not shares or verdict.name not in _GOES_TO or verdict.share_percent is None:
        return verdict
    shares, time = _of_all_time(shares, between or {}, stepped)
    if shares["host_compute"] <= verdict.share_percent:
        return verdict
    found = _verdict("compute_bound", shares["host_compute"], None, time, has_device)
    rest = f"{verdict.share_percent:.1f} % {_GOES_TO[verdict.name]}, for no one cause"
    return replace(found, sentence=f"{found.sentence}; {rest}")


def agree(
    verdict: Verdict, otherwise: Verdict, kind: str | None, gain_percent: float | None, has_device: bool
) -> Verdict:
    """The verdict in the light of the first advice, which looks more closely than shares of the step can.

    With a device the shares tell, as in the reference, and the verdict stays; if the advice is about something else, it
    says so.  Without one it says the same as advice that gains much.

    Args:
        verdict: what `judge` found; `otherwise`, the same if no rule finds a cause behind it (`unexplained`).
        kind: the class of the first advice, None without any.
        gain_percent: how much of the time from step to step would go if it were followed, None if unknown.
    """
    allowed = (_VERDICTS_WITH_DEVICE if has_device else _VERDICTS_OF_CLASS).get(kind or "", ())
    if verdict.name in allowed or verdict.name == "unknown":
        return verdict
    if not allowed:
        return otherwise
    if has_device:
        return replace(
            verdict, sentence=f"{verdict.sentence}; one change gains most elsewhere: {_CAUSE_OF[allowed[0]]}"
        )
    if gain_percent is None or gain_percent < LEAST_GAIN_PERCENT:
        return otherwise
    name = allowed[0]
    words = f"{name.replace('_', '-')}: {gain_percent:.1f} % of the time from step to step would go without"
    return Verdict(name, round(gain_percent, 4), None, f"{words} {_CAUSE_OF[name]} (see the first advice)")


def _verdict(name: str, share: float, threshold: float | None, time: str, has_device: bool) -> Verdict:
    words = _SENTENCE_OF[name].format(
        share=share,
        time=time,
        level="highly" if share >= HIGHLY_INPUT_BOUND else "moderately",
        where="device" if has_device else "host",
        work="the device waits for the host" if has_device else "no known work runs: Python, waiting or I/O",
    )
    rule = f" (threshold {threshold:g} %)" if threshold is not None else ""
    return Verdict(name, round(share, 4), threshold, words + rule)
