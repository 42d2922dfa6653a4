"""The account in words and as reports show it: its rows, what most of a step is spent on, and what limits the run.

Verdict, bar and advice speak of one cause of the account, so that they name one limit, one share and one step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from stepscope.analysis.account.account import CONTENTION, AccountRow, NextCause, StepAccount
from stepscope.analysis.account.causes import MEANING, TERMS, Cause
from stepscope.analysis.account.counted import CONTRADICTS
from stepscope.analysis.account.coverage import Blindness
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.evidence import Known
from stepscope.analysis.account.long_steps import LongSteps
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT, Verdict
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Role, clean, percent, round_ms, shorten_name
from stepscope.report.columns import rows_in_ms
from stepscope.vocabulary.python import CODE_OF_MODULE, plain_built_in
from stepscope.vocabulary.torch import plain_range

_KNOWN = tuple(each.name.lower() for each in Known)
_LONGEST_NAME = 80  # characters, of a line of the terminal
_WORTH_A_WORD = 10.0  # percent of the step, of what a first change is about, as of work that is not needed
_MOST_NUMBERS = 4  # steps that a sentence lists by number
_NEARLY_ALL = 0.9  # of a cause's time: the rest is not worth a word

FIELDS: tuple[Field, ...] = (
    Field(
        "cause",
        "text",
        "what the step waits for; every moment of the median step has exactly one cause",
        "str",
        Role.TERM,
    ),
    Field("ms", "ms", "time of the median step, from its start to the start of the next"),
    Field("percent", "percent", "the same as a share of that step; the rows add up to 100"),
    Field("idle_ms", "ms", "the part of it in which no device works; unknown without devices", label="Devices idle"),
    Field("culprit", "text", "what most of that time is spent in: a function, an op or a kernel", "str", Role.NAME),
    Field(
        "place",
        "text",
        "file and line of the function, or that ask for the op, where the recording has them",
        "str",
        Role.SOURCE,
    ),
    Field("layer", "text", "the module that it runs in, where the trace says so", "str", Role.LABEL),
    Field("calls", "count", "how often it runs in the step; unknown where only stack samples show it", "int"),
    Field("culprit_ms", "ms", "the part of the cause's time that it takes"),
    Field(
        "recorded_percent", "percent", "the part of the cause's time in which an event of the thread or device says so"
    ),
    Field("inferred_percent", "percent", "the part in which something else that was recorded implies it"),
    Field("not_recorded_percent", "percent", "the part of which nothing is known"),
    Field("meaning", "text", "when a moment has that cause", "str", Role.MEANING),
)
CAUSE_FIELDS: tuple[Field, ...] = tuple(
    Field(f"{cause.name.lower()}_ms", "ms", f"time of the step in which {MEANING[cause]}") for cause in MEANING
)
SENTENCE_OF = {name: terms.words for name, terms in TERMS.items()}


def account_json(account: StepAccount | None) -> list[dict[str, object]]:
    """The causes with their culprits, the longest first."""
    if account is None:
        return []
    return [
        {
            "cause": row.cause,
            "ms": round_ms(row.ps),
            "percent": percent(row.ps, account.step_ps),
            "idle_ms": None if row.idle_ps is None else round_ms(row.idle_ps),
            "culprit": culprit_json(row.culprit),
            "known": known_percent(row),
        }
        for row in account.rows
    ]


def known_percent(row: AccountRow) -> dict[str, float | None] | None:
    """How a row's cause is known, in percent of its time: recorded, inferred, not recorded; None if nobody asked."""
    if row.known_ps is None:
        return None
    return {each.name.lower(): percent(ps, row.ps) for each, ps in zip(Known, row.known_ps, strict=True)}


def account_step_json(account: StepAccount | None) -> dict[str, object] | None:
    """The step that the account is of: its number, its host, its time to the start of the next step, of how many steps
    it is the median or else a longer one, and its causes in the order of time, each with how long it goes on."""
    if account is None:
        return None
    moments = [[cause, round_ms(ps)] for cause, ps in account.moments]
    step = {"step": account.step, "host": account.host, "ms": round_ms(account.step_ps), "median_of": account.steps}
    return step | {"is_median": account.is_median, "moments": moments}


def device_bars_json(account: StepAccount | None) -> list[dict[str, object]]:
    """The devices of the account's host during its step: how long each works, and what it does or waits for."""
    return [
        {
            "device": bar.device,
            "busy_ms": round_ms(bar.busy_ps),
            "causes_ms": {cause: round_ms(ps) for cause, ps in bar.causes_ps.items()},
        }
        for bar in (account.device_bars if account else ())
    ]


def account_rows(account: StepAccount | None) -> tuple[dict[str, Cell], ...]:
    """The same as rows of a table; see FIELDS."""
    if account is None:
        return ()
    return tuple(
        {
            "cause": row.cause,
            "ms": round_ms(row.ps),
            "percent": percent(row.ps, account.step_ps),
            "idle_ms": None if row.idle_ps is None else round_ms(row.idle_ps),
            "culprit": row.culprit.name if row.culprit else None,
            "place": describe_place(row.culprit),
            "layer": row.culprit.layer if row.culprit else None,
            "calls": row.culprit.calls if row.culprit else None,
            "culprit_ms": round_ms(row.culprit.ps) if row.culprit else None,
            **{f"{name}_percent": share for name, share in (known_percent(row) or dict.fromkeys(_KNOWN)).items()},
            "meaning": MEANING[Cause[row.cause.upper()]],
        }
        for row in account.rows
    )


CAUSE_CELLS = tuple(f"{each.name.lower()}_ms" for each in Cause)


def cause_values(causes_ps: Sequence[Sequence[int]]) -> list[Sequence[Cell]]:
    """The account of each of some steps as the values of CAUSE_CELLS; unknown of a step without one."""
    known, unknown = iter(rows_in_ms([each for each in causes_ps if each])), (None,) * len(CAUSE_CELLS)
    return [next(known) if each else unknown for each in causes_ps]


def cause_cells(causes_ps: Sequence[Sequence[int]]) -> list[dict[str, Cell]]:
    """The same as cells of CAUSE_FIELDS."""
    return [dict(zip(CAUSE_CELLS, values, strict=True)) for values in cause_values(causes_ps)]


def cause_sentence(account: StepAccount, row: AccountRow) -> str:
    """What one cause of an account is spent on: `87.0 % of each step is input: ... (16 calls), while the GPU is idle`.

    The share is its only figure of time: that of the bar and of the headline.
    """
    culprit = row.culprit
    share, idle = share_sentence(account, row), _while_idle(account, row)
    if culprit is None:
        return f"{share}{idle}"
    if culprit.ps >= _NEARLY_ALL * row.ps:
        return f"{share}: {describe_culprit(culprit)}{idle}"
    part = "most of it is" if 2 * culprit.ps > row.ps else "the largest part is"
    return f"{share}{idle}; {part} {describe_culprit(culprit)}"


def share_sentence(account: StepAccount, row: AccountRow) -> str:
    """`32.6 % of each step is input`."""
    return f"{_share_of(account, row)} is {words_of_row(account, row)}"


def _share_of(account: StepAccount, row: AccountRow) -> str:
    """`32.6 % of each step`."""
    whole = account.each_step if row.cause != CONTENTION else account.whole_step
    if account.is_uneven(row):
        whole = whole.replace("each step", "the median step", 1)
    return f"{account.percent(row.ps, row.cause):.1f} % of {whole}"


def describe_long_steps(steps: LongSteps) -> str:
    """`every 5th step (9, 14) does more: saving or restoring state, in `save``."""
    shown = ", ".join(map(str, steps.numbers[:_MOST_NUMBERS])) + ", ..." * (len(steps.numbers) > _MOST_NUMBERS)
    which = (
        f"steps {shown} do more" if steps.every is None else f"every {_ordinal(steps.every)}step ({shown}) does more"
    )
    where = f", in `{shorten_op(steps.name)}`" if steps.name else ""
    return f"{which}: {cause_words(steps.cause)}{where}"


def _ordinal(number: int) -> str:
    """`5th ` before a noun, `second `.

    >>> _ordinal(3), _ordinal(12), _ordinal(21)
    ('3rd ', '12th ', '21st ')
    """
    if number == 1:
        return ""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return "second " if number == 2 else f"{number}{'th' if number // 10 % 10 == 1 else ends.get(number % 10, 'th')} "


def cause_words(cause: str) -> str:
    """A cause in words that follow `is`."""
    return SENTENCE_OF[cause]


def words_of_row(account: StepAccount, row: AccountRow) -> str:
    """The cause of a row in the same words; a device of which no work was recorded may still have been busy."""
    if row.words:
        return row.words
    if row.cause == "python" and account.sleeps:
        return "sleeping or waiting"
    if row.cause == "unknown" and account.is_silent:
        return "launched work waiting for unrecorded work"
    without_devices = {"sync": "waiting for unrecorded devices", "launch": "dispatching work"}
    return cause_words(row.cause) if account.devices else without_devices.get(row.cause, cause_words(row.cause))


def describe_culprit(culprit: Culprit) -> str:
    """A culprit in words: `` `train.py:9 __getitem__` (16 calls), inside it `queue.py:5 get```."""
    calls = f" ({culprit.calls:,} calls)" if (culprit.calls or 0) > 1 else ""
    inside = f", inside it `{shorten_name(clean(culprit.inside), _LONGEST_NAME)}`" if culprit.inside else ""
    inside += f", {culprit.statement.describe()}" if culprit.statement is not None else ""
    return f"`{culprit_name(culprit)}`{calls}{inside}"


def shorten_op(name: str) -> str:
    """The name of an op or function that fits into a sentence.

    >>> shorten_op("<built-in method matmul of M object at 0x7ba1>")
    'matmul'
    """
    return shorten_name(plain_built_in(plain_range(clean(name))), _LONGEST_NAME)


def culprit_name(culprit: Culprit) -> str:
    """`train.py:9 __getitem__`, the file without its folders where its whole path is known; without a place where none
    is, and without a name where that is the code of a script, which names all of it."""
    name = shorten_name(plain_range(clean(culprit.name)), _LONGEST_NAME)
    place = describe_place(culprit) or ""
    place = place.rpartition("/")[2] if place.startswith("/") else place
    if culprit.name == CODE_OF_MODULE and culprit.file:
        return place
    return f"{place} {name}" if culprit.file else name


def where_to_look(culprit: Culprit) -> str:
    """``in `train.py:9 step` ``, its line that holds most of its time, ``at train.py:14, in `step` ``, or the line
    that asks for an op, ``at train.py:14, `mm` ``."""
    if culprit.statement is None:
        return f"{'at' if culprit.name == CODE_OF_MODULE else 'in'} `{culprit_name(culprit)}`"
    name = f"`{shorten_name(plain_range(clean(culprit.name)), _LONGEST_NAME)}`"
    return f"at {culprit.statement.place}, {'in ' if culprit.file else ''}{name}"


def _while_idle(account: StepAccount, row: AccountRow) -> str:
    """That no device works meanwhile, if that is so nearly all the time."""
    if row.idle_ps is None or row.idle_ps < _NEARLY_ALL * row.ps or account.devices is None:
        return ""
    is_one = account.devices.startswith("the")
    if row.cause == "unknown" and account.is_silent:
        return f", while {account.devices} {'shows' if is_one else 'show'} none"
    return f", while {account.devices} {'is' if is_one else 'are'} idle"


def describe_place(culprit: Culprit | None) -> str | None:
    """Where a function is defined; of an op the line that asks for most of it."""
    if culprit is None:
        return None
    asked = None if culprit.statement is None else culprit.statement.place
    return f"{culprit.file}:{culprit.line}" if culprit.file else asked


def culprit_json(culprit: Culprit | None) -> dict[str, object] | None:
    """A culprit as in JSON; None if there is none."""
    if culprit is None:
        return None
    return {
        "name": culprit.name,
        "file": culprit.file,
        "line": culprit.line,
        "op": culprit.op,
        "layer": culprit.layer,
        "calls": culprit.calls,
        "ms": round_ms(culprit.ps),
        "inside": culprit.inside,
        "statement": None if culprit.statement is None else asdict(culprit.statement),
    }


# -- what limits a run: the part of its median step that the first change shortens, else the longest part -----------

COMPUTE, INPUT = "compute_bound", "input_bound"
VERDICT_OF_CAUSE = {name: terms.verdict for name, terms in TERMS.items()}
_LABELS = {"contention": "machine busy", "copy": "copy-bound"}
_MOST_WORDS = 15  # of a headline
_COMPUTING = (Cause.DEVICE_COMPUTE, Cause.HOST_COMPUTE, Cause.COPY)
COMPUTING = tuple(each.name.lower() for each in _COMPUTING)
_INPUT = (Cause.INPUT, Cause.PYTHON, Cause.TRANSFER)
_DISPATCH = (Cause.LAUNCH, Cause.PYTHON, Cause.DEVICE_GAP)
# The causes that the advice of a class shortens, the most telling one first.
CAUSES_OF_CLASS: dict[str, tuple[Cause, ...]] = {
    **dict.fromkeys(("input_preprocessing", "input_file_read", "input_no_prefetch", "input_python"), _INPUT),
    "input_transfer": (Cause.TRANSFER, Cause.INPUT),
    **dict.fromkeys(("small_batch", "eager_dispatch"), _DISPATCH),
    "recompilation": (Cause.COMPILE, Cause.LAUNCH, Cause.PYTHON),
    "host_sync": (Cause.SYNC, Cause.PYTHON, *_DISPATCH),
    "python_overhead": (Cause.PYTHON,),
    "checkpoint_stall": (Cause.CHECKPOINT, Cause.PYTHON, Cause.COPY),
    "communication_bound": (Cause.COMMUNICATION,),
    "straggler": (Cause.COMMUNICATION, *Cause),
}


def causes_of_class(kind: str) -> tuple[str, ...]:
    """The causes that the advice of a class shortens, the most telling one first; those of computing for a class that
    changes what is computed."""
    return tuple(cause.name.lower() for cause in CAUSES_OF_CLASS.get(kind, _COMPUTING))


@dataclass(frozen=True)
class FirstChange:
    """What the first advice would change.

    Attributes:
        causes: of the account, that it shortens: the most telling one first.
        gain_percent: of the step; None if unknown.
        state: what its time is spent on, in words that follow `mostly`; empty where the causes say it.
        percent: of the step, that time.
    """

    causes: tuple[str, ...]
    gain_percent: float | None
    state: str = ""
    percent: float = 0.0

    def describe_part(self, whole_percent: float) -> str:
        """`mostly gradients that no update uses`, of computation of some share of the step; empty for a small part."""
        if not self.state or self.percent < _WORTH_A_WORD:
            return ""
        return f"{'mostly' if 2 * self.percent > whole_percent else 'partly'} {self.state}"


def judge_account(account: StepAccount, change: FirstChange | None = None) -> Verdict:
    """The verdict on a run by the account of its median step.

    The first change decides if it gains the share from which XProf calls its cause a limit, of the step that the bar
    shows, its cause takes at least half as long as the longest one, and devices do not compute for over half of the
    step; where the gain is unknown, the middle between none and all time of its causes counts, and in a capture without
    steps no other may take longer.  Else the longest cause does, and the evidence says what the change is about.  A
    busy machine is said beside the program's own limit.
    """
    account = account.representative_step
    if account.only_dispatch:
        said = "only the calls of each step were recorded, not what they compute"
        return Verdict("unknown", None, "unknown", said)
    longest, changed = _longest_of_program(account), None if change is None else row_of_change(account, change.causes)
    limiting = _limiting(account, longest)
    limit = limiting
    if change is not None and changed is not None and _gain(change, account) >= LARGE_SHARE:
        # What was not recorded may save more; and what takes less than half as long as another part is no limit.
        is_known = account.has_steps or change.gain_percent is not None or longest.cause in change.causes
        least = longest.ps / 2 if is_known else longest.ps
        computes = limiting.cause == "device_compute" and _percent(limiting, account) > 50
        stays = computes or _unexplained(account) > _gain(change, account) or changed.ps < least
        limit = limiting if stays else changed
    if longest.cause == "unknown":  # a saving elsewhere does not say what limits the step
        limit = longest
    is_said = limit.cause == "sync" and account.devices is None  # a wait for devices that were not recorded
    if account.blindness is not None and limit.cause not in account.certain and not is_said:
        known = (f"{account.blindness.why}; {cause_sentence(account, limit)}",)
        return Verdict("unknown", None, *_blind_headline(account, account.blindness, limit), None, known)
    if (against := _contradiction(account, limit)) is not None:
        return Verdict("unknown", round(_percent(limit, account), 4), "unknown", against, limit.cause)
    return Verdict(
        _verdict_of(limit, account),
        round(_percent(limit, account), 4),
        _label_of(limit, account),
        _say_limit(account, limit, limiting, change),
        limit.cause,
        (cause_sentence(account, limit), *_list_others(account, limit, limiting, changed, change)),
        _say_busy(account) if _is_busy_first(account, limit, limiting) else "",
    )


def _blind_headline(account: StepAccount, blindness: Blindness, limit: AccountRow) -> tuple[str, str]:
    """Label and words on what was not recorded; where that is all that devices do, on the limit as far as the host's
    calls show it."""
    if limit.cause == "unknown" and blindness.lost and 2 * limit.ps > account.step_ps:
        return "unknown", share_sentence(account, limit)  # more than what was launched there can hold
    if not blindness.of_devices or limit.cause in ("unknown", "sync"):
        return "unknown", blindness.why
    label = VERDICT_OF_CAUSE[limit.cause].replace("_", "-")
    label = f"{label} as recorded"
    return label, _name_culprit(label, share_sentence(account, limit), limit)


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


def _shortens(change: FirstChange, row: AccountRow, account: StepAccount) -> bool:
    """Whether a change shortens a part: it is about it, or gains more than all that it is about takes."""
    shown = sum(_percent(each, account) for each in account.rows if each.cause in change.causes)
    return row.cause in change.causes or (change.gain_percent or 0.0) > shown + LEAST_PERCENT


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


def _label_of(row: AccountRow, account: StepAccount) -> str:
    return _LABELS.get(row.cause, _verdict_of(row, account).replace("_", "-"))


def _say_limit(account: StepAccount, row: AccountRow, limiting: AccountRow, change: FirstChange | None) -> str:
    """The share of the limit; why it is not the longest part of the bar; and the culprit, if that is most of the cause
    and its name fits.  Of computation what the first change is about comes before that, if it is worth a word: what
    else computes stays."""
    part = _part_of_computing(account, row, change)
    if _is_busy_first(account, row, limiting):
        return f"{_percent(row, account):.1f} % {f'computes, {part}' if part else f'is {words_of_row(account, row)}'}"
    if part:
        return f"{_share_of(account, row)} computes, {part}"
    why = _why_not_longest(account, row, limiting, change)
    if row.cause == "unknown" and account.is_silent and row.culprit is not None and row.culprit.inside:
        share = f"{_percent(row, account):.1f} % of {account.each_step}"
        return f"for {share} the host waits in `{row.culprit.inside}` for unrecorded work"
    if row.cause == "unknown" and (known := next_to_unknown(account)) is not None:
        why = f", the rest mostly {words_of_row(account, known)}" if 2 * known.ps > account.step_ps - row.ps else ""
    return _name_culprit(_label_of(row, account), share_sentence(account, row), row, why)


def _why_not_longest(account: StepAccount, row: AccountRow, limiting: AccountRow, change: FirstChange | None) -> str:
    """Why a limit that is not the longest part is one, in words that end a headline; empty for the longest part."""
    longest = _longest_of_program(account)
    if row is longest:
        return ""
    is_sure = change is None or (change.gain_percent is not None and not _shortens(change, longest, account))
    if row is not limiting and not is_sure:
        return "; advice shortens it"  # by how much, or what of that is the longest part's, is not known
    return "; fixing it saves most"


def _part_of_computing(account: StepAccount, row: AccountRow, change: FirstChange | None) -> str:
    """What the first change is about, of a row that computes; empty for other rows."""
    if change is None or row.cause not in COMPUTING or _verdict_of(row, account) != COMPUTE:
        return ""
    return change.describe_part(_percent(row, account))


def _say_busy(account: StepAccount) -> str:
    """The share of the wait for a free core, which is the longest part."""
    return f"{_percent(account.rows[0], account):.1f} % of {account.whole_step} waits for a free core"


def _name_culprit(label: str, share: str, row: AccountRow, why: str = "") -> str:
    """The words behind the label, with the culprit, if that is most of the cause, and the reason, as far as they fit
    into a headline."""
    culprit, said, left = row.culprit, [share + why, share], _MOST_WORDS - len(label.split())
    name = _name_in_headline(culprit) if culprit is not None and 2 * culprit.ps > row.ps else ""
    if name and not re.search(rf"\d|{CODE_OF_MODULE}", name):
        said.insert(0, f"{share}, mostly `{name}`{why}")
    return next((each for each in said if len(each.split()) <= left), share)


def _name_in_headline(culprit: Culprit) -> str:
    """The culprit's name; of the function with the loop over steps, which says nothing, what its line calls."""
    if not culprit.holds_steps:
        return plain_range(culprit.name)
    return culprit.statement.called if culprit.statement is not None else ""


def next_to_unknown(account: StepAccount) -> AccountRow | None:
    """The longest of what is known, where that takes a large share; None elsewhere."""
    known = next((row for row in account.rows if row.cause not in ("unknown", CONTENTION)), None)
    return known if known is not None and _percent(known, account) >= LARGE_SHARE else None


def _is_busy_first(account: StepAccount, limit: AccountRow, limiting: AccountRow) -> bool:
    """Whether the headline begins with the wait for a free core, as the longest part of the bar."""
    return limit is limiting and account.rows[0].cause == CONTENTION and limit is not account.rows[0]


def _list_others(
    account: StepAccount,
    limit: AccountRow,
    limiting: AccountRow,
    changed: AccountRow | None,
    change: FirstChange | None,
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
        takes_more = f"{words_of_row(account, longest)} takes more, {_percent(longest, account):.1f} %"
        if change is not None and _shortens(change, longest, account):
            yield f"{takes_more}; the first advice shortens both"
        elif change is not None and change.gain_percent is None:
            yield f"{takes_more}, but how much of it the first advice saves is not known"
        else:
            yield f"{takes_more}, but no known change shortens it as much"
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
    is_idle = account.idle_ps is None or account.percent(account.idle_ps) >= LEAST_PERCENT
    others = (rival for rival in account.rivals if is_idle or rival.cause != "sync")  # nobody waits for an idle device
    grown = (rival for rival in others if VERDICT_OF_CAUSE[rival.cause] != VERDICT_OF_CAUSE[row.cause])
    return next((rival for rival in grown if 2 * (rival.then_ps - rival.now_ps) >= row.ps), None)
