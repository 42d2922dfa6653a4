"""What limits a run, read from the account of its median step.

Causes that the same changes shorten are one limit. Thresholds are XProf's, and so is their order: a limit above its
threshold decides, the longest first; without one the run is bound by its computation. No limit is named alone within
the noise: then the sentence says which two the verdict is between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from stepscope.analysis.account.account import AccountRow, Rival, StepAccount
from stepscope.analysis.account.shown import cause_sentence, cause_words
from stepscope.analysis.steps.verdict import HIGHLY_INPUT_BOUND, LARGE_SHARE, MODERATELY_INPUT_BOUND, Verdict
from stepscope.records import dataclass

COMPUTE, INPUT = "compute_bound", "input_bound"
VERDICT_OF_CAUSE: Mapping[str, str] = {
    "input": INPUT,
    "launch": "launch_bound",
    "communication": "communication_bound",
    "compile": "compile_bound",
    "python": "host_bound",
    "sync": "host_bound",
    "checkpoint": "host_bound",
    "contention": "contention_bound",
    "unknown": "host_bound",
    "host_compute": "host_bound",  # where a device takes part; else it is the computation
    "device_compute": COMPUTE,
    "device_gap": COMPUTE,
    "copy": COMPUTE,  # but for copies to a device, which bring the input
}
_WORTH_SAYING = 1.0  # percent of the step


@dataclass(frozen=True)
class _Limit:
    """Causes that mean the same verdict, the longest first, with the part of each that does, in ps."""

    verdict: str
    parts: list[tuple[AccountRow, int]]
    percent: float
    noise: float

    @property
    def longest(self) -> AccountRow:
        """The cause that most of it is."""
        return max(self.parts, key=lambda part: part[1])[0]

    @property
    def threshold(self) -> float | None:
        """The share from which it decides; None for computation."""
        if self.verdict == COMPUTE:
            return None
        if self.verdict != INPUT:
            return LARGE_SHARE
        return HIGHLY_INPUT_BOUND if self.percent >= HIGHLY_INPUT_BOUND else MODERATELY_INPUT_BOUND

    @property
    def is_passed(self) -> bool:
        """Whether it is long enough to decide."""
        return self.threshold is None or self.percent >= self.threshold

    @property
    def rank(self) -> tuple[int, float]:
        """The limits above their thresholds come first, then input above its lower one, then computation."""
        if not self.is_passed:
            return 3, -self.percent
        if self.verdict == COMPUTE:
            return 2, 0.0
        return 1 if self.threshold == MODERATELY_INPUT_BOUND else 0, -self.percent


def judge_account(account: StepAccount) -> Verdict:
    """The verdict on a run by the account of its median step."""
    limits = sorted(_limits(account), key=lambda limit: limit.rank)
    first = limits[0]
    sentence = _limit_sentence(first, account)
    share, threshold = round(first.percent, 4), first.threshold
    if near := _close_second(limits):
        also = f"{_share(near.longest, account)} is {cause_words(near.longest.cause)}"
        words = f"between {_label(first)} and {_label(near)}, which is within the noise: {sentence}; {also}"
        return Verdict(first.verdict, share, threshold, words, (first.verdict, near.verdict))
    if rival := _rival(first, account):
        verdict = _verdict_of(rival.cause, account)
        label = f"between {_label(first)} and {verdict.replace('_', '-')}"
        gain = f"without it a step would be {_gain_text(first, account)}"
        words = f"{label}: {sentence}; {gain}, as {cause_words(rival.cause)} then takes most of that time"
        return Verdict(first.verdict, share, threshold, words, (first.verdict, verdict))
    words = (
        f"{_label(first)}{_describe_whole_share(first, account)}: {sentence}{_describe_longer_cause(first, account)}"
    )
    return Verdict(first.verdict, share, threshold, words)


def input_percent(account: StepAccount) -> float:
    """The share of the step that goes into input and copies to a device."""
    waits = sum(row.ps for row in account.rows if row.cause == "input")
    return 100.0 * (waits + account.to_devices_ps) / account.step_ps


def _rival(first: _Limit, account: StepAccount) -> Rival | None:
    """Another limit that takes over at least half of the longest cause's time once that is removed, so that removing it
    gains less than the other half."""
    row = first.longest
    if row is not account.rows[0] or row.gain_ps is None or 2 * row.gain_ps >= row.ps:
        return None
    return next(
        (
            rival
            for rival in account.rivals
            if _verdict_of(rival.cause, account) != first.verdict and 2 * (rival.then_ps - rival.now_ps) >= row.ps
        ),
        None,
    )


def _gain_text(limit: _Limit, account: StepAccount) -> str:
    percent = f"{100.0 * (limit.longest.gain_ps or 0) / account.step_ps:.1f}"
    return "no shorter" if percent == "0.0" else f"only {percent} % shorter"


def _limit_sentence(limit: _Limit, account: StepAccount) -> str:
    """The sentence of its longest cause."""
    row, ps = max(limit.parts, key=lambda part: part[1])
    if limit.verdict == INPUT and row.cause == "copy":
        return f"{100.0 * ps / account.step_ps:.1f} % of {account.each_step} is copies to the device"
    return cause_sentence(account, row)


def _limits(account: StepAccount) -> Iterator[_Limit]:
    parts: dict[str, list[tuple[AccountRow, int]]] = {COMPUTE: []}
    for row in account.rows:
        for verdict, ps in _verdicts_of(row, account):
            parts.setdefault(verdict, []).append((row, ps))
    for verdict, own in parts.items():
        if own:
            share = 100.0 * sum(ps for _, ps in own) / account.step_ps
            yield _Limit(verdict, own, share, _noise_percent(account, [row.cause for row, _ in own]))


def _verdicts_of(row: AccountRow, account: StepAccount) -> Iterator[tuple[str, int]]:
    """The limits that a cause belongs to, each with its part of the time: copies to a device bring the input."""
    if row.cause == "copy" and account.to_devices_ps:
        yield INPUT, account.to_devices_ps
        yield COMPUTE, row.ps - account.to_devices_ps
    else:
        yield _verdict_of(row.cause, account), row.ps


def _verdict_of(cause: str, account: StepAccount) -> str:
    return COMPUTE if cause == "host_compute" and account.devices is None else VERDICT_OF_CAUSE[cause]


def _noise_percent(account: StepAccount, causes: Sequence[str]) -> float:
    """How far the share of some causes may be off, in percent of the step: as far as the replay is, and as far as steps
    differ."""
    return max([account.replay_error_percent or 0.0, *(account.noise_percent.get(cause, 0.0) for cause in causes)])


def _close_second(limits: Sequence[_Limit]) -> _Limit | None:
    """Another limit that would decide if the first one's share, or its own, were off by its noise; None if the verdict
    would be the same."""
    first, others = limits[0], limits[1:]
    lowered = replace(first, percent=first.percent - first.noise)
    near = [
        other
        for other in others
        if other.rank < lowered.rank or replace(other, percent=other.percent + other.noise).rank < first.rank
    ]
    return max(near, key=lambda limit: limit.percent, default=None)


def _label(limit: _Limit) -> str:
    name = limit.verdict.replace("_", "-")
    if limit.verdict != INPUT:
        return name
    return f"{'highly' if limit.threshold == HIGHLY_INPUT_BOUND else 'moderately'} {name}"


def _describe_whole_share(limit: _Limit, account: StepAccount) -> str:
    """The share of all its causes, and which these are, if the longest is not nearly all of it."""
    parts = sorted(limit.parts, key=lambda part: -part[1])
    if limit.percent - 100.0 * parts[0][1] / account.step_ps < _WORTH_SAYING:
        return ""
    *most, last = [_part_words(limit, row) for row, ps in parts if 100.0 * ps / account.step_ps >= _WORTH_SAYING]
    causes = f"{', '.join(most)} and {last}" if most else last
    return f" ({limit.percent:.1f} % of {account.each_step}, {causes})"


def _part_words(limit: _Limit, row: AccountRow) -> str:
    return "copies to the device" if limit.verdict == INPUT and row.cause == "copy" else cause_words(row.cause)


def _describe_longer_cause(first: _Limit, account: StepAccount) -> str:
    """The longest cause of all, if it is another one."""
    longest = account.rows[0]
    if any(row is longest for row, _ in first.parts):
        return ""
    return f"; {_share(longest, account)} is {cause_words(longest.cause)}"


def _share(row: AccountRow, account: StepAccount) -> str:
    return f"{100.0 * row.ps / account.step_ps:.1f} %"
