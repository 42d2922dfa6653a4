"""What was measured of one place, and the file of such proofs beside a session."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from stepscope.errors import InputError, OutputError
from stepscope.records import dataclass

FILE = "proofs.json"
SCHEMA_VERSION = 1
_LOCK_TRIES, _LOCK_TRY_S = 100, 0.05  # a rank writes for milliseconds; one that was stopped then must not stop others

DELAY, ABLATION, KNOB = "delay", "ablation", "knob"


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval.

    Attributes:
        value: the figure.
        least, most: its interval; infinite where there are too few differences for one.
        pairs: how many differences it is from.
    """

    value: float
    least: float
    most: float
    pairs: int

    @property
    def half_width(self) -> float:
        """Half of the interval's length."""
        return (self.most - self.least) / 2


@dataclass(frozen=True)
class Proof:
    """What one change of the running job did to its steps.

    Attributes:
        program: the script or module.
        kind: delay: a place took longer; ablation: a part was left out; knob: a setting was changed.
        place: what was changed, as the user or the account named it.
        file, line: where that function is defined; None where it is not in a file of Python.
        step_ms: a plain step.
        changed_ms: a step of the changed blocks; None if nothing was measured.
        delay_ms: how much the delays took in a step; None for other kinds.
        value: of a delay the sensitivity: by how many ms the step grows for each ms.  Else the speed-up.
        least, most: the interval of 95 %; None where there were too few pairs for one.
        place_ms: how long the calls take in a step; None if unknown.
        calls: per step; None if unknown.
        pairs: how many pairs of blocks were compared.
        steps: how many steps those had.
        seconds: how long measuring took.
        note: what the reader has to know, or why nothing could be measured; empty for nothing.
    """

    program: str
    kind: str
    place: str
    file: str | None = None
    line: int | None = None
    step_ms: float | None = None
    changed_ms: float | None = None
    delay_ms: float | None = None
    value: float | None = None
    least: float | None = None
    most: float | None = None
    place_ms: float | None = None
    calls: float | None = None
    pairs: int = 0
    steps: int = 0
    seconds: float = 0.0
    note: str = ""

    def with_estimate(self, found: Estimate) -> Proof:
        """The same with a figure, and with its interval if it has one."""
        least, most = (None, None) if found.half_width == math.inf else (found.least, found.most)
        return replace(self, value=found.value, least=least, most=most, pairs=found.pairs)

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it another proof: a later one with the same key replaces it."""
        return self.program, self.kind, self.place

    @property
    def speedup(self) -> tuple[float, float, float] | None:
        """How many times as fast steps are without the place: the figure and its interval; None if unknown.

        Left out, it was measured.  Delayed, it is what the sensitivity says of the time that the place takes now.
        """
        if self.value is None or self.least is None or self.most is None:
            return None
        if self.kind != DELAY:
            return self.value, self.least, self.most
        if self.place_ms is None or not self.step_ms:
            return None
        shares = [
            min(max(each, 0.0), 1.0) * self.place_ms / self.step_ms for each in (self.value, self.least, self.most)
        ]
        return tuple(1 / (1 - min(share, 0.99)) for share in shares)  # type: ignore[return-value]

    @property
    def sentence(self) -> str:
        """What was found, for people."""
        if self.value is None:
            return f"{self.place}: nothing measured: {self.note or 'too few steps'}"
        interval = "" if self.least is None or self.most is None else f" ({self.least:.2f} to {self.most:.2f})"
        note = f"; {self.note}" if self.note else ""
        measured = f"{interval}, over {self.steps:,} steps{note}"
        if self.kind == DELAY:
            return f"{self.place}: each ms there costs the step {self.value:.2f} ms{measured}"
        change = "without" if self.kind == ABLATION else "with"
        figures = f"{self.step_ms:.1f} -> {self.changed_ms:.1f} ms"
        return f"{change} {self.place} a step takes {figures}: {self.value:.2f}x{measured}"

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON, with the sentence."""
        return asdict(self) | {"sentence": self.sentence}


def measured_json(proof: Proof | None) -> dict[str, Any] | None:
    """What an advice says of its proof."""
    if proof is None or proof.speedup is None:
        return None
    names, figures = ("speedup", "speedup_least", "speedup_most"), (round(each, 3) for each in proof.speedup)
    found = {"kind": proof.kind, "place": proof.place, "steps": proof.steps, "sentence": proof.sentence}
    return dict(zip(names, figures, strict=True)) | found


def to_json(proofs: Iterable[Proof]) -> str:
    """The text of a file of proofs."""
    rows = [proof.to_dict() for proof in proofs]
    return json.dumps({"tool": "prove", "schema_version": SCHEMA_VERSION, "proofs": rows}, indent=1) + "\n"


def from_json(text: str) -> list[Proof]:
    """The proofs of such a text.  Raises ValueError if it is none."""
    names = {field.name for field in fields(Proof)}
    read = json.loads(text)
    if not isinstance(read, dict) or not isinstance(read.get("proofs"), list):
        raise ValueError("not a list of proofs")
    rows = [row for row in read["proofs"] if isinstance(row, dict) and {"program", "kind", "place"} <= row.keys()]
    return [Proof(**{name: value for name, value in row.items() if name in names}) for row in rows]


def read_proofs(session: Path) -> list[Proof]:
    """The proofs that lie in the folder of a session; none if there is no file.

    Raises:
        InputError: the file is damaged.
    """
    try:
        return from_json((session / FILE).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"the proofs cannot be read: {error}", path=session / FILE, hint="prove again") from error


def merge_proofs(earlier: Sequence[Proof], later: Sequence[Proof]) -> list[Proof]:
    """All of them; a later one takes the place of an earlier one with its key, unless only that has a figure."""
    known = {proof.key: proof for proof in earlier}
    kept = {key for key, proof in known.items() if proof.value is not None}
    return list((known | {each.key: each for each in later if each.value is not None or each.key not in kept}).values())


def write_proofs(proofs: Sequence[Proof], file: Path) -> None:
    """Writes a file of proofs whole or not at all, with those that it holds already.

    Raises:
        OutputError: it cannot be written.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    with _alone_in(file.parent):
        try:
            earlier = from_json(file.read_text("utf-8")) if file.is_file() else []
        except (OSError, ValueError, TypeError):
            earlier = []
        try:
            part.write_text(to_json(merge_proofs(earlier, proofs)), "utf-8")
            part.replace(file)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise OutputError(f"the proofs cannot be written: {error.strerror}", path=file) from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Locks a folder, since ranks of a job end at the same step; where there is no lock to be had, writes at once."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, handle)
            for _ in range(_LOCK_TRIES):
                with suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(_LOCK_TRY_S)
        yield
