"""`stepscope prove --knobs`: the program again and again, each time in a process of its own with one setting."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from stepscope.capture.proving.options import ProveOptions
from stepscope.errors import counted
from stepscope.formats.threads import usable_cores
from stepscope.proof.knobs import FEWEST_ROUNDS, Setting, TimedRun, choose_settings, order_of_round, prove_settings
from stepscope.proof.record import FILE, Proof, write_proofs
from stepscope.records import dataclass

_TIMED_S = 5.0  # of a process, as long as 20 blocks of a proof in the running job
_LIMIT = 20  # times as long as the plain process, after which one with a setting has failed
_LEAST_LIMIT_S = 120.0


@dataclass(frozen=True)
class KnobRun:
    """A program whose settings are tried.

    Attributes:
        command: the words after the options of `stepscope prove`.
        program: its name, by which proofs are found again.
        settings: what to try; empty for what its frameworks have.
        budget_s: no round starts later.
        logdir, steps, skip: of the first process, which is also captured.
    """

    command: tuple[str, ...]
    program: str
    settings: tuple[Setting, ...]
    budget_s: float
    logdir: str
    steps: int
    skip: int


def try_settings(asked: KnobRun, show_line: Callable[[str], object]) -> list[Proof]:
    """Tries settings, shows a table of them and keeps it beside the session.

    A program that does not train long enough to be timed as it is runs once, and the line says why.
    """
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stepscope-knobs-") as folder:
        plain = _time_process(asked, None, Path(folder), first=True)
        spent_s = took_s = time.monotonic() - start_s
        if plain.step_ms is None:
            show_line(f"nothing was proved: {plain.note}")
            return []
        settings = asked.settings or tuple(choose_settings(plain.has, usable_cores(), dict(os.environ)))
        limit_s = max(_LIMIT * took_s, _LEAST_LIMIT_S)
        show_line(f"{counted(len(settings), 'setting')}, each in processes of its own: about {took_s:.0f} s each")
        rounds: list[list[TimedRun]] = []
        try:
            while settings and not (rounds and spent_s * (1 + 1 / (len(rounds) + 0.5)) >= asked.budget_s):
                rounds.append([])
                for setting in order_of_round((None, *settings), len(rounds)):
                    rounds[-1].append(_time_process(asked, setting, Path(folder), limit_s=limit_s))
                spent_s = time.monotonic() - start_s
        except KeyboardInterrupt:
            show_line("stopped; what was measured so far:")
    proofs = prove_settings(asked.program, settings, rounds)
    session = Path(plain.session or asked.logdir)
    session.mkdir(parents=True, exist_ok=True)
    write_proofs(proofs, session / FILE)
    plain_ms = next((proof.step_ms for proof in proofs if proof.step_ms), plain.step_ms)
    for line in table_of(plain_ms, proofs):
        show_line(line)
    if len(rounds) < FEWEST_ROUNDS:
        show_line(f"{counted(len(rounds), 'round')}: an interval needs {FEWEST_ROUNDS}; a larger --budget has more")
    return proofs


def table_of(plain_ms: float, proofs: Sequence[Proof]) -> list[str]:
    """Setting, step time, speed-up and interval, as lines."""
    width = max([len("as it is"), *(len(proof.place) for proof in proofs)])
    lines = [f"{'setting':{width}}  {'step time':>11}  speed-up", f"{'as it is':{width}}  {plain_ms:8.2f} ms"]
    for proof in proofs:
        interval = "" if proof.least is None else f" ({proof.least:.2f} to {proof.most:.2f})"
        found = f"{proof.changed_ms:8.2f} ms  {proof.value:.2f}x{interval}" if proof.value else ""
        lines.append(f"{proof.place:{width}}  {found or f'{str():11}  not measured: {proof.note}'}")
    return lines


def _time_process(
    asked: KnobRun, setting: Setting | None, folder: Path, first: bool = False, limit_s: float | None = None
) -> TimedRun:
    """Runs the program once; the first time with its output."""
    name = "" if setting is None else setting.name
    answer, log = folder / "answer.json", folder / "output.txt"
    answer.unlink(missing_ok=True)
    options = ProveOptions(
        asked.program, budget_s=_TIMED_S, stop_after=True, output=str(answer), setting=name, timed=True
    )
    words = ["--steps", str(asked.steps if first else 0), "--skip", str(asked.skip), "--logdir", asked.logdir]
    command = [sys.executable, "-m", "stepscope", "prove", "--timed", options.to_text(), *words, *asked.command]
    environment = os.environ | ({} if setting is None else setting.environment)
    with log.open("w+", encoding="utf-8", errors="replace") as output:
        ended = _run(command, environment, None if first else output, limit_s)
        try:
            found = TimedRun.from_json(answer.read_text("utf-8"))
        except (OSError, ValueError, TypeError):
            found = TimedRun(name, note=f"the program ended with {ended or 'no answer'}")
        if ended and found.step_ms is None:
            output.seek(0)
            last = next((line.strip() for line in reversed(output.readlines()) if line.strip()), "")
            found = replace(found, note=f"the program ended with {ended}{': ' if last else ''}{last[:200]}")
        return found


def _run(command: Sequence[str], environment: dict[str, str], output: IO[str] | None, limit_s: float | None) -> str:
    """How the process ended; empty for well."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"nothing after {limit_s:.0f} s"
    return f"exit status {done.returncode}" if done.returncode else ""
