"""`stepscope.prove`: the command in a process of its own, with the proofs as objects."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stepscope.errors import CaptureError
from stepscope.proof.record import Proof, from_json


def prove(
    program: str | os.PathLike[str] | Sequence[str],
    *,
    at: Sequence[str] = (),
    ablate: Sequence[str] = (),
    knobs: bool | Sequence[str] = False,
    budget_s: float = 60.0,
    logdir: str | os.PathLike[str] = "stepscope-logs",
    steps: int = 10,
    skip: int = 5,
) -> list[Proof]:
    """Runs a training program and measures what changes of it would give.

    Args:
        program: the script, or a list of it and its arguments.
        at: places to delay, such as `data.py:prepare`; with none here and in `ablate`, those of the account.
        ablate: what to leave out: `input`, `logging`, `checkpoint`, `sync`, or a function.
        knobs: settings to try in processes of their own, such as `workers=0,2`; if True, those of its frameworks.
        budget_s: how long to measure at most.
        logdir: where the session and its proofs go.
        steps: how many steps to capture before; 0 for none.
        skip: how many steps to skip before that.

    Returns:
        A proof of each place, also of those where nothing could be measured: its note then says why.

    Raises:
        CaptureError: the program ended without an answer.
    """
    words = [os.fspath(program)] if isinstance(program, (str, os.PathLike)) else [os.fspath(each) for each in program]
    with tempfile.TemporaryDirectory(prefix="stepscope-prove-") as folder:
        output = Path(folder) / "proofs.json"
        options = ["--budget", str(budget_s), "--logdir", os.fspath(logdir), "--steps", str(steps), "--skip", str(skip)]
        options += [word for place in at for word in ("--at", place)]
        options += [word for part in ablate for word in ("--ablate", part)]
        options += ["--knobs"] if knobs is True else [word for each in knobs or () for word in ("--knob", each)]
        options += ["--stop-after", "--output", str(output)]
        done = subprocess.run([sys.executable, "-m", "stepscope", "prove", *options, *words], check=False)
        try:
            return from_json(output.read_text("utf-8"))
        except (OSError, ValueError) as error:
            reason = f"the program ended without an answer, with exit status {done.returncode}"
            raise CaptureError(reason, path=words[0], hint="its output says why") from error
