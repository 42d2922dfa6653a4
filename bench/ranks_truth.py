"""`python -m bench.ranks_truth`: does Stepscope name what is wrong with a job of many ranks?

Each job is simulated with a fault of known kind, place and cost, or with none, and asked about by the commands that a
user has: `distributed`, `whatif --balance-ranks` and `advice`.  Results go to bench/RANKS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench.jobs.__main__ import make_job
from bench.jobs.damage import DAMAGES, damage_job
from bench.jobs.faults import FAULTS, faults_of
from bench.jobs.plan import KINDS, Job
from bench.profiles import REPOSITORY

PAGE = REPOSITORY / "bench" / "RANKS.md"
CAUSES = {
    "stages": "unequal_stages",
    "layers": "unequal_stages",
    "sequences": "sequence_lengths",
    "machine": "slow_machine",
    "garbage": "garbage_collection",
    "link": "slow_link",
    "input": "late_input",
}
RIGHT, WRONG, UNKNOWN, NOTHING = "right", "wrong", "unknown", "nothing"
_COLUMNS = ("job", "ranks", "truth", "said", "cause", "place", "S true", "S said", "replay %", "S %", "processor s")
_SUMMARY = (
    "ranks", "faults", "right", "wrong", "unknown", "nothing", "healthy", "named on healthy", "S within 3 %",
    "median S error %", "worst replay %",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What Stepscope says of one job.

    Attributes:
        said: the first cause that it names; None for none.
        named: whether that is right.
        is_place_right: whether stage or ranks are right; None where the truth has no place or no cause is named.
        slowdown, said_slowdown: with the work that there is, against equal work.
        replay_error: in percent, as Stepscope says.
        seconds: processor time of all commands.
        notes: what failed, or was warned of.
    """

    job: Job
    said: str | None
    named: str
    is_place_right: bool | None
    slowdown: float
    said_slowdown: float | None
    replay_error: float | None
    seconds: float
    advice: str
    notes: tuple[str, ...] = ()

    @property
    def slowdown_error(self) -> float | None:
        """By how many percent of the true one the slowdown that was said is off."""
        return None if self.said_slowdown is None else 100 * (self.said_slowdown / self.slowdown - 1)


def ask_job(folder: Path, job: Job, damage: str | None = None) -> Answer:
    """Makes the job and asks about it."""
    truth = make_job(folder, job)
    if damage in DAMAGES:
        damage_job(folder, damage)
    return judge_answer(folder, job, truth)


def judge_answer(folder: Path, job: Job, truth: dict[str, Any]) -> Answer:
    """What the three commands say, beside the truth."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    notes: list[str] = []
    ranks = _command(notes, "distributed", folder)
    balanced = _command(notes, "whatif", folder, "--balance-ranks")
    advised = _command(notes, "advice", folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    causes = ranks.get("causes") or []
    first = causes[0] if causes else {}
    blamed = any("is the straggler" in str(sentence) for sentence in ranks.get("findings", ()))
    said = first.get("cause") or ("straggler" if blamed else None)
    expected = CAUSES[job.fault] if job.fault else None
    items = advised.get("advice") or advised.get("items") or [{}]
    return Answer(
        job=job,
        said=said,
        named=_grade(said, expected),
        is_place_right=_is_place_right(first, truth["fault"]) if said and said == expected else None,
        slowdown=float(truth["slowdown"]),
        said_slowdown=balanced.get("predicted_speedup"),
        replay_error=balanced.get("replay_error_percent"),
        seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        advice=str(items[0].get("title", "")),
        notes=(*notes, *map(str, ranks.get("warnings", ()))),
    )


def _command(notes: list[str], name: str, folder: Path, *options: str) -> dict[str, Any]:
    """The JSON that a command prints; nothing, and a note, where it fails."""
    command = [sys.executable, "-m", "stepscope", name, str(folder), *options, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "400"})
    if done.returncode:
        notes.append(f"{name}: {(done.stderr or done.stdout).strip().splitlines()[-1][:200]}")
        return {}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _grade(said: str | None, expected: str | None) -> str:
    if said is None or said == "unknown":
        return UNKNOWN if said else NOTHING
    return RIGHT if said == expected else WRONG


def _is_place_right(row: dict[str, Any], fault: dict[str, Any]) -> bool | None:
    """Whether the stage or the ranks are those of the fault."""
    if fault["stage"] is not None:
        return bool(row.get("stage") == fault["stage"])
    ranks = row.get("ranks")
    return bool(sorted(ranks or ()) == sorted(fault["ranks"])) if fault["ranks"] and isinstance(ranks, list) else None


# ---- the page --------------------------------------------------------------------------------------------------------


def render_page(answers: Sequence[Answer], damaged: Sequence[tuple[str, Answer]]) -> str:
    """All jobs as a table, with a summary for each size."""
    lines = [
        "# Jobs of many ranks, against their truth",
        "",
        "Simulated jobs (`bench/jobs`), each healthy or with one planted fault that slows it down about 1.3 times.",
        "S is how much slower the job is than with equal work: by simulation, and as `whatif --balance-ranks` says.",
        "",
        *_table(_SUMMARY, _summaries(answers)),
        "",
        *_table(_COLUMNS, [_row(each) for each in answers]),
    ]
    if damaged:
        lines += [
            "",
            "## Bad input",
            "",
            "The 1F1B job of 8 ranks whose last stage is too long, with damaged files.",
            "",
        ]
        rows = [
            (
                how,
                each.named,
                _figure(each.said_slowdown),
                _figure(each.slowdown),
                "; ".join(each.notes)[:160] or "nothing",
            )
            for how, each in damaged
        ]
        lines += _table(("damage", "cause", "S said", "S true", "warned of"), rows)
    return "\n".join(lines) + "\n"


def _summaries(answers: Sequence[Answer]) -> Iterator[tuple[object, ...]]:
    for world in sorted({each.job.world for each in answers}):
        own = [each for each in answers if each.job.world == world]
        faults, healthy = [each for each in own if each.job.fault], [each for each in own if not each.job.fault]
        errors = [abs(each.slowdown_error) for each in own if each.slowdown_error is not None]
        replays = [each.replay_error for each in own if each.replay_error is not None]
        yield (
            world,
            len(faults),
            *(sum(each.named == grade for each in faults) for grade in (RIGHT, WRONG, UNKNOWN, NOTHING)),
            len(healthy),
            sum(each.named in (RIGHT, WRONG) for each in healthy),
            f"{sum(error <= 3 for error in errors)} of {len(own)}",
            _figure(float(np.median(errors)) if errors else None),
            _figure(max(replays, default=None)),
        )


def _row(each: Answer) -> tuple[object, ...]:
    place = {None: "", True: RIGHT, False: WRONG}[each.is_place_right]
    figures = (each.slowdown, each.said_slowdown, each.replay_error, each.slowdown_error)
    truth = each.job.fault or "healthy"
    return (each.job.kind, each.job.world, truth, each.said or "nothing", each.named, place,
            *map(_figure, figures), f"{each.seconds:.1f}")  # fmt: skip


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table(columns: Sequence[str], rows: Iterator[tuple[object, ...]] | Sequence[tuple[object, ...]]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def main() -> None:
    """Makes all jobs, asks about them, and writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worlds", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--faults", nargs="+", choices=(*FAULTS, "healthy"), default=(*FAULTS, "healthy"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--damages", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--single", action="store_true", help="a kernel for each send and receive, not batches")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    answers, damaged = [], []
    for world, kind, seed in product(options.worlds, options.kinds, options.seeds):
        for fault in (None, *faults_of(kind)):
            if (fault or "healthy") in options.faults:
                job = Job(
                    kind, world, seed=seed, batched=not options.single, fault=None if fault == "healthy" else fault
                )
                with tempfile.TemporaryDirectory() as folder:
                    found = ask_job(Path(folder), job)
                print(" | ".join(map(str, _row(found))), found.advice, *found.notes[:1], sep=" | ", flush=True)
                answers.append(found)
    for how in ("clocks half a second off", *DAMAGES) if options.damages else ():
        job = Job(fault="stages", skew_ms=2.0 if how in DAMAGES else 500.0)
        with tempfile.TemporaryDirectory() as folder:
            damaged.append((how, ask_job(Path(folder), job, how)))
        print(how, damaged[-1][1].named, *damaged[-1][1].notes, sep=" | ", flush=True)
    options.page.write_text(render_page(answers, damaged))


if __name__ == "__main__":
    main()
