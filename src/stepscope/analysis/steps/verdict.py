"""What limits a training run by the breakdown of its step time, where no account of a step can be made.

The thresholds are those of the reference (XProf's bottleneck analysis); the verdict by the account of a step uses the
same.  XProf leaves launches, host work and waits for input out of GPU profiles; here the same rules apply to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.records import dataclass

HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
LARGE_SHARE = 15.0  # percent of the step from which launches, collectives, compilation and host time matter
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


@dataclass(frozen=True)
class Verdict:
    """What limits the run.

    Attributes:
        name: one of the contract's verdicts.
        share_percent: the share of the time that decided the verdict; None for "unknown".
        threshold_percent: the threshold that the share exceeded; None without one.
        sentence: the verdict in words.
        between: the two verdicts that cannot be told apart, if the shares are within the noise; else empty.
    """

    name: str
    share_percent: float | None
    threshold_percent: float | None
    sentence: str
    between: tuple[str, ...] = ()


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


def judge_first_calls(percent: float, has_steps: bool, only: bool) -> Verdict:
    """The verdict on a capture of first calls, of which `percent` is tracing and compiling.

    Args:
        has_steps: they are a marked step; else the whole capture.
        only: no later call was recorded.
    """
    where = "the only step" if has_steps else "the capture"
    return Verdict(
        "unknown",
        round(percent, 4),
        None,
        f"unknown: {'only first calls were captured' if only else 'hardly more than first calls was captured'}, and"
        f" {percent:.1f} % of {where} is tracing and compiling, which happens once; what limits later steps was not"
        " recorded",
    )


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
