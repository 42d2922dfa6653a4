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
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple, TypeVar

from stepscope.capture.proving.changes import CallChange, Count, Defer, Delay, Omit, Replay
from stepscope.capture.proving.options import ProveOptions
from stepscope.capture.proving.patches import Undo
from stepscope.capture.proving.places import PARTS as NAMED_PARTS
from stepscope.capture.proving.places import Target, find_targets, refuse_running
from stepscope.errors import CaptureError
from stepscope.proof.estimate import Estimate, drift_of, estimate
from stepscope.proof.plan import (
    CLOSE_GAIN,
    CLOSE_SENSITIVITY,
    FEWEST_PAIRS,
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
MakeChange = Callable[[], CallChange]


@dataclass(frozen=True)
class BlockTimes:
    """What a block took.

    Attributes:
        at_s: the middle of it.
        step_s: the mean of the steps that count.
        own_s: the same without the time in which their thread waited for a processor.
        delay_s: how long the delays of such a step took.
    """

    at_s: float
    step_s: float
    own_s: float
    delay_s: float = 0.0


@dataclass(frozen=True)
class Pair:
    """Two neighbouring blocks."""

    plain: BlockTimes
    changed: BlockTimes


class Arm:
    """One change that is measured, and its pairs so far.

    Attributes:
        proof: what is known before the pairs: the place, its calls, a note.
        blocks: how long its blocks are.
        targets: what is changed.
        make_change: makes the change for one block.
        pairs: what was measured.
        refused: why it cannot be measured; empty if it can.
    """

    def __init__(self, proof: Proof, blocks: Blocks, targets: Sequence[Target], make_change: MakeChange) -> None:
        self.proof = proof
        self.blocks = blocks
        self.targets = targets
        self.make_change = make_change
        self.pairs: list[Pair] = []
        self.refused = ""

    @property
    def is_delay(self) -> bool:
        """Whether a sensitivity is measured, and not a gain."""
        return self.proof.kind == DELAY

    def refuse(self, why: str) -> None:
        """Leaves the program alone from now on; in a job of several ranks the others keep to the same blocks."""
        self.refused, self.targets, self.make_change = why, (), CallChange

    def is_close(self) -> bool:
        """Whether the interval is narrow enough."""
        if len(self.pairs) < FEWEST_PAIRS:
            return False
        found = sensitivity_of(self.pairs) if self.is_delay else gain_of(self.pairs)
        if found is None:
            return False
        return found.half_width <= (CLOSE_SENSITIVITY if self.is_delay else CLOSE_GAIN * found.value)


def sensitivity_of(pairs: Sequence[Pair]) -> Estimate | None:
    """By how much a step grows for each second of delay, both without waits for a processor."""
    pairs = [pair for pair in pairs if pair.changed.delay_s > 0]
    drift = drift_of([pair.plain.at_s for pair in pairs], [pair.plain.own_s for pair in pairs])
    return estimate(
        [
            (pair.changed.own_s - pair.plain.own_s - drift * (pair.changed.at_s - pair.plain.at_s))
            / pair.changed.delay_s
            for pair in pairs
        ]
    )


def gain_of(pairs: Sequence[Pair]) -> Estimate | None:
    """How many times as fast steps are with the change."""
    drift = drift_of([pair.plain.at_s for pair in pairs], [pair.plain.step_s for pair in pairs])
    return estimate(
        [
            pair.plain.step_s / max(pair.changed.step_s - drift * (pair.changed.at_s - pair.plain.at_s), 1e-9)
            for pair in pairs
        ]
    )


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
        self._undo: list[Undo] = []
        self._start_s = self._end_s = clock()
        self._together = has_other_ranks()
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
        while self._undo:
            self._undo.pop()()

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
        return bool(arm.refused) or self._clock() > self._end_s or arm.is_close()

    # -- one place -----------------------------------------------------------------------------------------------------

    def _prepare(self, place: str, kind: str, lengths: list[StepTime]) -> Steps[None]:
        """Finds a place, and counts its calls for a block."""
        blocks = choose_blocks(
            _STEP_OF_RANKS_S if self._together else median(each.seconds for each in lengths), self._buffered()
        )
        arm = Arm(Proof(self._options.program, kind, place), blocks, (), CallChange)
        self._open.append(arm)
        with refusing(arm):
            arm.targets = find_targets(place)
            refuse_running(arm.targets)
        count = Count()
        with refusing(arm), self._changed(arm.targets, count):
            yield from self._collect(blocks.settle)
            before = count.calls, count.seconds
            yield from self._collect(blocks.steps)
        if arm.refused:
            return
        self._note_calls(arm, (count.calls - before[0]) / blocks.steps, (count.seconds - before[1]) / blocks.steps)
        if threading.get_ident() not in count.threads and not arm.refused:
            arm.proof = replace(arm.proof, note="only other threads than that of the steps call it")
        if kind == DELAY and not arm.refused:
            dose = choose_dose(
                choose_delay([each.seconds - each.queued_s for each in lengths], blocks), arm.proof.calls or 1.0
            )
            arm.make_change = lambda: Delay(dose)
        elif not arm.refused:
            arm.make_change = _ABLATIONS.get(place, Replay)

    def _note_calls(self, arm: Arm, calls: float, seconds: float) -> None:
        if not calls:
            arm.refuse("it was never called in these steps")
            return
        known = arm.targets[0] if arm.proof.place not in NAMED_PARTS else None
        file, line = (known.file, known.line) if known else (None, None)
        arm.proof = replace(arm.proof, calls=calls, place_ms=1e3 * seconds, file=file, line=line)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _add_pair(self, arm: Arm, number: int) -> Steps[None]:
        blocks: dict[bool, BlockTimes] = {}
        for changed in (True, False) if changed_first(number) else (False, True):
            blocks[changed] = yield from self._block(arm, changed)
        arm.pairs.append(Pair(blocks[False], blocks[True]))

    def _block(self, arm: Arm, changed: bool) -> Steps[BlockTimes]:
        change = arm.make_change() if changed else CallChange()
        lengths, start, spent_s = [StepTime(0.0)], self._clock(), 0.0
        with refusing(arm), self._changed(arm.targets if changed else (), change):
            yield from self._collect(arm.blocks.settle, change)
            start, spent_s = self._clock(), change.spent_s
            lengths = yield from self._collect(arm.blocks.steps, change)
        if change.refused:
            arm.refuse(change.refused)
        return BlockTimes(
            (start + self._clock()) / 2,
            fmean(each.seconds for each in lengths),
            fmean(each.seconds - each.queued_s for each in lengths),
            (change.spent_s - spent_s) / len(lengths),
        )

    @contextmanager
    def _changed(self, targets: Sequence[Target], change: CallChange) -> Iterator[None]:
        depth = len(self._undo)
        try:
            for target in targets:
                self._undo.append(target.install(functools.partial(change.wrap, name=target.name)))
            yield
        finally:
            while len(self._undo) > depth:
                self._undo.pop()()

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
        if os.environ.get("RANK", "0") in ("", "0"):
            write_proofs(self.proofs, session / FILE)
            if self._options.output:
                write_proofs(self.proofs, Path(self._options.output))

    # -- answers -------------------------------------------------------------------------------------------------------

    def conclude(self, why_nothing: str = "the program ended too early") -> None:
        """Makes a proof of all that was asked for, also of what the end of the program cut short."""
        asked = [(DELAY, place) for place in self._options.at] + [(ABLATION, place) for place in self._options.ablate]
        found = {(arm.proof.kind, arm.proof.place): arm for arm in self._open}
        for kind, place in asked:
            arm = found.get((kind, place)) or Arm(
                Proof(self._options.program, kind, place), Blocks(0, 0), (), CallChange
            )
            proof = self._make_proof(arm, why_nothing)
            self.proofs.append(proof)
            self._show_line(proof.sentence)

    def _make_proof(self, arm: Arm, why_nothing: str) -> Proof:
        said = replace(arm.proof, seconds=self._clock() - self._start_s)
        if arm.refused or not arm.pairs:
            return replace(said, note=arm.refused or why_nothing)
        found = sensitivity_of(arm.pairs) if arm.is_delay else gain_of(arm.pairs)
        if found is None:
            return replace(said, note="it was not called in the blocks that were delayed")
        plain_ms = 1e3 * median(pair.plain.step_s for pair in arm.pairs)
        delay_ms = 1e3 * median(pair.changed.delay_s for pair in arm.pairs) if arm.is_delay else None
        has_interval = found.half_width < math.inf
        return replace(
            said,
            step_ms=plain_ms,
            changed_ms=plain_ms / found.value if delay_ms is None else plain_ms + found.value * delay_ms,
            delay_ms=delay_ms,
            value=found.value,
            least=found.least if has_interval else None,
            most=found.most if has_interval else None,
            pairs=found.pairs,
            steps=2 * arm.blocks.steps * len(arm.pairs),
        )


_ABLATIONS: dict[str, MakeChange] = {"logging": Omit, "checkpoint": Omit, "sync": Defer}
"""What leaving out a part means; anything else gets its last results again."""


@contextmanager
def refusing(arm: Arm) -> Iterator[None]:
    """Refuses an arm whose place cannot be found or changed."""
    try:
        yield
    except CaptureError as error:
        arm.refuse("; ".join(filter(None, (error.problem.reason, error.problem.hint))))


def has_other_ranks() -> bool:
    """Whether this process is one of several that train together, as launchers tell it."""
    sizes = (os.environ.get(name, "1") for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"))
    return any(size.isdigit() and int(size) > 1 for size in sizes)
