"""What limits a training run, decided from the shares of its step time.

The thresholds are those of the reference (XProf's bottleneck analysis) so that both say the same of the same profile;
what XProf leaves out of GPU profiles (launches, host work, waits for input) is judged by the same rules here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
LARGE_SHARE = 15.0  # launches, collectives, compilation, time of the host: percent of the step from which they matter
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


def judge(shares: Mapping[str, float], has_device: bool, between: Mapping[str, float] | None = None) -> Verdict:
    """Judges a run.

    Of all limits above their threshold the largest wins; without any, input that is still noticeable; else the run is
    bound by its computation.  On a run without a device, work of the host is the computation.  Time between steps
    counts like time in steps: a loop may well wait for its input before it begins the step.

    Args:
        shares: percent of the step time by category; empty if there are no steps.
        has_device: whether an accelerator took part.
        between: percent of the time from the first step to the last that lies between steps, by category.
    """
    if not shares:
        return Verdict("unknown", None, None, _SENTENCE_OF["unknown"])
    between = between or {}
    gaps = sum(between.values())
    if gaps >= _NO_GAPS:
        shares = {key: share * (1 - gaps / 100) + between.get(key, 0.0) for key, share in shares.items()}
    time = "the time from the first step to the last" if gaps >= _NO_GAPS else "the step time"
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
