"""Which blocks of steps run when, and what becomes of their times.

An experiment is a generator: it gives how many steps it needs no word of, is sent the lengths of so many or fewer, and
changes the program before the next one.  So it reads in the order in which things happen, runs wholly on the thread of
the steps, and ends wherever the program ends.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from pathlib import Path
from statistics import median
from typing import TypeVar

from stepscope.capture.job import this_worker
from stepscope.capture.proving.changes import CallChange, Count, Defer, Delay, Omit, ReplayedStep, measure_cost
from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.proving.places import TargetFunction, find_targets, find_why_not_called, has_workers
from stepscope.errors import CaptureError
from stepscope.proof.pairs import Block, Pair, PairsFinding, compare_pairs
from stepscope.proof.parts import PARTS
from stepscope.proof.plan import (
    BLOCK_S,
    CLOSE_GAIN,
    CLOSE_SENSITIVITY,
    ENOUGH_PAIRS,
    FEWEST_CALLS,
    FEWEST_PAIRS,
    FEWEST_STEPS,
    LONGER,
    MOST_IDLE_STEPS,
    PAIRS_OF_RANKS,
    changed_first,
    choose_delay,
    choose_dose,
    choose_steps,
)
from stepscope.proof.record import ABLATION, DELAY, FILE, Proof, write_proofs
from stepscope.records import dataclass

TOO_EARLY = "the program ended too early"
_FIRST_STEPS = 16  # plain ones, before anything is changed, from which the blocks are chosen
_AT_ONCE = 16  # plain steps after which it is asked whether a block takes too long
_STEP_OF_RANKS_S = 0.03  # the step that blocks of ranks are made for, whatever each measures: all have to choose alike

T = TypeVar("T")
Steps = Generator[int, Sequence[float], T]


@dataclass
class Treatment:
    """One change that is measured, and its pairs so far.

    Attributes:
        proof: what is known before the pairs: the place, its calls, a note.
        usual_s: a step before anything was changed.
        block_s: how long a block is meant to be.
        steps: how many a plain block has, and a changed one.
        fewest: how many it has at least, where steps have become so slow that these would take several times as long.
        targets, make_change: what is changed, and how in a block.
        cost_s: what the change itself takes in a step.
        pairs: what was measured.
        refused: why it cannot be measured; empty if it can.
        is_tried: whether the change was on the program before.
        is_close: whether the interval is narrow enough.
    """

    proof: Proof
    usual_s: float = 0.0
    block_s: float = BLOCK_S
    steps: tuple[int, int] = (0, 0)
    fewest: int = FEWEST_STEPS
    targets: Sequence[TargetFunction] = ()
    make_change: Callable[[], CallChange] = CallChange
    cost_s: float = 0.0
    pairs: list[Pair] = field(default_factory=list)
    refused: str = ""
    is_tried: bool = False
    is_close: bool = False

    @property
    def is_delay(self) -> bool:
        """Whether a sensitivity is measured, and not a gain."""
        return self.proof.kind == DELAY

    def refuse(self, why: str) -> None:
        """Leaves the program alone from now on; in a job of several ranks the others keep to the same blocks."""
        self.refused, self.targets, self.make_change = why, (), CallChange

    def judge(self) -> PairsFinding | None:
        """What the pairs say; None without any."""
        return compare_pairs(self.pairs, self.is_delay, self.cost_s, self.usual_s) if self.pairs else None

    def choose_blocks(self, plain_s: float, changed_s: float) -> None:
        """Makes blocks as long as they are meant to be, and so long that they hold some calls of the place.

        Args:
            plain_s, changed_s: a step without and with the change.
        """
        calls = self.proof.calls or 1.0
        self.fewest = max(math.ceil(FEWEST_CALLS / calls) if calls < 1 else 0, FEWEST_STEPS)
        plain, changed = (max(choose_steps(step_s, self.block_s), self.fewest) for step_s in (plain_s, changed_s))
        self.steps = plain, changed

    def lengthen(self) -> None:
        """Starts anew with longer blocks."""
        self.block_s *= LONGER
        self.steps = LONGER * self.steps[0], LONGER * self.steps[1]
        self.pairs = []


class Experiment:
    """Measures all that was asked for.

    Args:
        options: what that is.
        show_line: called with a line for the user.
        clock: the time in seconds.
        read_queued: for how long the thread of the steps has waited for processors so far, in seconds.
        wait: waits until devices have done what the steps have started.

    Attributes:
        proofs: what was found, in the order of the answers.
        ablated: whose place is left out now; None for nobody's.
        ended_steps: how many steps it was sent.
    """

    def __init__(
        self,
        options: ProveOptions,
        show_line: Callable[[str], object],
        clock: Callable[[], float] = time.perf_counter,
        read_queued: Callable[[], float] = lambda: 0.0,
        wait: Callable[[], object] = lambda: None,
    ) -> None:
        self._options = options
        self._show_line = show_line
        self._clock = clock
        self._read_queued = read_queued
        self._wait = wait
        self._undo = ExitStack()
        self._start_s = self._end_s = clock()
        self._pid, worker = os.getpid(), this_worker()
        self._rank, self._together = str(worker.rank or 0), worker.rank is not None
        self._treatments: list[Treatment] = []
        self.proofs: list[Proof] = []
        self.ablated: Treatment | None = None
        self.ended_steps = 0

    def run(self) -> Steps[None]:
        """Measures; is sent how long steps took, in seconds, when the last of them has ended."""
        why_nothing = TOO_EARLY
        try:
            yield from self._measure()
            why_nothing = "its blocks took longer than the budget: give it a larger --budget"
        finally:
            self.put_back()
            self.conclude(why_nothing)

    def put_back(self) -> None:
        """Takes everything off the program again; any thread may call it."""
        self._undo.close()
        self.ablated = None

    def _measure(self) -> Steps[None]:
        first = yield from self._collect(_FIRST_STEPS)
        for kind, places in ((DELAY, self._options.at), (ABLATION, self._options.ablate)):
            for place in places:
                yield from self._prepare(place, kind, first)
        self._end_s = self._clock() + self._options.budget_s
        number = 0
        while unfinished := [treatment for treatment in self._treatments if not self._is_done(treatment)]:
            for treatment in unfinished:
                yield from self._add_pair(treatment, number)
                number += 1

    def _is_done(self, treatment: Treatment) -> bool:
        if self._together:
            return len(treatment.pairs) >= PAIRS_OF_RANKS
        return bool(treatment.refused) or self._clock() > self._end_s or treatment.is_close

    # -- one place -----------------------------------------------------------------------------------------------------

    def _prepare(self, place: str, kind: str, first: Block) -> Steps[None]:
        """Finds a place, and counts its calls for a block."""
        usual_s = median(first.own_steps if kind == DELAY else first.steps)
        treatment = Treatment(Proof(self._options.program, kind, place), usual_s, self._choose_block_s())
        treatment.choose_blocks(*2 * (_STEP_OF_RANKS_S if self._together else usual_s,))
        self._treatments.append(treatment)
        name, rank = split_rank(place)
        if rank not in ("", self._rank):
            treatment.refuse(f"it is changed on rank {rank}")
        else:
            with refusing(treatment):
                treatment.targets = find_targets(name)
        count = Count()
        with self._changed(treatment, count):
            steps = len((yield from self._collect(treatment.steps[0], treatment)).steps)
            if count.calls < steps and not self._together:
                yield from self._collect(MOST_IDLE_STEPS)
                steps += MOST_IDLE_STEPS
        with refusing(treatment):
            if not (count.calls or treatment.refused):
                raise find_why_not_called(treatment.targets)
        if not treatment.refused:
            self._choose_change(treatment, name, count, steps, first)

    def _choose_block_s(self) -> float:
        """How long blocks are, so that a small budget has enough of them for an interval."""
        places = len(self._options.at) + len(self._options.ablate)
        return min(BLOCK_S, self._options.budget_s / places / (2 * FEWEST_PAIRS + 4))

    def _choose_change(self, treatment: Treatment, name: str, count: Count, steps: int, first: Block) -> None:
        """What is put at the place, and what is known of its calls: `count` of `steps` steps."""
        calls, is_on_loop = count.calls / steps, threading.get_ident() in count.threads
        known = treatment.targets[0] if name not in PARTS else None
        file, line = (known.file, known.line) if known else (None, None)
        treatment.proof = replace(
            treatment.proof, calls=calls, place_ms=1e3 * count.seconds / steps, file=file, line=line
        )
        if treatment.is_delay:
            dose = choose_dose(choose_delay(first.own_steps, treatment.steps[0]), calls)
            treatment.make_change = functools.partial(Delay, dose, count.computes)
            bare: CallChange = Delay(replace(dose, seconds=0.0), computes=False)
        else:
            make = _ABLATIONS.get(name, ReplayedStep)
            treatment.make_change, bare = functools.cache(make), make()  # what was kept serves all blocks
        if is_on_loop:
            treatment.cost_s = measure_cost(bare) * calls
        notes = [] if is_on_loop else ["only other threads than that of the steps call it"]
        if not treatment.is_delay and name not in PARTS:
            notes.append("its side effects were left out, too")
        if treatment.is_delay and name == "input" and has_workers():
            notes.append("workers prepare batches during a delay: --ablate input says what they cost")
        treatment.proof = replace(treatment.proof, note="; ".join(notes))
        if not self._together:
            treatment.choose_blocks(treatment.usual_s, treatment.usual_s)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _add_pair(self, treatment: Treatment, number: int) -> Steps[None]:
        blocks: dict[bool, Block] = {}
        start_s = self._clock()
        for is_changed in (True, False) if changed_first(number) else (False, True):
            blocks[is_changed] = yield from self._run_block(treatment, is_changed)
        if treatment.refused and not self._together:
            return
        if treatment.is_delay or treatment.is_tried or self._together:
            treatment.pairs.append(Pair(blocks[False], blocks[True]))
        else:  # now it is known how many steps with the change make a block
            treatment.is_tried = True
            treatment.choose_blocks(treatment.usual_s, median(blocks[True].steps))
        if not self._together:  # else all keep to the same blocks to the end
            self._adapt(treatment, self._clock() - start_s)

    def _adapt(self, treatment: Treatment, pair_s: float) -> None:
        """Ends a measurement that is narrow enough; makes blocks longer that had not settled, if there is time for
        enough pairs of them where one took `pair_s` until now."""
        finding = treatment.judge()
        if finding is None or finding.found is None:
            return
        found, count = finding.found, len(treatment.pairs)
        wanted = CLOSE_SENSITIVITY if treatment.is_delay else CLOSE_GAIN * found.value
        treatment.is_close = finding.is_settled and count >= FEWEST_PAIRS and found.half_width <= wanted
        others = sum(not self._is_done(each) for each in self._treatments if each is not treatment)
        needed_s = ENOUGH_PAIRS * LONGER * pair_s * (1 + others)
        if not (finding.is_settled or count % ENOUGH_PAIRS) and self._clock() + needed_s < self._end_s:
            treatment.lengthen()

    def _run_block(self, treatment: Treatment, is_changed: bool) -> Steps[Block]:
        change = treatment.make_change() if is_changed else CallChange()
        with self._changed(treatment if is_changed else None, change):
            self.ablated = treatment if is_changed and not treatment.is_delay else None
            block = yield from self._collect(treatment.steps[is_changed], treatment, change)
            self.ablated = None
        if change.refused:
            treatment.refuse(change.refused)
        return block

    @contextmanager
    def _changed(self, treatment: Treatment | None, change: CallChange) -> Iterator[None]:
        """Puts a change around the functions of a treatment; for None nothing is changed."""
        with self._undo:
            if treatment is not None:
                with refusing(treatment):
                    for target in treatment.targets:
                        self._undo.callback(target.install(functools.partial(change.wrap, name=target.name)))
            yield

    def _collect(
        self, count: int, treatment: Treatment | None = None, change: CallChange | None = None
    ) -> Steps[Block]:
        """Runs so many steps, or fewer where those of a treatment take far longer than its blocks are meant to."""
        change = change or CallChange()
        steps: list[float] = []
        delays: list[float] = []
        queued_s, start_s = self._read_queued(), self._clock()
        late_s = math.inf if treatment is None or self._together else start_s + LONGER * treatment.block_s
        while len(steps) < count and not (treatment and len(steps) >= treatment.fewest and self._clock() > late_s):
            before_s = change.spent_s
            ended = yield min(count - len(steps), _AT_ONCE) if type(change) is CallChange else 1
            steps += ended
            delays += [change.spent_s - before_s] * len(ended)
            self.ended_steps += len(ended)
            change.next_step()
        end_s = self._clock()
        self._wait()
        return Block(steps, delays, self._read_queued() - queued_s, self._clock() - end_s)

    def save(self, session: Path) -> None:
        """Writes the proofs beside a session, and where the user wants them."""
        session.mkdir(parents=True, exist_ok=True)
        for file in (str(session / FILE), self._options.output):
            if self.proofs and file:
                write_proofs(self.proofs, Path(file))

    # -- answers -------------------------------------------------------------------------------------------------------

    def conclude(self, why_nothing: str) -> None:
        """Makes a proof of all that was asked for, also of what the end of the program cut short; a fork has none."""
        if os.getpid() != self._pid or self.proofs:
            return
        asked = [(DELAY, place) for place in self._options.at] + [(ABLATION, place) for place in self._options.ablate]
        found = {(treatment.proof.kind, treatment.proof.place): treatment for treatment in self._treatments}
        for kind, place in asked:
            treatment = found.get((kind, place)) or Treatment(Proof(self._options.program, kind, place))
            rank = split_rank(place)[1] or "0"
            if rank == self._rank:
                self.proofs.append(self._make_proof(treatment, why_nothing))
                self._show_line(self.proofs[-1].sentence)
            elif self._rank == "0":
                self.proofs.append(replace(treatment.proof, note=f"rank {rank} measures it, and has not answered"))

    def _make_proof(self, treatment: Treatment, why_nothing: str) -> Proof:
        said, finding = replace(treatment.proof, seconds=self._clock() - self._start_s), treatment.judge()
        if treatment.refused or finding is None:
            return replace(said, note=treatment.refused or why_nothing)
        if finding.found is None:
            return replace(said, note="it was not called in the blocks that were delayed")
        value, plain_ms = finding.found.value, 1e3 * finding.plain_s
        delay_ms = 1e3 * finding.delay_s if treatment.is_delay else None
        changed_ms = plain_ms / value if delay_ms is None else plain_ms + value * delay_ms
        if not finding.is_settled:
            said = replace(said, note="; ".join(filter(None, (said.note, _NOT_SETTLED))))
        said = replace(said, step_ms=plain_ms, changed_ms=changed_ms, delay_ms=delay_ms, steps=finding.steps)
        return said.with_estimate(finding.found)


_NOT_SETTLED = "steps still became slower or faster at the end of blocks: a larger --budget has longer ones"

_ABLATIONS: dict[str, Callable[[], CallChange]] = {"logging": Omit, "checkpoint": Omit, "sync": Defer}
"""What leaving out a part means; anything else gets its last results again."""


@contextmanager
def refusing(treatment: Treatment) -> Iterator[None]:
    """Refuses a treatment that cannot be changed."""
    try:
        yield
    except CaptureError as error:
        treatment.refuse("; ".join(filter(None, (error.problem.reason, error.problem.hint))))


def split_rank(place: str) -> tuple[str, str]:
    """A place and the rank after its `@`; empty for all ranks."""
    name, _, rank = place.rpartition("@")
    return (name, rank) if name and rank.isdigit() else (place, "")
