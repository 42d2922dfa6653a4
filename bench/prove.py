"""`python -m bench.prove`: how true proofs are, on programs that know where they wait.

    python -m bench.prove [--only NAME] [--budget SECONDS]

Each program runs three times, each in a process of its own: its slow and its fixed variant in pairs of blocks, which
is the real gain; with an ablation; and with delays in its planted places.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import stepscope
from bench.bottlenecks.loops import Fit, Loop
from bench.bottlenecks.planted import PLANTED, Made, Planted
from bench.bottlenecks.planted_later import LATER
from stepscope.proof.estimate import Estimate, estimate
from stepscope.proof.record import Proof, from_json

PROGRAMS = PLANTED | LATER
WARMUP, LEAD, BLOCK_S, REAL_S = 8, 5, 0.25, 15.0  # a block starts with what was prefetched meanwhile
MOST_STEPS = 100_000
CLOSE = 0.15
CRITICAL, HIDDEN = 0.8, 0.2


@dataclass(frozen=True)
class Score:
    """What was found of a program, beside what is true."""

    program: Planted
    real: Estimate | None
    gain: Proof | None
    delays: list[Proof]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row for each program, and the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PROGRAMS)
    parser.add_argument("--budget", type=float, default=30.0, help="seconds for each run")
    parser.add_argument("--variants", choices=PROGRAMS, help="measure the variants of one in this process")
    parser.add_argument("--loop", choices=PROGRAMS, help="run the slow variant of one in this process")
    options = parser.parse_args(arguments)
    set_environment()
    if options.variants:
        print(json.dumps(asdict(measure_variants(PROGRAMS[options.variants]))))
        return 0
    if options.loop:
        run_loop(PROGRAMS[options.loop].make(True))
        return 0
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    scores = [score(PROGRAMS[name], options.budget) for name in options.only or PROGRAMS]
    print(summarize(scores))
    return 0


def set_environment() -> None:
    """No GPU, and as many threads as a shared machine has to give."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PJRT_NPROC": "1"}


def run_loop(made: Made) -> None:
    """Runs steps until the proof ends the program; only a program that is a single step has them marked."""
    if isinstance(made, Fit):
        made.run(0, MOST_STEPS, nullcontext())
    elif isinstance(made, Iterator):
        collections.deque(itertools.islice(made, MOST_STEPS), maxlen=0)
    else:
        for number in range(MOST_STEPS):
            with stepscope.step(number):
                made(number)


def measure_variants(program: Planted) -> Estimate:
    """How many times as fast the fixed variant is: pairs of blocks in random order."""
    loops = {slow: _as_loop(program.make(slow)) for slow in (True, False)}
    counts = {slow: max(4, round(BLOCK_S / _time(loop, WARMUP))) for slow, loop in loops.items()}
    ratios, drawn, start = [], random.Random(7), time.perf_counter()
    while time.perf_counter() - start < REAL_S or len(ratios) < 8:
        order = [True, False] if drawn.random() < 0.5 else [False, True]
        times = {slow: _time(loops[slow], counts[slow]) for slow in order}
        ratios.append(times[True] / times[False])
    found = estimate(ratios)
    assert found is not None, "there are eight at least"
    return found


def _as_loop(made: Made) -> Loop | Fit:
    if isinstance(made, Fit):
        return made
    return Loop(made if isinstance(made, Iterator) else (made(number) for number in itertools.count()))  # type: ignore[func-returns-value]


def _time(loop: Loop | Fit, count: int) -> float:
    return fmean(loop.run(LEAD, count, nullcontext()))


def score(program: Planted, budget: float) -> Score:
    """Runs a program in its three ways."""
    has_variants = program.ablate and not program.is_healthy
    real = Estimate(**json.loads(_run(["--variants", program.name]))) if has_variants else None
    gains = prove(program, ["--ablate", program.ablate], budget) if program.ablate else []
    places = [word for place in (*program.critical, *program.hidden) for word in ("--at", place)]
    found = Score(program, real, gains[0] if gains else None, prove(program, places, budget))
    print(describe(found), flush=True)
    return found


def _run(words: list[str]) -> str:
    command = [sys.executable, "-m", "bench.prove", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


def prove(program: Planted, words: list[str], budget: float) -> list[Proof]:
    """The proofs of a run of the slow variant."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "proofs.json"
        command = [sys.executable, "-m", "stepscope", "prove", "--steps", "0", "--stop-after", "--logdir", folder]
        command += [
            "--budget",
            str(budget),
            "--output",
            str(output),
            *words,
            "-m",
            "bench.prove",
            "--loop",
            program.name,
        ]
        subprocess.run(command, check=False, capture_output=True, timeout=300)
        return from_json(output.read_text("utf-8")) if output.is_file() else []


def describe(found: Score) -> str:
    """A row for a program."""
    parts = [f"{found.program.name:24}"]
    if found.gain is not None:
        real = f"real {_interval(found.real)}" if found.real else "real 1"
        parts.append(f"{real}, proved {_interval(found.gain)} {found.gain.note}")
    for proof in found.delays:
        kind = "critical" if proof.place in found.program.critical else "hidden"
        parts.append(f"{kind} {proof.place} {_interval(proof)} {proof.note}")
    return " | ".join(parts)


def _interval(found: Estimate | Proof) -> str:
    if found.value is None:
        return "nothing"
    return f"{found.value:.2f} ({found.least or 0:.2f} to {found.most or 0:.2f})"


def summarize(scores: Sequence[Score]) -> str:
    """How many are right."""
    truths = [(each, each.real.value if each.real else 1.0) for each in scores if each.gain is not None]
    close = sum(
        bool(each.gain and each.gain.value and abs(each.gain.value / real - 1) <= CLOSE) for each, real in truths
    )
    held = sum(_holds(each.gain, each.real) for each, _ in truths if each.gain)
    critical = [proof for each in scores for proof in each.delays if proof.place in each.program.critical]
    hidden = [proof for each in scores for proof in each.delays if proof.place in each.program.hidden]
    seen = sum(proof.value is not None and proof.value >= CRITICAL for proof in critical)
    unseen = sum(proof.value is not None and proof.value <= HIDDEN for proof in hidden)
    return (
        f"gains within {CLOSE:.0%}: {close} of {len(truths)}; interval holds: {held} of {len(truths)}; "
        f"critical at least {CRITICAL}: {seen} of {len(critical)}; hidden at most {HIDDEN}: {unseen} of {len(hidden)}"
    )


def _holds(proof: Proof, real: Estimate | None) -> bool:
    """Whether the interval of a proof holds the real gain, which is itself known to its interval only."""
    if proof.least is None or proof.most is None:
        return False
    least, most = (real.least, real.most) if real else (1.0, 1.0)
    return proof.least <= most and least <= proof.most


if __name__ == "__main__":
    sys.exit(main())
