"""What limits a run: the part of its median step that the first change shortens, else the longest part.

Verdict, bar and advice speak of one cause of the account, so that they name one limit, one share and one step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stepscope.analysis.account.account import CONTENTION, AccountRow, NextCause, StepAccount
from stepscope.analysis.account.account_text import (
    cause_sentence,
    cause_words,
    describe_long_steps,
    share_sentence,
    words_of_row,
)
from stepscope.analysis.account.causes import TERMS
from stepscope.analysis.account.counted import CONTRADICTS
from stepscope.analysis.account.coverage import Blindness
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT, Verdict
from stepscope.records import dataclass
from stepscope.vocabulary.python import CODE_OF_MODULE
from stepscope.vocabulary.torch import plain_range

COMPUTE, INPUT = "compute_bound", "input_bound"
VERDICT_OF_CAUSE = {name: terms.verdict for name, terms in TERMS.items()}
_LABELS = {"contention": "machine busy", "copy": "copy-bound"}
_MOST_WORDS = 15  # of a headline


@dataclass(frozen=True)
class FirstChange:
    """What the first advice would change.

    Attributes:
        causes: of the account, that it shortens: the most telling one first.
        gain_percent: of the step; None if unknown.
    """

    causes: tuple[str, ...]
    gain_percent: float | None


def judge_account(account: StepAccount, change: FirstChange | None = None) -> Verdict:
    """The verdict on a run by the account of its median step.

    The first change decides if it gains the share from which XProf calls its cause a limit, of the step that the bar
    shows, and its cause takes at least half as long as the longest one; where the gain is unknown, the middle between
    none and all time of its causes counts, and in a capture without steps no other may take longer.  Else the longest
    cause does, and the evidence says what the change is about.  A busy machine is said beside the program's own limit.
    """
    account = account.representative_step
    if account.only_dispatch:
        return Verdict("unknown", None, "unknown: only the calls of each step were recorded, not what they compute")
    longest, changed = _longest_of_program(account), None if change is None else row_of_change(account, change.causes)
    limiting = _limiting(account, longest)
    limit = limiting
    if change is not None and changed is not None and _gain(change, account) >= LARGE_SHARE:
        # What was not recorded may save more; and what takes less than half as long as another part is no limit.
        is_known = account.has_steps or change.gain_percent is not None or longest.cause in change.causes
        least = longest.ps / 2 if is_known else longest.ps
        limit = limiting if _unexplained(account) > _gain(change, account) or changed.ps < least else changed
    if longest.cause == "unknown":  # a saving elsewhere does not say what limits the step
        limit = longest
    is_said = limit.cause == "sync" and account.devices is None  # a wait for devices that were not recorded
    if account.blindness is not None and limit.cause not in account.certain and not is_said:
        told = _blind_headline(account, account.blindness, limit)
        known = (f"{account.blindness.why}; {cause_sentence(account, limit)}",)
        return Verdict("unknown", None, told, None, known)
    if (against := _contradiction(account, limit)) is not None:
        return Verdict("unknown", round(_percent(limit, account), 4), f"unknown: {against}", limit.cause)
    return Verdict(
        _verdict_of(limit, account),
        round(_percent(limit, account), 4),
        _headline(account, limit, limiting),
        limit.cause,
        (cause_sentence(account, limit), *_list_others(account, limit, limiting, changed)),
    )


def _blind_headline(account: StepAccount, blindness: Blindness, limit: AccountRow) -> str:
    """What was not recorded; where that is all that devices do, the limit as far as the host's calls show it."""
    if limit.cause == "unknown" and blindness.lost and 2 * limit.ps > account.step_ps:
        return f"unknown: {share_sentence(account, limit)}"  # more than what was launched there can hold
    if not blindness.of_devices or limit.cause in ("unknown", "sync"):
        return f"unknown: {blindness.why}"
    label = VERDICT_OF_CAUSE[limit.cause].replace("_", "-")
    return _name_culprit(f"{label} as recorded: {share_sentence(account, limit)}", limit)


def _contradiction(account: StepAccount, limit: AccountRow) -> str | None:
    """What is counted and cannot be if some cause is the limit, in words that follow `unknown:`; None if it can."""
    idle = account.idle_ps
    if idle is None or limit.idle_ps is None or not account.devices:
        return None
    if limit.cause == "device_gap" and 2 * limit.idle_ps > account.step_ps:
        share = f"for {100 * limit.idle_ps / account.step_ps:.1f} % of {account.the_step}"
        return f"{_devices_are(account)} idle {share}, for no recorded reason"
    if limit.cause in ("sync", "unknown") and 100 * account.contradicted_ps > CONTRADICTS * account.step_ps:
        share = f"{100 * account.contradicted_ps / account.step_ps:.1f} %"
        return f"{_devices_are(account)} busy for {share} in which nothing seems to compute"
    return None


def _devices_are(account: StepAccount) -> str:
    """The devices as the subject of a sentence: `the GPU is`, `all 8 TPUs are`."""
    devices = account.devices or "the devices"
    return f"{devices} {'is' if devices.startswith('the ') and not devices.endswith('s') else 'are'}"


def _gain(change: FirstChange, account: StepAccount) -> float:
    """What a change gains of the step that the bar shows, in percent: no more than its causes take there, though in
    other steps they may take more."""
    shown = sum(_percent(row, account) for row in account.rows if row.cause in change.causes)
    return shown / 2 if change.gain_percent is None else min(change.gain_percent, shown)


def _unexplained(account: StepAccount) -> float:
    return sum(_percent(row, account) for row in account.rows if row.cause == "unknown")


def _longest_of_program(account: StepAccount) -> AccountRow:
    """The longest row of the program itself: waiting for a free core is said beside it.

    Where the devices idle for more than half of the step it is what they idle for longest: all that keeps them from
    work stands against what they do.
    """
    rows = [row for row in account.rows if row.cause != CONTENTION] or list(account.rows)
    if account.idle_ps is None or 2 * account.idle_ps <= account.step_ps or 2 * (rows[0].idle_ps or 0) >= rows[0].ps:
        return rows[0]
    idle = max(rows, key=lambda row: row.idle_ps or 0)
    return rows[0] if idle.cause == "device_gap" else idle


def _limiting(account: StepAccount, longest: AccountRow) -> AccountRow:
    """The row that limits the step: the longest one, unless the step would be as long without it, since other work runs
    beside it; then the one without which the step would be shortest, if that is clearly shorter, and if it takes at
    least half as long: what two parts hold up together is not said to be the smaller one's."""
    if longest.gain_ps is None or account.percent(longest.gain_ps) >= LEAST_PERCENT:
        return longest
    if longest.idle_ps is not None and 2 * longest.idle_ps > longest.ps:
        return longest  # no device works beside it: the replay lacks what links their work to it
    others = [row for row in account.rows if row.gain_ps is not None and row.cause != CONTENTION]
    most = max(others, key=lambda row: row.gain_ps or 0, default=longest)
    is_limit = account.percent(most.gain_ps or 0) >= LARGE_SHARE and 2 * most.ps >= longest.ps
    return most if is_limit else longest


def row_of_change(account: StepAccount, causes: Sequence[str]) -> AccountRow | None:
    """The row of an account that stands for what a change shortens: the one of its causes that takes most of the step,
    else the first of them that takes a large share, else the longest; None if none takes any."""
    rows = {row.cause: row for row in account.rows}
    found = [rows[cause] for cause in causes if cause in rows]
    large = [row for row in found if _percent(row, account) >= LARGE_SHARE]
    most = (row for row in large if _percent(row, account) > 50)
    return next(most, next(iter(large), max(found, key=lambda row: row.ps, default=None)))


def input_percent(account: StepAccount) -> float:
    """The share of the step that goes into input and copies to a device."""
    return sum(_percent(row, account) for row in _input_rows(account))


def input_sentence(account: StepAccount) -> str:
    """The same by cause: `32.6 % of each step is input and 1.1 % is copying data in`."""
    said = [share_sentence(account, row) for row in _input_rows(account) if _percent(row, account) >= _LEAST_SHOWN]
    first, *others = said or [f"0.0 % of {account.each_step} is {cause_words('input')}"]
    return " and ".join([first, *(each.replace(f" of {account.each_step}", "") for each in others)])


def _input_rows(account: StepAccount) -> list[AccountRow]:
    return [row for row in account.rows if VERDICT_OF_CAUSE[row.cause] == INPUT]


def _percent(row: AccountRow, account: StepAccount) -> float:
    return account.percent(row.ps, row.cause)


def _verdict_of(row: AccountRow, account: StepAccount) -> str:
    if row.cause == "sync" and account.devices is None:
        return "unknown"  # what a device does of which no work was recorded
    return COMPUTE if row.cause == "host_compute" and account.devices is None else VERDICT_OF_CAUSE[row.cause]


def _headline(account: StepAccount, row: AccountRow, limiting: AccountRow) -> str:
    """At most 15 words and one number; why it is not the longest part of the bar; and the culprit, if that is most of
    the cause and its name fits.  Where most waits for a free core that comes first, with its own number."""
    label = _LABELS.get(row.cause, _verdict_of(row, account).replace("_", "-"))
    if _is_busy_first(account, row, limiting):
        waits = f"{_percent(account.rows[0], account):.1f} % of {account.whole_step} waits for a free core"
        own = f"{_percent(row, account):.1f} % is {words_of_row(account, row)}"
        return f"machine busy, else {label}: {waits}; of the rest, {own}"
    why = "; fixing saves most" if row is not limiting or limiting is not _longest_of_program(account) else ""
    if row.cause == "unknown" and account.is_silent and row.culprit is not None and row.culprit.inside:
        share = f"{_percent(row, account):.1f} % of {account.each_step}"
        return f"{label}: for {share} the host waits in `{row.culprit.inside}` for unrecorded work"
    if row.cause == "unknown" and (known := next_to_unknown(account)) is not None:
        why = f", the rest mostly {words_of_row(account, known)}" if 2 * known.ps > account.step_ps - row.ps else ""
    return _name_culprit(f"{label}: {share_sentence(account, row)}", row, why)


def _name_culprit(share: str, row: AccountRow, why: str = "") -> str:
    """The headline with the culprit, if that is most of the cause, and the reason, as far as they fit."""
    culprit, said = row.culprit, [share + why, share]
    if culprit is not None and 2 * culprit.ps > row.ps and not re.search(rf"\d|{CODE_OF_MODULE}", culprit.name):
        said.insert(0, f"{share}, mostly `{plain_range(culprit.name)}`{why}")
    return next((each for each in said if len(each.split()) <= _MOST_WORDS), share)


def next_to_unknown(account: StepAccount) -> AccountRow | None:
    """The longest of what is known, where that takes a large share; None elsewhere."""
    known = next((row for row in account.rows if row.cause not in ("unknown", CONTENTION)), None)
    return known if known is not None and _percent(known, account) >= LARGE_SHARE else None


def _is_busy_first(account: StepAccount, limit: AccountRow, limiting: AccountRow) -> bool:
    """Whether the headline begins with the wait for a free core, as the longest part of the bar."""
    return limit is limiting and account.rows[0].cause == CONTENTION and limit is not account.rows[0]


def _list_others(
    account: StepAccount, limit: AccountRow, limiting: AccountRow, changed: AccountRow | None
) -> Iterator[str]:
    """What a reader would ask next: why not the longest cause, and what comes then; the most important first."""
    busy = next((row for row in account.rows if row.cause == CONTENTION), limit)
    is_said = limit is busy or _is_busy_first(account, limit, limiting)
    if not is_said and _percent(busy, account) >= LARGE_SHARE:
        share = f"{_percent(busy, account):.1f} % of {account.whole_step}"
        yield f"the machine was busy: for {share} the loop waited for a free core"
    if account.long_steps is not None:
        yield describe_long_steps(account.long_steps)
    longest = _longest_of_program(account)
    most = next((row for row in account.rows if row.cause != CONTENTION), longest)
    if most is not longest and limit is not most and account.idle_ps is not None:
        idle = f"{_devices_are(account)} idle for {100 * account.idle_ps / account.step_ps:.1f} % of {account.the_step}"
        yield f"{words_of_row(account, most)} takes {_percent(most, account):.1f} %, but {idle}"
    if limit is limiting and limiting is not longest:
        more = f"{words_of_row(account, longest)} takes {_percent(longest, account):.1f} %"
        yield f"{more}, but other work runs beside it"
    elif limit is not longest:
        yield (
            f"{words_of_row(account, longest)} takes more, {_percent(longest, account):.1f} %, but no known change"
            " shortens it as much"
        )
    if account.has_steps and account.steps == 1:
        yield "only one step was recorded, so how much steps differ is unknown"
    if account.why_not is not None:
        yield f"less sure than usual, as {account.why_not}"
    if limit is limiting and (near := _close_second(account, limit)):
        yield f"{words_of_row(account, near)} takes as long, within the noise, {_percent(near, account):.1f} %"
    if changed is None and limit is account.rows[0] and (rival := _rival(account)):  # else the advice has its gain
        grows = "something that was not recorded" if rival.cause == "unknown" else cause_words(rival.cause)
        yield f"{grows} comes close behind: shortening only one of the two saves little"


_LEAST_SHOWN = 0.05  # percent: what rounds to 0.0


def _close_second(account: StepAccount, limit: AccountRow) -> AccountRow | None:
    """The other cause of another verdict that takes as long as the limit, within how far the replay is off and steps
    differ."""
    names = account.noise_percent
    own = _verdict_of(limit, account)
    others = [row for row in account.rows if row.cause != CONTENTION and _verdict_of(row, account) != own]
    for row in others:
        noise = max(account.replay_error_percent or 0.0, names.get(row.cause, 0.0), names.get(limit.cause, 0.0))
        if abs(_percent(row, account) - _percent(limit, account)) <= noise:
            return row
    return None


def _rival(account: StepAccount) -> NextCause | None:
    """Another limit that takes over at least half of the longest cause's time once that is removed, so that removing it
    gains less than the other half."""
    row = account.rows[0]
    if row.gain_ps is None or 2 * row.gain_ps >= row.ps:
        return None
    grown = (rival for rival in account.rivals if VERDICT_OF_CAUSE[rival.cause] != VERDICT_OF_CAUSE[row.cause])
    return next((rival for rival in grown if 2 * (rival.then_ps - rival.now_ps) >= row.ps), None)
