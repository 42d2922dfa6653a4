"""The account as reports show it: rows, and the sentence that says what most of a step is spent on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from stepscope.analysis.account.account import CONTENTION, AccountRow, StepAccount
from stepscope.analysis.account.causes import MEANING, TERMS, Cause
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.evidence import Known
from stepscope.analysis.account.long_steps import LongSteps
from stepscope.report import Cell, Field, Role, clean, percent, round_ms, shorten_name
from stepscope.report.columns import rows_in_ms
from stepscope.vocabulary.python import plain_built_in
from stepscope.vocabulary.torch import plain_range

_KNOWN = tuple(each.name.lower() for each in Known)
_LONGEST_NAME = 80  # characters, of a line of the terminal
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


def account_shown(accounts: Sequence[StepAccount | None]) -> StepAccount | None:
    """The account that stands for a session: that of the host that sets the pace, which is busy longest, communication
    not counted, since there it waits for others; None without any account.

    Hosts on which no steps were found count only where there are no others.
    """
    known = [account for account in accounts if account is not None and account.step_ps > 0]
    return max(known, key=lambda account: (account.has_steps, account.own_ps, account.step_ps), default=None)


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
    whole = account.each_step if row.cause != CONTENTION else account.whole_step
    if account.is_uneven(row):
        whole = whole.replace("each step", "the median step", 1)
    return f"{account.percent(row.ps, row.cause):.1f} % of {whole} is {words_of_row(account, row)}"


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
    is."""
    name = shorten_name(plain_range(clean(culprit.name)), _LONGEST_NAME)
    place = describe_place(culprit) or ""
    place = place.rpartition("/")[2] if place.startswith("/") else place
    return f"{place} {name}" if culprit.file else name


def where_to_look(culprit: Culprit) -> str:
    """``in `train.py:9 step` ``, its line that holds most of its time, ``at train.py:14, in `step` ``, or the line
    that asks for an op, ``at train.py:14, `mm` ``."""
    if culprit.statement is None:
        return f"in `{culprit_name(culprit)}`"
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
