"""Which blocks of steps run when, and what becomes of their times.

A campaign is a generator: it is sent the length of each step, and changes the program before the next one.  So it
reads in the order in which things happen, runs wholly on the thread of the steps, and ends wherever the program ends.
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
from statistics import fmean, median
from typing import NamedTuple, TypeVar

from stepscope.capture.proving.changes import CallChange, Count, Defer, Delay, Omit, Replay, measure_cost
from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.proving.places import Target, find_targets, refuse_running
from stepscope.errors import CaptureError
from stepscope.proof.pairs import BlockTimes, Pair, gain_of, is_settled, sensitivity_of
from stepscope.proof.parts import PARTS
from stepscope.proof.plan import (
    CLOSE_GAIN,
    CLOSE_SENSITIVITY,
    FEWEST_CALLS,
    FEWEST_PAIRS,
    MOST_STEPS,
    PAIRS_OF_RANKS,
    Blocks,
    changed_first,
    choose_blocks,
    choose_delay,
    choose_dose,
)
from stepscope.proof.record import ABLATION, DELAY, FILE, Proof, write_proofs
from stepscope.records import dataclass

_FIRST_STEPS = 16  # plain ones, before anything is changed, from which the blocks are chosen
_STEP_OF_RANKS_S = 0.03  # the step that blocks of ranks are made for, whatever each measures: all have to choose alike

T = TypeVar("T")


class StepTime(NamedTuple):
    """How long a step took.

    Attributes:
        seconds: in all.
        queued_s: the part in which its thread waited for a processor that others used.
    """

    seconds: float
    queued_s: float = 0.0


Steps = Generator[None, StepTime, T]


@dataclass
class Arm:
    """One change that is measured, and its pairs so far.

    Attributes:
        proof: what is known before the pairs: the place, its calls, a note.
        blocks: how long its blocks are.
        usual_s: a step before anything was changed.
        targets, make_change: what is changed, and how in a block.
        changed_steps: how many steps of a changed block count: it is as long as a plain one, and settles alike.
        cost_s: what the change itself takes in a step.
        steps, pairs: what was measured.
        refused: why it cannot be measured; empty if it can.
    """

    proof: Proof
    blocks: Blocks
    usual_s: float = 0.0
    targets: Sequence[Target] = ()
    make_change: Callable[[], CallChange] = CallChange
    changed_steps: int = 0
    cost_s: float = 0.0
    steps: int = 0
    pairs: list[Pair] = field(default_factory=list)
    refused: str = ""

    @property
    def is_delay(self) -> bool:
        """Whether a sensitivity is measured, and not a gain."""
        return self.proof.kind == DELAY

    def refuse(self, why: str) -> None:
        """Leaves the program alone from now on; in a job of several ranks the others keep to the same blocks."""
        self.refused, self.targets, self.make_change = why, (), CallChange

    def is_close(self, may_restart: bool) -> bool:
        """Whether the interval is narrow enough; may find that the blocks have to settle for longer."""
        if len(self.pairs) < FEWEST_PAIRS:
            return False
        may_restart &= len(self.pairs) in (FEWEST_PAIRS, 2 * FEWEST_PAIRS) and self.blocks.settle < MOST_STEPS
        if may_restart and not is_settled(self.pairs, self.usual_s):
            self.blocks, self.pairs, self.steps = replace(self.blocks, settle=2 * self.blocks.settle), [], 0
            return False
        found = sensitivity_of(self.pairs) if self.is_delay else gain_of(self.pairs)
        if found is None:
            return False
        return found.half_width <= (CLOSE_SENSITIVITY if self.is_delay else CLOSE_GAIN * found.value)


class Campaign:
    """Measures all that was asked for.

    Args:
        options: what that is.
        show_line: called with a line for the user.
        clock: the time in seconds.
        buffered: how many batches may lie ready before the step.

    Attributes:
        proofs: what was found, in the order of the answers.
    """

    def __init__(
        self,
        options: ProveOptions,
        show_line: Callable[[str], object],
        clock: Callable[[], float] = time.perf_counter,
        buffered: Callable[[], int] = lambda: 0,
    ) -> None:
        self._options = options
        self._show_line = show_line
        self._clock = clock
        self._buffered = buffered
        self._undo = ExitStack()
        self._start_s = self._end_s = clock()
        self._pid, self._together = os.getpid(), has_other_ranks()
        self.proofs: list[Proof] = []
        self._open: list[Arm] = []

    def run(self) -> Steps[None]:
        """Measures; is sent the length of each step in seconds."""
        try:
            yield from self._measure()
        finally:
            self.put_back()
            self.conclude()

    def put_back(self) -> None:
        """Takes everything off the program again."""
        self._undo.close()

    def _measure(self) -> Steps[None]:
        self._start_s = self._clock()
        self._end_s = self._start_s + self._options.budget_s
        lengths = yield from self._collect(_FIRST_STEPS)
        for place in self._options.at:
            yield from self._prepare(place, DELAY, lengths)
        for place in self._options.ablate:
            yield from self._prepare(place, ABLATION, lengths)
        number = 0
        while unfinished := [arm for arm in self._open if not self._is_done(arm)]:
            for arm in unfinished:
                yield from self._add_pair(arm, number)
                number += 1

    def _is_done(self, arm: Arm) -> bool:
        if self._together:
            return len(arm.pairs) >= PAIRS_OF_RANKS
        is_first_half = self._clock() < (self._start_s + self._end_s) / 2
        return bool(arm.refused) or self._clock() > self._end_s or arm.is_close(is_first_half)

    # -- one place -----------------------------------------------------------------------------------------------------

    def _prepare(self, place: str, kind: str, lengths: list[StepTime]) -> Steps[None]:
        """Finds a place, and counts its calls for a block."""
        usual_s = median(each.seconds for each in lengths)
        blocks = choose_blocks(_STEP_OF_RANKS_S if self._together else usual_s, self._buffered())
        arm = Arm(Proof(self._options.program, kind, place), blocks, usual_s, changed_steps=blocks.steps)
        self._open.append(arm)
        name, rank = split_rank(place)
        if rank not in ("", rank_of_process()):
            arm.refuse(f"it is changed on rank {rank}")
        else:
            with refusing(arm):
                arm.targets = find_targets(name)
                refuse_running(arm.targets)
        count = Count()
        with refusing(arm), self._changed(arm.targets, count):
            yield from self._collect(blocks.settle)
            before, steps = (count.calls, count.seconds), blocks.steps
            yield from self._collect(steps)
            if count.calls - before[0] < steps and not self._together:
                steps += MOST_STEPS
                yield from self._collect(MOST_STEPS)
        if not arm.refused:
            self._note_calls(arm, (count.calls - before[0]) / steps, (count.seconds - before[1]) / steps)
        if arm.refused:
            return
        self._note_what_it_is(arm, name, threading.get_ident() in count.threads)
        make: Callable[[], CallChange] = _ABLATIONS.get(name, Replay)
        if kind == DELAY:
            own = [each.seconds - each.queued_s for each in lengths]
            dose = choose_dose(choose_delay(own, blocks), arm.proof.calls or 1.0)
            make = functools.partial(Delay, dose)
        arm.make_change = make if kind == DELAY else functools.cache(make)  # what was kept serves all blocks
        if threading.get_ident() in count.threads:
            arm.cost_s = measure_cost(make()) * (arm.proof.calls or 0.0)

    def _note_calls(self, arm: Arm, calls: float, seconds: float) -> None:
        if not calls:
            arm.refuse("it was never called in these steps")
            return
        known = arm.targets[0] if split_rank(arm.proof.place)[0] not in PARTS else None
        file, line = (known.file, known.line) if known else (None, None)
        arm.proof = replace(arm.proof, calls=calls, place_ms=1e3 * seconds, file=file, line=line)
        if calls < 1 and not self._together:  # about as many calls in each block
            arm.blocks = replace(arm.blocks, steps=max(arm.blocks.steps, math.ceil(FEWEST_CALLS / calls)))
            arm.changed_steps = arm.blocks.steps

    def _note_what_it_is(self, arm: Arm, name: str, is_on_loop: bool) -> None:
        """Says what a reader of the figures has to know."""
        notes = [] if is_on_loop else ["only other threads than that of the steps call it"]
        if not arm.is_delay and name not in PARTS:
            notes.append("its side effects were left out, too")
        if arm.is_delay and name == "input" and self._buffered():
            notes.append("workers prepare batches during a delay: --ablate input says what they cost")
        arm.proof = replace(arm.proof, note="; ".join(notes))

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _add_pair(self, arm: Arm, number: int) -> Steps[None]:
        blocks: dict[bool, BlockTimes] = {}
        for changed in (True, False) if changed_first(number) else (False, True):
            blocks[changed] = yield from self._block(arm, changed)
        arm.pairs.append(Pair(blocks[False], blocks[True]))
        if not (self._together or arm.is_delay):
            arm.changed_steps = choose_blocks(blocks[True].step_s).steps

    def _block(self, arm: Arm, changed: bool) -> Steps[BlockTimes]:
        change = arm.make_change() if changed else CallChange()
        lengths, start, spent_s = [StepTime(0.0)], self._clock(), 0.0
        with refusing(arm), self._changed(arm.targets if changed else (), change):
            yield from self._collect(arm.blocks.settle, change)
            start, spent_s = self._clock(), change.spent_s
            lengths = yield from self._collect(arm.changed_steps if changed else arm.blocks.steps, change)
        arm.steps += len(lengths)
        if change.refused:
            arm.refuse(change.refused)
        seconds, half = [each.seconds for each in lengths], math.ceil(len(lengths) / 2)
        cost_s = arm.cost_s if changed else 0.0
        return BlockTimes(
            (start + self._clock()) / 2,
            fmean(seconds) - cost_s,
            fmean(each.seconds - each.queued_s for each in lengths),
            (change.spent_s - spent_s) / len(lengths) + cost_s,
            fmean(seconds[:half]) / max(fmean(seconds[-half:]), 1e-9),
        )

    @contextmanager
    def _changed(self, targets: Sequence[Target], change: CallChange) -> Iterator[None]:
        with self._undo:
            for target in targets:
                self._undo.callback(target.install(functools.partial(change.wrap, name=target.name)))
            yield

    def _collect(self, count: int, change: CallChange | None = None) -> Steps[list[StepTime]]:
        lengths: list[StepTime] = []
        for _ in range(count):
            lengths.append((yield))
            if change is not None:
                change.next_step()
        return lengths

    def save(self, session: Path) -> None:
        """Writes the proofs beside a session, and where the user wants them."""
        session.mkdir(parents=True, exist_ok=True)
        for file in (str(session / FILE), self._options.output):
            if self.proofs and file:
                write_proofs(self.proofs, Path(file))

    # -- answers -------------------------------------------------------------------------------------------------------

    def conclude(self, why_nothing: str = "the program ended too early") -> None:
        """Makes a proof of all that was asked for, also of what the end of the program cut short; a fork has none."""
        if os.getpid() != self._pid:
            return
        asked = [(DELAY, place) for place in self._options.at] + [(ABLATION, place) for place in self._options.ablate]
        found = {(arm.proof.kind, arm.proof.place): arm for arm in self._open}
        for kind, place in asked:
            arm = found.get((kind, place)) or Arm(Proof(self._options.program, kind, place), Blocks(0, 0))
            rank = split_rank(place)[1] or "0"
            if rank == rank_of_process():
                self.proofs.append(self._make_proof(arm, why_nothing))
                self._show_line(self.proofs[-1].sentence)
            elif rank_of_process() == "0":
                self.proofs.append(replace(arm.proof, note=f"rank {rank} measures it, and has not answered"))

    def _make_proof(self, arm: Arm, why_nothing: str) -> Proof:
        said = replace(arm.proof, seconds=self._clock() - self._start_s)
        if arm.refused or not arm.pairs:
            return replace(said, note=arm.refused or why_nothing)
        found = sensitivity_of(arm.pairs) if arm.is_delay else gain_of(arm.pairs)
        if found is None:
            return replace(said, note="it was not called in the blocks that were delayed")
        plain_ms = 1e3 * median(pair.plain.step_s for pair in arm.pairs)
        delay_ms = 1e3 * median(pair.changed.delay_s for pair in arm.pairs) if arm.is_delay else None
        changed_ms = plain_ms / found.value if delay_ms is None else plain_ms + found.value * delay_ms
        said = replace(said, step_ms=plain_ms, changed_ms=changed_ms, delay_ms=delay_ms, steps=arm.steps)
        return said.with_estimate(found)


_ABLATIONS: dict[str, Callable[[], CallChange]] = {"logging": Omit, "checkpoint": Omit, "sync": Defer}
"""What leaving out a part means; anything else gets its last results again."""


@contextmanager
def refusing(arm: Arm) -> Iterator[None]:
    """Refuses an arm that cannot be changed."""
    try:
        yield
    except CaptureError as error:
        arm.refuse("; ".join(filter(None, (error.problem.reason, error.problem.hint))))


def split_rank(place: str) -> tuple[str, str]:
    """A place and the rank after its `@`; empty for all ranks."""
    name, _, rank = place.rpartition("@")
    return (name, rank) if name and rank.isdigit() else (place, "")


def rank_of_process() -> str:
    """The number of this process in a job, as launchers tell it; "0" for one alone."""
    names = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
    return next((rank for name in names if (rank := os.environ.get(name))), "0")


def has_other_ranks() -> bool:
    """Whether this process is one of several that train together, as launchers tell it."""
    sizes = (os.environ.get(name, "1") for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"))
    return any(size.isdigit() and int(size) > 1 for size in sizes)
