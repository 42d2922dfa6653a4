"""`python -m bench.prove`: how true proofs are, on programs that know where they wait.

    python -m bench.prove [--only NAME] [--budget SECONDS] [--within SECONDS]
    python -m bench.prove --gains                 ablations alone; writes their table into docs/prove.md

Each program runs three times, each in a process of its own: its variants in turns of blocks, which is the real gain;
with an ablation; and with delays in its planted places.  A fix may do a part of the work more cheaply than the slow
variant, where an ablation does none of it: such a program has a bare variant, too, which an ablation should find.

What is true is measured, too, and as well as a proof at best: the interval of a proof would miss it often even if it
were right.  So a proof agrees where the two differ by no more than their uncertainties together, which is how
laboratories that measure the same thing are judged (ISO 13528: normalized error of at most 1).
"""

from __future__ import annotations

import argparse
import collections
import functools
import importlib.util
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import stepscope
from bench.bottlenecks.blocks import build, choose_mark
from bench.bottlenecks.loops import Fit, Loop
from bench.bottlenecks.planted import PLANTED, Made, Planted
from bench.bottlenecks.planted_hidden import HIDDEN
from bench.bottlenecks.series import Program, Run, list_programs
from bench.pages import put
from stepscope.capture.proving.prover import wait_for_devices
from stepscope.proof.pairs import estimate_ratio
from stepscope.proof.parts import PARTS
from stepscope.proof.record import Estimate, Proof, from_json


def plant(program: Program) -> Planted:
    """A program of a series whose declaration names what can be left out."""

    def make(slow: bool, bare: bool = False) -> Made:
        return build_bare(program) if bare else build(program, "slow" if slow else "fixed")

    make.__name__ = program.name
    is_part = program.ablate in PARTS
    return Planted(make, program.ablate if is_part else f"{program.module}.py:{program.ablate}")


def build_bare(program: Program) -> Made:
    """The slow variant in a module of its own, in which the part gives its first result for ever."""
    file = Path(__file__).parent / "bottlenecks" / f"{program.module}.py"
    spec = importlib.util.spec_from_file_location(f"bare_{program.name}", file)
    assert spec is not None and spec.loader is not None, "a file has a loader"
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if program.ablate == "input":
        vars(module)["iter"] = repeat_first
        loader = vars(module).get("DataLoader")
        if loader is not None:
            again = {"__iter__": lambda self: repeat_first(loader.__iter__(self))}
            vars(module)["DataLoader"] = type("Again", (loader,), again)
    else:
        owner, _, last = str(program.ablate).rpartition(".")
        home = getattr(module, owner) if owner else module
        setattr(home, last, keep_first(getattr(home, last)))
    made = getattr(module, program.name)(Run(True, choose_mark(program.framework)))
    return made if isinstance(made, Fit) else Loop(made)


def repeat_first(batches: Iterable[Any]) -> Iterator[Any]:
    """The first batch for ever."""
    return itertools.repeat(next(iter(batches)))


def keep_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the result of its first call for ever."""
    results: list[Any] = []

    @functools.wraps(function)
    def give(*args: Any, **kwargs: Any) -> Any:
        if not results:
            results.append(function(*args, **kwargs))
        return results[0]

    return give


DECLARED = {program.name: plant(program) for program in list_programs("third") if program.ablate}
PROGRAMS = PLANTED | HIDDEN | DECLARED
PAGE = Path(__file__).resolve().parent.parent / "docs" / "prove.md"
WARMUP, REAL_S = 8, 8.0
BLOCK_S, BLOCK_OF_FIT_S = 0.8, 1.6  # a call of `fit` starts its input anew; half of each block counts
MOST_STEPS = 100_000
CLOSE = 0.15
NO_GAIN = Estimate(1.0, 1.0, 1.0, 0)  # of a healthy program
FEWEST_ROUNDS = 6
CRITICAL, HIDDEN_MOST = 0.8, 0.2


@dataclass(frozen=True)
class Score:
    """What was found of a program, beside what is true: the gain of the fix, and of the bare variant."""

    program: Planted
    real: Mapping[str, Estimate]
    gain: Proof | None
    delays: list[Proof]

    @property
    def removal(self) -> Estimate:
        """What the part costs: the gain of the bare variant, or else of the fix."""
        return self.real.get("bare") or self.real.get("fixed") or NO_GAIN


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row for each program, and the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PROGRAMS)
    parser.add_argument("--budget", type=float, default=30.0, help="seconds for each run")
    parser.add_argument("--variants", choices=PROGRAMS, help="measure the variants of one in this process")
    parser.add_argument("--loop", choices=PROGRAMS, help="run the slow variant of one in this process")
    parser.add_argument("--within", type=float, default=math.inf, help="start no program after so many seconds")
    parser.add_argument("--gains", action="store_true", help="ablations alone, of the declared programs")
    options = parser.parse_args(arguments)
    set_environment()
    if options.variants:
        found = measure_variants(PROGRAMS[options.variants].variants)
        print(json.dumps({name: asdict(gain) for name, gain in found.items()}))
        return 0
    if options.loop:
        run_loop(PROGRAMS[options.loop].make(True))
        return 0
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    started_s, scores = time.monotonic(), []
    for name in options.only or (DECLARED if options.gains else PROGRAMS):
        if time.monotonic() - started_s < options.within:
            scores.append(score(PROGRAMS[name], options.budget, with_delays=not options.gains))
    print(summarize(scores))
    if options.gains and not options.only:
        put(PAGE, "table of bench.prove", make_table(scores))
    return 0


def set_environment() -> None:
    """No GPU, and as many threads as a shared machine has to give."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PJRT_NPROC": "1"}


def run_loop(made: Made) -> None:
    """Runs steps until the proof ends the program; only a program that is a single step has them marked."""
    if isinstance(made, Fit | Loop):
        made.run(0, MOST_STEPS, nullcontext())
    elif isinstance(made, Iterator):
        collections.deque(itertools.islice(made, MOST_STEPS), maxlen=0)
    else:
        for number in range(MOST_STEPS):
            with stepscope.step(number):
                made(number)


def measure_variants(variants: Mapping[str, Callable[[], Made]]) -> dict[str, Estimate]:
    """How many times as fast the other variants are as the slow one: blocks in random order, each with a pause of half
    its length, in which what was prefetched meanwhile is used up."""
    loops = {name: _as_loop(make()) for name, make in variants.items()}
    counts = {name: _count_steps(loop) for name, loop in loops.items()}
    rounds: list[dict[str, float]] = []
    drawn, start = random.Random(7), time.perf_counter()
    while time.perf_counter() - start < REAL_S or len(rounds) < FEWEST_ROUNDS:
        order = drawn.sample(list(loops), len(loops))
        rounds.append({name: _time_block(loops[name], counts[name]) for name in order})
    found = {}
    for name in loops.keys() - {"slow"}:
        gain = estimate_ratio([(each["slow"], each[name]) for each in rounds])
        assert gain is not None, "there are enough rounds"
        found[name] = gain
    return found


def _time_block(loop: Loop | Fit, count: int) -> float:
    """The mean step in ms, after as many untimed ones, with what devices then still work on."""
    if isinstance(loop, Fit):
        return fmean(loop.run(count, count, nullcontext()))
    loop.run(count, 0, nullcontext())
    wait_for_devices()
    start = time.perf_counter()
    loop.run(0, count, nullcontext())
    wait_for_devices()
    return 1e3 * (time.perf_counter() - start) / count


def _as_loop(made: Made) -> Loop | Fit:
    if isinstance(made, Fit | Loop):
        return made
    return Loop(made if isinstance(made, Iterator) else (made(number) for number in itertools.count()))  # type: ignore[func-returns-value]


def _count_steps(loop: Loop | Fit) -> int:
    """How many steps make half of a block."""
    block_s = BLOCK_OF_FIT_S if isinstance(loop, Fit) else BLOCK_S
    step_ms = fmean(loop.run(WARMUP, WARMUP, nullcontext()))
    return max(4, round(1e3 * block_s / 2 / step_ms))


def score(program: Planted, budget: float, with_delays: bool = True) -> Score:
    """Runs a program in its three ways."""
    has_variants = program.ablate and not program.is_healthy
    real = json.loads(_run(["--variants", program.name])) if has_variants else {}
    gains = prove(program, ["--ablate", program.ablate], budget) if program.ablate else []
    asked = (*program.critical, *program.hidden) if with_delays else ()
    places = [word for place in asked for word in ("--at", place)]
    delays = prove(program, places, budget) if places else []
    found = Score(program, {name: Estimate(**each) for name, each in real.items()}, gains[0] if gains else None, delays)
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
        real = ", ".join(f"{name} {_interval(each)}" for name, each in sorted(found.real.items())) or "fixed 1"
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
    lines = []
    proved = [(each, each.gain) for each in scores if each.gain is not None]
    for title, truths in (
        ("the fix", [(gain, each.real.get("fixed", NO_GAIN)) for each, gain in proved]),
        ("the part removed", [(gain, each.removal) for each, gain in proved]),
    ):
        errors = [find_error(gain, real) for gain, real in truths]
        close = sum(is_close(gain, real) for gain, real in truths)
        agree = sum(error is not None and abs(error) <= 1 for error in errors)
        lines.append(f"beside {title}: within {CLOSE:.0%} {close} of {len(truths)}, agree {agree}")
    critical = [proof for each in scores for proof in each.delays if proof.place in each.program.critical]
    hidden = [proof for each in scores for proof in each.delays if proof.place in each.program.hidden]
    seen = sum(proof.value is not None and proof.value >= CRITICAL for proof in critical)
    unseen = sum(proof.value is not None and proof.value <= HIDDEN_MOST for proof in hidden)
    lines.append(f"critical at least {CRITICAL}: {seen} of {len(critical)}")
    lines.append(f"hidden at most {HIDDEN_MOST}: {unseen} of {len(hidden)}")
    return "; ".join(lines)


def is_close(proof: Proof, real: Estimate) -> bool:
    """Whether a proof is as close to the real gain as is asked for."""
    return proof.value is not None and abs(proof.value / real.value - 1) <= CLOSE


def find_error(proof: Proof, real: Estimate) -> float | None:
    """The normalized error: by how much the two differ, over the half widths of both intervals together, as logarithms.

    None where either has no interval.
    """
    intervals = [(each.least or 0.0, each.most or math.inf) for each in (proof, real)]
    if proof.value is None or any(least <= 0 or most == math.inf for least, most in intervals):
        return None
    together = math.hypot(*(math.log(most / least) / 2 for least, most in intervals))
    return math.log(proof.value / real.value) / together if together else None


def make_table(scores: Sequence[Score]) -> str:
    """The figures of these programs, as Markdown."""
    rows = [f"Made by `bench.prove`: {summarize(scores).partition('; critical')[0]}.", ""]
    rows += [
        "| program | left out | the fix gains | without the part | proved | error |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in scores:
        shown = [_interval(each.real[name]) if name in each.real else "" for name in ("fixed", "bare")]
        error = find_error(each.gain, each.removal) if each.gain else None
        cells = [each.program.name, f"`{each.program.ablate.rpartition(':')[2]}`", *shown]
        cells += [_interval(each.gain) if each.gain else "nothing", "" if error is None else f"{error:.2f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
