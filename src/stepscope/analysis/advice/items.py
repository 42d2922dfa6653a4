"""A piece of advice, with the rows and intervals that show its evidence."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stepscope.analysis.account.account_text import culprit_json
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.predict import usual_error
from stepscope.proof.record import Proof, measured_json
from stepscope.records import dataclass
from stepscope.vocabulary.python import place_of

CLASSES: tuple[str, ...] = (
    "input_preprocessing",
    "input_file_read",
    "input_no_prefetch",
    "input_python",
    "input_transfer",
    "small_batch",
    "recompilation",
    "eager_dispatch",
    "host_sync",
    "python_overhead",
    "checkpoint_stall",
    "redundant_compute",
    "memory_churn",
    "straggler",
    "communication_bound",
    "low_precision",
    "none",
)
LEAST_GAIN = 1.03  # times as fast: 3 % is the least gain that is advised
_DOCS = "advice.md"
# Others say as much.
_NOT_IN_JSON = ("least_step_time_ms", "most_step_time_ms", "part_ms", "also", "is_indication", "state", "late")


def plain_name(function: str) -> str:
    """A function's name alone, without its class and file."""
    return place_of(function)[0].rpartition(".")[2].removesuffix("()")


def describe_speedup(speedup: float, least: float | None, most: float | None) -> tuple[str, str]:
    """A predicted speed-up and its range in words, each empty where there is none to say: without an upper end the
    lower one, if that is a gain at all.

    >>> describe_speedup(1.6, 1.3, 2.0), describe_speedup(2.0, 1.3, None), describe_speedup(2.0, 1.0, None)
    (('about 1.6x faster', '1.3x to 2x'), ('at least 1.3x faster', ''), ('about 2x faster', '1x or more'))
    """
    if least is None:
        return f"about {speedup:g}x faster", ""
    if most is None and (speedup <= least or least >= LEAST_GAIN):
        return f"at least {least:g}x faster", ""
    if most == least == speedup:
        return f"about {speedup:g}x faster", ""
    return f"about {speedup:g}x faster", f"{least:g}x or more" if most is None else f"{least:g}x to {most:g}x"


@dataclass(frozen=True)
class Row:
    """A row of a tool that shows the evidence.

    Attributes:
        tool: the tool's name.
        key: what identifies the row: the name of an op, a cause of the account or a host.
        value_ms: its time per step.
    """

    tool: str
    key: str
    value_ms: float


PART_OF_CLASS: dict[str, str] = dict.fromkeys(CLASSES[:4], "input") | {
    "checkpoint_stall": "checkpoint", "host_sync": "sync",
}  # fmt: skip
"""The part that `--ablate` leaves out for a class of advice."""


@dataclass(frozen=True)
class Interval:
    """A time interval that shows the evidence; times count from the start of the host's session."""

    host: str
    name: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to change.

    Attributes:
        id: stable name of the advice.
        kind: one of CLASSES (`class` in JSON).
        title: what to do, in a few words.
        evidence: the measured facts behind it.
        predicted_speedup: step time now over `predicted_step_time_ms`; None if unknown.
        actions: what to do, most effective first.
        tool: the tool that shows the details.
        confidence: 0 to 1, how sure the rule is of the class.
        step_time_ms: the step now, as the account has it.
        predicted_step_time_ms: the same without the cause, or the most that may be left of it where the error of the
            prediction is as large as what is left; None if nothing can be predicted.
        least_step_time_ms, most_step_time_ms: its range; None to estimate it.
        part_ms: time per step that the advice is about, which ranks it if no gain is known.
        reasoning: how the prediction is computed; also: what it says of other causes that get shorter, too.
        beside: of the first advice, why it is not about what the verdict names, in words that its title follows; empty
            where it is.
        change: the row of the table of changes whose replay the prediction is; empty if it is none.
        is_indication: what was recorded is usual where nothing is wrong, too: it is never the first thing to do.
        state: what the time that it is about is spent on, in words that follow `mostly`; empty where its class says it.
        late: the rank, or the stage of a pipeline, that the others wait for; empty where it is about none alone.
        rows, intervals: where the evidence is found.
        culprit: what a person can edit, in the median step; None where the trace names nothing.
        measured: what `stepscope prove` measured of it; None if it was not tried.
    """

    id: str
    kind: str
    title: str
    evidence: str
    predicted_speedup: float | None
    actions: tuple[str, ...]
    tool: str
    confidence: float = 0.8
    step_time_ms: float | None = None
    predicted_step_time_ms: float | None = None
    least_step_time_ms: float | None = None
    most_step_time_ms: float | None = None
    part_ms: float | None = None
    reasoning: str = ""
    also: str = ""
    beside: str = ""
    change: str = ""
    is_indication: bool = False
    state: str = ""
    late: str = ""
    rows: tuple[Row, ...] = ()
    intervals: tuple[Interval, ...] = ()
    culprit: Culprit | None = None
    measured: Proof | None = None

    @property
    def gain_percent(self) -> float | None:
        """Percent of the time from step to step that the change saves; None if unknown."""
        if not self.step_time_ms or self.predicted_step_time_ms is None:
            return None
        return 100.0 * (self.step_time_ms - self.predicted_step_time_ms) / self.step_time_ms

    @property
    def speedup_range(self) -> tuple[float, float | None] | None:
        """The likely range of the speed-up; the real one was inside it in four of five programs.

        None if the gain is unknown; without an upper end where nothing may be left of the step.
        """
        now, then = self.step_time_ms, self.predicted_step_time_ms
        if not now or not then or self.predicted_speedup is None:
            return None
        off = usual_error(now, then)
        longest = then + off if self.most_step_time_ms is None else self.most_step_time_ms
        shortest = then - off if self.least_step_time_ms is None else self.least_step_time_ms
        most = max(round(now / shortest, 2), 1.0) if shortest > 0 else None
        return max(self.predicted_speedup if longest == then else round(now / longest, 2), 1.0), most

    @property
    def may_gain_nothing(self) -> bool:
        """Whether the gain may be no more than the usual error of predictions on hosts without a device."""
        now, then = self.step_time_ms, self.predicted_step_time_ms
        if not now or not then or self.predicted_speedup is None:
            return False
        return now - then <= usual_error(now, then)

    @property
    def certain_percent(self) -> float | None:
        """Percent of the step that the change saves at least; None if unknown."""
        return 100.0 * (1.0 - 1.0 / self.speedup_range[0]) if self.speedup_range else None

    @property
    def prove(self) -> str | None:
        """The command that measures it in the running job; None where there is nothing to leave out or to delay."""
        file, name = (self.culprit.file, plain_name(self.culprit.name)) if self.culprit else (None, "")
        place = f"{file}:{name}" if file and name.isidentifier() else ""
        asked = [f"--ablate {part}"] if (part := PART_OF_CLASS.get(self.kind, "")) else []
        if place and part in ("", "input"):  # a program may have no loader
            asked.append(f"--ablate {place}" if part else f"--at {place}")
        return f"stepscope prove {' '.join(asked)} SCRIPT" if asked else None

    @property
    def docs(self) -> str:
        """The section of the documentation that explains the class."""
        return f"{_DOCS}#{self.kind}"

    def to_dict(self) -> dict[str, Any]:
        """The item as in JSON."""
        item = asdict(self)
        item["class"] = item.pop("kind")
        for name in _NOT_IN_JSON:
            del item[name]
        least, most = self.speedup_range or (None, None)
        return item | {
            "predicted_speedup_least": least,
            "predicted_speedup_most": most,
            "docs": self.docs,
            "culprit": culprit_json(self.culprit),
            "beside": self.beside or None,
            "measured": measured_json(self.measured),
            "prove": self.prove,
            "actions": list(self.actions),
            "rows": list(item["rows"]),
            "intervals": list(item["intervals"]),
        }
