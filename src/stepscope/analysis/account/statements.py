"""The statement of the program that holds most of a function's time, by samples of the stack.

A function is named by the line that defines it.  What to edit is the line within it, or within a function of the
program that it calls, that most samples show, the one furthest in:

    def get(self, i):                  # the function's name and place
        key = self.names[i]
        return self.db.execute(q, key) # the statement: most samples show this line
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

import numpy as np

from stepscope.analysis.account.innermost import cut_by_events
from stepscope.analysis.account.sampled_time import sampled_time_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.own_tracers import events_of_thread
from stepscope.analysis.steps.stack_samples import sampled_frames
from stepscope.analysis.trace.grouping import nested_on
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_statements
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.python import SampledStatement, below_packages, is_of_user, place_of, statement_of
from stepscope.vocabulary.traits import CodeTrait

_MOST_OF = 0.5  # of the function's time: with less it is one of several lines, and the function is the place
_NEARLY_ALL = 0.9  # of it: the rest is not worth a word
_OF_ALL_STEPS = 0.95  # of the time of all steps, which a loop over them holds but for their edges; as in `facts.lines`
_MUCH = 0.2  # of a loop: a line that takes less may be left as it is; judgement


@dataclass(frozen=True)
class Statement:
    """A line of the program.

    Attributes:
        file, line: where it is; called: the function that it calls, as it names it, empty if it calls none for long.
        share: the share of the function's time that it holds: above 0.5 to 1, of known work in its Python also less.
        loop, is_same, carries: of the loop around it, see SampledStatement.
        is_of_steps: that loop is the one over steps, whose rounds are the job.
    """

    file: str
    line: int
    called: str
    share: float
    loop: int = 0
    is_same: bool = False
    carries: str = ""
    is_of_steps: bool = False

    @property
    def place(self) -> str:
        """`train.py:14`."""
        return f"{self.file}:{self.line}"

    def describe(self) -> str:
        """What is known of it in words: `mostly at train.py:14, in self.db.execute`."""
        called = f", in {self.called}" if self.called else ""
        return f"{'' if self.share >= _NEARLY_ALL else 'mostly '}at {self.place}{called}"


def has_statements(trace: HostTrace, line: int) -> bool:
    """Whether samples tell statements of a thread."""
    return bool(_shown_statements(trace, line))


def main_statement(trace: HostTrace, line: int, frame: str | None, spans: Spans) -> Statement | None:
    """The statement furthest in that holds most of some time of a function; None where that was not recorded, or no
    statement holds so much.

    Args:
        line: of the thread; frame: the function, as its frames are named, None for any; spans: when it runs.
    """
    told = _shown_statements(trace, line) if spans.total else {}
    own = {type_ for type_, each in told.items() if frame is None or each.said.frame == frame}
    if not own:
        return None
    chosen, front = set(own), own
    while front:  # what those call that were found
        front = {type_ for type_, each in told.items() if each.within & front} - chosen
        chosen |= front
    whole = reduce(or_, [told[type_].shown for type_ in own]) & spans
    held: dict[tuple[str, int], dict[str, int]] = {}
    first: dict[tuple[str, int], int] = {}
    for type_ in chosen:
        if not is_of_user(told[type_].said.frame) or _holds_loop_over_steps(trace, told[type_]):
            continue  # code that a library made of the program's, or a call of the whole job
        said, ps = told[type_].said, (told[type_].shown & whole).total
        calls = held.setdefault((said.frame, said.line), {})
        calls[said.called] = calls.get(said.called, 0) + ps
        first[said.frame, said.line] = min(first.get((said.frame, said.line), len(trace.events)), told[type_].row)
    total = {key: sum(calls.values()) for key, calls in held.items()}
    most = [key for key, ps in total.items() if ps > _MOST_OF * whole.total]
    if not most:
        return None
    key = min(most, key=lambda each: (total[each], -first[each]))
    called = max(held[key], key=lambda each: held[key][each])
    _, file, _ = place_of(key[0])
    is_most = held[key][called] > _MOST_OF * total[key]
    flow = next(each.said for each in told.values() if each.said[:3] == (*key, called))
    name, share = called if is_most else "", min(total[key] / whole.total, 1.0)
    carries = flow.carries
    if key[1] == flow.loop:  # the line of `for` takes the next round; what the rounds need, their longest line says
        body = [each for each in told.values() if each.said[:2] != key and each.said[0] == key[0]]
        rounds = [((each.shown & whole).total, each.said.carries) for each in body if each.said.loop == flow.loop]
        carries = max(rounds, default=(0, ""))[1]
    goes_over = {
        type_: each for type_, each in told.items() if (each.said.frame, each.said.loop) == (key[0], flow.loop)
    }
    of_steps = bool(flow.loop) and _covers_steps(trace, reduce(or_, [each.shown for each in goes_over.values()]))
    return Statement(file or "", key[1], name, share, flow.loop, flow.is_same and is_most, carries, of_steps)


def _holds_loop_over_steps(trace: HostTrace, shown: _Shown) -> bool:
    """Whether a statement that is in no loop runs on from step to step: it calls what has the loop over steps."""
    return shown.said.to is not None and not shown.said.loop and _covers_steps(trace, shown.shown)


def _covers_steps(trace: HostTrace, spans: Spans) -> bool:
    """Whether some time is nearly all of the steps, and goes on where most of them end and the next begin: so does what
    is next to an edge, as samples blur it."""
    steps, seen = whole_steps(trace), observed_time(trace)
    if (spans & seen).total < _OF_ALL_STEPS * seen.total:
        return False
    begins = distinct(steps.start_ps)[1:]
    return bool(len(begins)) and float((spans.overlap_ps(begins - 1, begins + 1) == 2).mean()) > _MOST_OF


def reaches(trace: HostTrace, line: int, frame: str, wanted: Spans) -> bool | None:
    """Whether statements that run in some time take the result of a function; None where that is not known.

        states = rollout(policy)           # the function
        loss = criterion(policy(states))   # takes its result

    Args:
        line: of the thread; frame: the function, as its frames are named.
    """
    told = _shown_statements(trace, line)
    front, seen, is_known = _callers(told, frame), set[int](), True
    while front:
        type_ = front.pop()
        seen.add(type_)
        said = told[type_].said
        peers = [each for each in told.values() if each.said.frame == said.frame and (each.shown & wanted).total]
        within = {each.said.line for each in peers if each.said.called != said.called}  # train(states(x))
        if within & {*(said.to or ()), said.line} or {each.said.line for each in peers} & (said.to or frozenset()):
            return True
        if said.is_returned or name_has(said.frame, CodeTrait.PART_OF_FUNCTION):  # [draw(each) for each in rows]
            front |= _callers(told, said.frame) - seen
        is_known &= said.to is not None and not said.is_kept and not said.carries  # which the next round takes
        is_known &= (told[type_].shown & wanted).total < _MOST_OF * wanted.total  # improve(policy, rollout(policy))
    return False if seen and is_known else None


def loop_around(trace: HostTrace, line: int, frame: str, training: Spans) -> tuple[str, str]:
    """The nearest loop that calls a function, other than one in which the thread trains, as that over steps: `line 20
    of assign (train.py)`, and what a round of it, with that call, needs of the one before; empty where none is known.

    Args:
        line: of the thread; frame: the function, as its frames are named.
    """
    told = _shown_statements(trace, line)
    training_in = [each for each in told.values() if (each.shown & training).total >= _MOST_OF * each.shown.total]
    trains = {(place_of(each.said.frame)[1], each.said.loop) for each in training_in}
    front, seen = _callers(told, frame), set[int]()
    while front:
        type_ = front.pop()
        seen.add(type_)
        said = told[type_].said
        name, file, _ = place_of(said.frame)
        if said.loop and (file, said.loop) not in trains:
            return f"line {said.loop} of {name} ({file})", said.carries
        front |= _callers(told, said.frame) - seen
    return "", ""


def statement_that_calls(trace: HostTrace, line: int, frame: str, spans: Spans) -> tuple[str, Statement] | None:
    """Of several statements that call a function the one that does so for most of some time, with the name of the
    frames that it is in; None where one alone calls it, or none is known.

    Args:
        line: of the thread; frame: the function, as its frames are named; spans: in which it runs.
    """
    told = _shown_statements(trace, line)
    held = {type_: (told[type_].shown & spans).total for type_ in _callers(told, frame)}
    type_ = max(held, key=lambda each: held[each], default=-1)
    if len({told[each].said[:2] for each in held}) < 2 or held[type_] <= _MOST_OF * spans.total:
        return None
    said = told[type_].said
    share = min(held[type_] / spans.total, 1.0)
    return said.frame, Statement(place_of(said.frame)[1] or "", said.line, said.called, share, said.loop)


def is_called_in_loop(trace: HostTrace, line: int, frame: str) -> bool:
    """Whether samples of a thread show a call of a function in a loop of the one that calls it."""
    told = _shown_statements(trace, line)
    return any(told[type_].said.loop for type_ in _callers(told, frame))


def takes_result(trace: HostTrace, line: int, frame: str, made: Spans) -> bool:
    """Whether a function is called with what statements give that run in some time.

        loss, gradients = step(weights)    # runs in that time
        weights = update(gradients)        # the function takes its result

    Args:
        line: of the thread; frame: the function, as its frames are named.
    """
    told = _shown_statements(trace, line)
    calls = {told[type_].said[:2] for type_ in _callers(told, frame)}
    giving = [each.said for each in told.values() if (each.shown & made).total >= _MOST_OF * made.total > 0]
    return any((said.frame, each) in calls for said in giving for each in said.to or ())


def _callers(told: Mapping[int, _Shown], frame: str) -> set[int]:
    """The types of the statements that call a function."""
    around = {outer for each in told.values() if each.said.frame == frame for outer in each.within}
    return {type_ for type_ in around & told.keys() if told[type_].said.frame != frame}


@dataclass(frozen=True)
class _Shown:
    """A statement that samples of a thread show, wherever it was called from.

    Attributes:
        said: its name; row: its first event; within: the types of the statements around it; shown: when it runs.
    """

    said: SampledStatement
    row: int
    within: frozenset[int]
    shown: Spans


def _shown_statements(trace: HostTrace, line: int) -> dict[int, _Shown]:
    """The statements of a thread by the type of their events, found once."""
    return trace.derived(f"statements of line {line}", lambda of: _find_statements(of, line))


def _find_statements(trace: HostTrace, line: int) -> dict[int, _Shown]:
    rows = events_of_thread(trace, line, holds_statements)
    sampled = sampled_time_of(trace, line) if len(rows) else None
    if sampled is None:
        return {}
    types, parent = trace.events.type, nested_on(trace, distinct(trace.events.line[rows]))
    found = {}
    for type_ in distinct(types[rows]).tolist():
        own = rows[types[rows] == type_]
        around = parent[own][parent[own] >= 0]
        shown, _, _ = sampled.spans_shown(spans_of(trace, own))
        said, within = statement_of(trace.name_of(int(own[0]))), frozenset(distinct(types[around]).tolist())
        found[type_] = _Shown(said, int(own[0]), within - {type_}, shown)
    return found


@dataclass(frozen=True)
class SampledLoop:
    """A loop of the program that samples of a thread show.

    Attributes:
        frame: of the function that it is in, as its frames are named; line: of the loop.
        carries: what a round needs of the one before, by the statement that takes longest; empty for nothing.
        needs: the same, by any statement that takes much of it.
        spans: when the thread is in it.
    """

    frame: str
    line: int
    carries: str
    needs: str
    spans: Spans


def loops_of_thread(trace: HostTrace, line: int) -> list[SampledLoop]:
    """The loops of the program that samples of a thread show, in no order."""
    bodies: dict[tuple[str, int], list[_Shown]] = {}
    for each in _shown_statements(trace, line).values():
        if each.said.loop and is_of_user(each.said.frame):
            bodies.setdefault((each.said.frame, each.said.loop), []).append(each)
    found = []
    for (frame, loop), body in bodies.items():
        longest = max(body, key=lambda each: (each.said.line != loop, each.shown.total))  # `for` takes the next round
        spans = reduce(or_, [each.shown for each in body])
        needed = next(filter(None, [longest.said.carries, *_carried_by_lines(body)]), "")
        found.append(SampledLoop(frame, loop, longest.said.carries, needed, spans))
    return found


def _carried_by_lines(body: list[_Shown]) -> list[str]:
    """What the lines of a loop that take much of it need of the round before, the longest first."""
    lines: dict[int, list[_Shown]] = {}
    for each in body:
        lines.setdefault(each.said.line, []).append(each)
    ps = {line: reduce(or_, [each.shown for each in own]).total for line, own in lines.items()}
    much = [line for line in sorted(ps, key=lambda each: -ps[each]) if ps[line] >= _MUCH * sum(ps.values())]
    return [each.said.carries for line in much for each in lines[line] if each.said.carries]


def loop_in(trace: HostTrace, line: int, frame: str, spans: Spans) -> SampledLoop | None:
    """The innermost loop of a function that holds most of some time, whichever of its lines take it; None without one.

    Args:
        line: of the thread; frame: the function, as its frames are named.
    """
    own = [each for each in loops_of_thread(trace, line) if each.frame == frame]
    held = [each for each in own if (each.spans & spans).total > _MOST_OF * spans.total]
    return max(held, key=lambda each: each.line, default=None)


@dataclass(frozen=True)
class StatementTime:
    """When a line of the program runs that samples show furthest in among the program's.

    Attributes:
        row: of one of its events; inside: the library's function that most of its samples show furthest in, such as
            `numpy/_core/einsumfunc.py:1244 einsum`, empty without one.
        spans, certain, samples: as of LoopFunction.
    """

    row: int
    statement: Statement
    inside: str
    spans: Spans
    certain: Spans
    samples: I64


def statements_of_loop(trace: HostTrace, line: int) -> list[StatementTime]:
    """The lines of the program that samples of a thread show furthest in, in the observed time."""
    rows, frames = events_of_thread(trace, line, holds_statements), sampled_frames(trace, line)
    sampled = sampled_time_of(trace, line) if len(rows) and len(frames) else None
    if sampled is None:
        return []
    times, events, seen = sampled.times, trace.events, observed_time(trace)
    inner, outer = (cut_by_events(trace, int(events.line[each[0]]), times, times + 1)[3] for each in (frames, rows))
    types = np.where(outer >= 0, events.type[outer], -1)
    found = []
    for type_ in distinct(types[types >= 0]).tolist():
        shown = types == type_
        said = statement_of(trace.name_of(int(outer[shown][0])))
        if not is_of_user(said.frame):
            continue
        spans, certain = (
            Spans.union(sampled.start[each], sampled.end[each]) & seen
            for each in (shown[sampled.sample], shown[sampled.sample] & shown[sampled.other])
        )
        kinds, count = np.unique(events.type[inner[shown & (inner >= 0)]], return_counts=True)
        frame = trace.strings[trace.event_types.name[kinds[count.argmax()]]] if len(kinds) else ""
        name, file, at = place_of(frame)
        inside = f"{below_packages(file)}:{at} {name}" if file and not is_of_user(frame) else ""
        statement = Statement(place_of(said.frame)[1] or "", said.line, said.called, 1.0)
        found.append(StatementTime(int(outer[shown][0]), statement, inside, spans, certain, times[shown]))
    return found


@dataclass(frozen=True)
class LineTime:
    """A line of the program that samples of a thread show.

    Attributes:
        file, line, function: where it is.
        spans: when it runs, with all that it calls, in the observed time.
        own: the part of that in which no other line of the program runs inside it.
    """

    file: str
    line: int
    function: str
    spans: Spans
    own: Spans


def lines_of_thread(trace: HostTrace, line: int) -> list[LineTime]:
    """The lines of the program that samples of a thread show, in no order."""
    seen, nothing = observed_time(trace), Spans.union(np.empty(0, np.int64), np.empty(0, np.int64))
    own: dict[tuple[str, int], Spans] = {}
    for each in statements_of_loop(trace, line):
        key = each.statement.file, each.statement.line
        own[key] = own.get(key, nothing) | each.spans
    around: dict[tuple[str, int], list[_Shown]] = {}
    for said in _shown_statements(trace, line).values():
        file = place_of(said.said.frame)[1] if is_of_user(said.said.frame) else None
        if file:
            around.setdefault((file, said.said.line), []).append(said)
    found = []
    for (file, at), shown in around.items():
        # A comprehension is a function of its own in older Pythons, at the line of the one that a person knows.
        named = min(shown, key=lambda each: (name_has(each.said.frame, CodeTrait.PART_OF_FUNCTION), each.row))
        inner = own.get((file, at), nothing)
        spans = (reduce(or_, [each.shown for each in shown]) & seen) | inner
        if spans.total:
            found.append(LineTime(file, at, place_of(named.said.frame)[0], spans, inner))
    return found
