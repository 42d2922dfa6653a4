"""What limits a training run, decided from the shares of its step time.

The thresholds are those of the reference (XProf's bottleneck analysis), so both give the same verdict on a profile.
XProf leaves launches, host work and waits for input out of GPU profiles; here the same rules apply to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stepscope.records import dataclass

HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
LARGE_SHARE = 15.0  # percent of the step from which launches, collectives, compilation and host time matter
LEAST_GAIN_PERCENT = 20.0  # of the time per step: a smaller gain does not decide the verdict
_NO_GAPS = 5.0  # percent of the time: smaller gaps between steps are ignored

_VERDICT_OF = {
    "input": "input_bound",
    "kernel_launch": "launch_bound",
    "device_collectives": "communication_bound",
    "compilation": "compile_bound",
    "host": "host_bound",
}
_SENTENCE_OF = {
    "input_bound": "{level} input-bound: {share:.1f} % of {time} is spent waiting for input",
    "launch_bound": "launch-bound: {share:.1f} % of {time} is spent launching device work",
    "communication_bound": "communication-bound: {share:.1f} % of {time} is spent in collectives",
    "compile_bound": "compile-bound: {share:.1f} % of {time} is spent tracing and compiling",
    "host_bound": "host-bound: for {share:.1f} % of {time} {work}",
    "compute_bound": "compute-bound: {share:.1f} % of {time} is spent computing on the {where}",
    "unknown": "unknown: the profile holds no steps that take time",
}
# What the advice for a limit removes, in words that follow "would be saved without".
_CAUSE_OF = {
    "input_bound": "input waits and copies",
    "launch_bound": "launching work in small pieces",
    "host_bound": "host work while nothing computes",
    "compute_bound": "unnecessary computation",
    "communication_bound": "waiting for and communicating with other workers",
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
# With a device, launching too slowly and keeping the device waiting are the same limit under two names.
_VERDICTS_WITH_DEVICE = {
    **_VERDICTS_OF_CLASS,
    "small_batch": ("launch_bound", "host_bound"),
    "eager_dispatch": ("launch_bound", "host_bound"),
    "python_overhead": ("host_bound", "launch_bound"),
}
# The time behind a limit for which no rule finds a cause.
_WITHOUT_CAUSE = {
    "input_bound": "is spent waiting for input, with no single cause",
    "launch_bound": "is spent launching device work, with no single cause",
    "host_bound": "is unexplained",
    "communication_bound": "is spent in collectives, with no single cause",
    "compile_bound": "is spent tracing and compiling, with no single cause",
}


@dataclass(frozen=True)
class Verdict:
    """What limits the run.

    Attributes:
        name: one of the contract's verdicts.
        share_percent: the share of the time that decided the verdict; None for "unknown".
        threshold_percent: the threshold that the share exceeded; None without one.
        sentence: the verdict in words.
    """

    name: str
    share_percent: float | None
    threshold_percent: float | None
    sentence: str


def judge(
    shares: Mapping[str, float], has_device: bool, between: Mapping[str, float] | None = None, stepped: bool = True
) -> Verdict:
    """The verdict on a run.

    The largest limit above its threshold wins.  Without one, a noticeable share of input wins; else the run is bound by
    computation.  Without a device, host work is the computation.  Time between steps counts like time in steps, since a
    loop may wait for its input before the step starts.

    Args:
        shares: percent of the step time by category; empty if there are no steps.
        has_device: an accelerator was used.
        between: percent of the time from the first step to the last that lies between steps, by category.
        stepped: there are steps; else the shares are those of the whole capture.
    """
    if not shares:
        return Verdict("unknown", None, None, _SENTENCE_OF["unknown"])
    shares, time = _include_gaps(shares, between or {}, stepped)
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
        return _make_verdict(_VERDICT_OF[name], above[name], limits[name][1], time, has_device)
    if shares["input"] >= MODERATELY_INPUT_BOUND:
        return _make_verdict("input_bound", shares["input"], MODERATELY_INPUT_BOUND, time, has_device)
    return _make_verdict("compute_bound", compute, None, time, has_device)


def _include_gaps(
    shares: Mapping[str, float], between: Mapping[str, float], stepped: bool
) -> tuple[Mapping[str, float], str]:
    """Shares of the time including the gaps between steps, if these matter, and a name for that time."""
    if not stepped:
        return shares, "the capture"
    gaps = sum(between.values())
    if gaps < _NO_GAPS:
        return shares, "each step"
    thinned = {key: share * (1 - gaps / 100) + between.get(key, 0.0) for key, share in shares.items()}
    return thinned, "the time from the first step to the last"


def judge_without_cause(
    verdict: Verdict,
    shares: Mapping[str, float],
    has_device: bool,
    between: Mapping[str, float] | None = None,
    stepped: bool = True,
) -> Verdict:
    """The verdict if no rule of the advice finds its cause.

    With a device it stays, as in the reference.  Without one, computation is the limit if it takes more time than the
    limit that `judge` found.

    Args:
        verdict: the result of `judge` for the same shares.
    """
    if has_device or not shares or verdict.name not in _WITHOUT_CAUSE or verdict.share_percent is None:
        return verdict
    shares, time = _include_gaps(shares, between or {}, stepped)
    if shares["host_compute"] <= verdict.share_percent:
        return verdict
    found = _make_verdict("compute_bound", shares["host_compute"], None, time, has_device)
    rest = f"{verdict.share_percent:.1f} % {_WITHOUT_CAUSE[verdict.name]}"
    return replace(found, sentence=f"{found.sentence}; {rest}")


def judge_with_advice(
    verdict: Verdict, otherwise: Verdict, kind: str | None, gain_percent: float | None, has_device: bool
) -> Verdict:
    """The verdict adjusted to the first advice, which is based on more than shares of the step.

    With a device the shares decide, as in the reference.  The verdict stays, and mentions advice about something else.
    Without a device the verdict follows advice with a large gain.

    Args:
        verdict: the result of `judge`.
        otherwise: the result of `judge_without_cause`, used if no rule finds a cause.
        kind: the class of the first advice, None without any.
        gain_percent: how much of the time per step the advice would save, None if unknown.
    """
    allowed = (_VERDICTS_WITH_DEVICE if has_device else _VERDICTS_OF_CLASS).get(kind or "", ())
    if verdict.name in allowed or verdict.name == "unknown":
        return verdict
    if not allowed:
        return otherwise
    if has_device:
        return replace(
            verdict, sentence=f"{verdict.sentence}; the largest single gain is elsewhere: {_CAUSE_OF[allowed[0]]}"
        )
    if gain_percent is None or gain_percent < LEAST_GAIN_PERCENT:
        return otherwise
    name = allowed[0]
    words = f"{name.replace('_', '-')}: {gain_percent:.1f} % of the time per step would be saved without"
    return Verdict(name, round(gain_percent, 4), None, f"{words} {_CAUSE_OF[name]} (see the first advice)")


def _make_verdict(name: str, share: float, threshold: float | None, time: str, has_device: bool) -> Verdict:
    words = _SENTENCE_OF[name].format(
        share=share,
        time=time,
        level="highly" if share >= HIGHLY_INPUT_BOUND else "moderately",
        where="device" if has_device else "host",
        work="the device waits for the host" if has_device else "nothing recorded was running (Python, waiting or I/O)",
    )
    rule = f" (threshold {threshold:g} %)" if threshold is not None else ""
    return Verdict(name, round(share, 4), threshold, words + rule)
