"""`python -m bench.gains`: how good the advice is on programs written without sight of the rules.

Each program's variants alternate in blocks of one run, with the profiler's windows in the same run, so that the real
gain has an interval. The result is a section of `docs/advice-truth.md`, with the score of the given set beside.

    python -m bench.gains --folder DIR --run          record all programs first, one after another
    python -m bench.gains --folder DIR --prove        prove the first advice of each recorded program
    python -m bench.gains --folder DIR                judge them: only when the rules are final
    python -m bench.gains --folder DIR --manifest FILE   judge the captures of a given set, known while the rules were
                                                         written; the file has `cases` with classes and measured ratios

`--series` says which programs; each series was written by somebody who did not know the rules.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stepscope
from bench.bottlenecks.blocks import OWN
from bench.bottlenecks.series import SERIES, Program, list_programs
from bench.pages import put
from stepscope.proof.record import Proof, from_json

PAGE = Path(__file__).resolve().parent.parent / "docs" / "advice-truth.md"
GIVEN = "Programs of a given set"
RESULT, PROOFS = "result.json", "proofs.json"
CLOSE = 0.2  # a predicted speed-up within this share of the real one is a good prediction
RESAMPLES, COVERAGE = 2000, 0.95
PROOF_S = 30.0
_TITLES = "|".join(re.escape(title) for title in SERIES.values())
_SECTIONS = re.compile(rf"^## (?:{_TITLES})\n.*?(?=^## |\Z)", re.M | re.S)


@dataclass(frozen=True)
class Gain:
    """A measured speed-up: the median ratio of neighbouring blocks, and its bootstrap interval."""

    real: float
    least: float
    most: float

    @property
    def is_precise(self) -> bool:
        """Whether the interval lies within the share that makes a prediction good."""
        return self.most <= self.real * (1 + CLOSE) and self.least >= self.real * (1 - CLOSE)


@dataclass(frozen=True)
class Verdict:
    """What Stepscope says about a program; times in ms per step, elapsed, as (slow, fixed), None in a given set."""

    program: Program
    gain: Gain
    first: str
    culprit: str | None
    is_culprit_right: bool
    predicted: float | None
    expected: tuple[float, float] | None
    shown: float | None
    fixed: str
    cpu: Gain | None = None
    untraced_ms: tuple[float, float] | None = None
    traced_ms: tuple[float, float] | None = None
    proof: Proof | None = None

    @property
    def is_right(self) -> bool:
        """Whether the first advice names the bottleneck."""
        return self.first in (self.program.expected, *self.program.also)

    @property
    def error(self) -> float | None:
        """Predicted over real speed-up, minus one; None without a prediction."""
        return self.predicted / self.gain.real - 1 if self.predicted and self.program.expected != "none" else None

    @property
    def is_close(self) -> bool:
        """Whether the prediction is good."""
        return self.error is not None and abs(self.error) <= CLOSE

    @property
    def is_apart(self) -> bool:
        """Whether the stated range and the interval of the proof have nothing in common."""
        proved = self.proof and self.proof.speedup
        return bool(proved and self.expected and (proved[1] > self.expected[1] or proved[2] < self.expected[0]))

    @property
    def is_shown(self) -> bool:
        """Whether the two traces show the real speed-up."""
        return self.shown is not None and abs(self.shown / self.gain.real - 1) <= CLOSE

    @property
    def is_expected(self) -> bool:
        """Whether the real speed-up lies in the stated range."""
        return self.expected is not None and self.expected[0] <= self.gain.real <= self.expected[1]


def measure_gain(slow: Sequence[float], fixed: Sequence[float]) -> Gain:
    """The gain of blocks that were run in pairs.

    `slow[i]` and `fixed[i]` (ms per step) ran next to each other and met the same load, which changes by more between
    pairs than a gain is large. So the ratio is that of a pair, and pairs are drawn.
    """
    ratios = np.array(slow) / np.array(fixed)
    drawn = np.random.default_rng(0).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    least, most = np.quantile(np.median(ratios[drawn], axis=1), [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Gain(float(np.median(ratios)), float(least), float(most))


def pair_blocks(blocks: Iterable[dict[str, Any]], figure: str) -> tuple[list[float], list[float]]:
    """A figure of the slow and of the fixed blocks: in ABBA order, the nth of one ran next to the other's nth."""
    times: dict[str, list[float]] = {"slow": [], "fixed": []}
    for block in blocks:
        times[block["variant"]].append(block[figure])
    return times["slow"], times["fixed"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the section and writes it into the page; returns 1 if a program could not be recorded."""
    options = _options(arguments)
    if options.manifest is not None:
        given = [judge_given(case, options.folder) for case in json.loads(options.manifest.read_text("utf-8"))["cases"]]
        put(options.output, GIVEN, f"## {GIVEN}\n\nThe {_score(given)}\n\n{make_table(given)}")
        return int(not all(verdict.is_right for verdict in given))
    chosen = [each for each in list_programs(options.series) if not options.only or each.name in options.only]
    failed = [program.name for program in chosen if options.run and not record(program, options.folder, options.own)]
    for program in chosen if options.prove else ():
        if _has(program, options):
            prove(program, options.folder / program.name)
    verdicts = (
        []
        if options.run or options.prove
        else [judge(program, options.folder) for program in chosen if _has(program, options)]
    )
    if verdicts:
        page = options.output.read_text("utf-8") if options.output.is_file() else ""
        section = make_section(options.series, verdicts, read_known_scores(page))
        print(section)
        if not options.only:
            put(options.output, SERIES[options.series], section)
    return int(bool(failed))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gains", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, metavar="DIR", required=True, help="captures, as NAME/slow, NAME/fixed")
    parser.add_argument("--series", choices=SERIES, default="third", help="which programs; each series has its section")
    parser.add_argument("--manifest", type=Path, metavar="FILE", help="judge the captures of a given set")
    parser.add_argument("--run", action="store_true", help="record the programs, and judge nothing")
    parser.add_argument("--prove", action="store_true", help="measure what the first advice gives, and judge nothing")
    parser.add_argument("--own", action="store_true", help="record with Stepscope's capture, not the framework's")
    parser.add_argument("--only", action="append", metavar="NAME", help="only these programs; the page stays as it is")
    parser.add_argument("--output", type=Path, default=PAGE, help="the page that gets the section")
    return parser.parse_args(arguments)


def _has(program: Program, options: argparse.Namespace) -> bool:
    folder: Path = options.folder
    return (folder / program.name / RESULT).is_file()


def record(program: Program, folder: Path, own: bool = False) -> bool:
    """Runs a program in a process of its own; False, with a line on stderr, if it fails."""
    shutil.rmtree(folder / program.name, ignore_errors=True)
    command = [sys.executable, "-m", "bench.bottlenecks.blocks", program.name, "--folder", str(folder)]
    environment = os.environ | ({OWN: "1"} if own else {})
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    if done.returncode:
        print(f"{program.name} failed: {done.stderr[-300:]}", file=sys.stderr)
    return not done.returncode


def prove(program: Program, place: Path) -> None:
    """Leaves out what the first advice of the slow variant names, in a run of that one; its answer lies in `place`."""
    advice = _load_overview(place / "slow").to_dict()["advice"]
    asked = shlex.split((advice[0].get("prove") if advice else None) or "")[2:-1]
    if not asked or program.ranks > 1:
        return
    command = [sys.executable, "-m", "stepscope", "prove", "--steps", "0", "--budget", str(PROOF_S)]
    command += ["--logdir", str(place), *("--ablate" if word == "--at" else word for word in asked)]
    command += ["-m", "bench.bottlenecks.blocks", program.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    found = [line for line in done.stderr.splitlines() if line.startswith("stepscope: ")]
    print(f"{program.name}: {found[-1] if found else done.stderr[-300:]}", flush=True)


def _read_proof(place: Path) -> Proof | None:
    file = place / PROOFS
    proofs = from_json(file.read_text("utf-8")) if file.is_file() else []
    return next((proof for proof in proofs if proof.speedup), None)


def judge(program: Program, folder: Path) -> Verdict:
    """What Stepscope says about the captures of a program, beside what was measured."""
    place = folder / program.name
    result = json.loads((place / RESULT).read_text("utf-8"))
    program = dataclasses.replace(program, lines=tuple(map(tuple, result["lines"])))  # as they were when recorded
    slow_ms, fixed_ms = pair_blocks(result["blocks"], "step_ms")
    return dataclasses.replace(
        _judge(program, place, measure_gain(slow_ms, fixed_ms)),
        cpu=measure_gain(*pair_blocks(result["blocks"], "cpu_ms")),
        untraced_ms=(float(np.median(slow_ms)), float(np.median(fixed_ms))),
        traced_ms=(result["recorded_step_ms"]["slow"], result["recorded_step_ms"]["fixed"]),
        proof=_read_proof(place),
    )


def judge_given(case: dict[str, Any], folder: Path) -> Verdict:
    """The same of a case of a given set, which names no culprit and no interval."""
    also, real = tuple(case.get("also_acceptable", ())), case["measured_ratio"]
    program = Program(
        "given", case["framework"], case["id"], case["expected"], also, (), case["fix"], None, 1, 0, False, ()
    )
    return _judge(program, folder / case["id"], Gain(real, real, real))


def _judge(program: Program, place: Path, gain: Gain) -> Verdict:
    slow, fixed = (_load_overview(place / variant) for variant in ("slow", "fixed"))
    answer, slow_ms, fixed_ms = slow.to_dict(), slow.context.period_ms, fixed.context.period_ms
    item = answer["advice"][0] if answer["advice"] else {}
    culprit = item.get("culprit") or {}
    least, most = item.get("predicted_speedup_least"), item.get("predicted_speedup_most")
    return Verdict(
        program,
        gain,
        first=item.get("class", "no advice"),
        culprit=_name_culprit(culprit),
        is_culprit_right=program.is_culprit(culprit.get("name"), culprit.get("file"), culprit.get("line")),
        predicted=item.get("predicted_speedup"),
        expected=None if least is None else (least, np.inf if most is None else most),
        shown=slow_ms / fixed_ms if slow_ms and fixed_ms else None,
        fixed=", ".join(found["class"] for found in fixed.to_dict()["advice"]) or "no advice",
    )


def _load_overview(place: Path) -> Any:
    return stepscope.load(place).overview()


def _name_culprit(culprit: dict[str, Any]) -> str | None:
    if not culprit:
        return None
    if culprit.get("file"):
        return f"{Path(culprit['file']).name}:{culprit.get('line')} {culprit.get('name')}"
    return str(culprit.get("name"))


def make_section(series: str, verdicts: Sequence[Verdict], known: Sequence[str]) -> str:
    """The section of the page: both scores in words, then a table of the programs."""
    return "\n".join(
        [
            f"## {SERIES[series]}",
            "",
            f"Made by `python -m bench.gains --series {series}`. Nobody who wrote these programs knew the rules. The"
            " slow and the fixed variant of each take turns in short blocks of one run, and both are recorded in that"
            " run. `real` is the ratio of the elapsed times per step of neighbouring blocks, the median of up to twelve"
            " pairs, with its 95 % bootstrap interval; `traces` is the ratio of the step times in the two traces; `CPU`"
            " is that of the CPU times of the training process, which the load of the machine does not stretch."
            " `proved` is what `stepscope prove` measured without the place that the first advice names.",
            "",
            *(f"- Known: {score}" for score in known),
            f"- Unseen: the {_score(verdicts)}",
            "",
            make_table(verdicts),
            "",
        ]
    )


def make_table(verdicts: Sequence[Verdict]) -> str:
    """What was said of each program, and what is true."""
    return "\n".join(
        [
            "| program | bottleneck | first advice | | culprit | | predicted | range | real | interval | proved | CPU"
            " | error | traces | step ms | traced ms | once fixed |",
            f"|{' --- |' * 17}",
            *(_make_row(verdict) for verdict in verdicts),
        ]
    )


def _score(verdicts: Sequence[Verdict]) -> str:
    planted = [verdict for verdict in verdicts if verdict.program.expected != "none"]
    stacks = [verdict for verdict in planted if verdict.program.has_python]
    precise = [verdict for verdict in planted if verdict.gain.is_precise]
    culprits = (
        f" the culprit in {sum(verdict.is_culprit_right for verdict in planted)} of {len(planted)}, and in"
        f" {sum(verdict.is_culprit_right for verdict in stacks)} of {len(stacks)} with Python calls (none is named in"
        f" {sum(verdict.culprit is None for verdict in planted)});"
    )
    is_given = all(verdict.untraced_ms is None for verdict in verdicts)
    return (
        f"first advice is right in {sum(verdict.is_right for verdict in verdicts)} of {len(verdicts)};"
        f"{'' if is_given else culprits} the fixed"
        f" variant gets `none` in {sum(verdict.fixed == 'none' for verdict in verdicts)} of {len(verdicts)};"
        f" {_score_gains(planted)}"
        f"{'' if is_given else f' In those whose interval lies within {CLOSE:.0%}: {_score_gains(precise)}'}"
    )


def _score_gains(gains: Sequence[Verdict]) -> str:
    return (
        f"the prediction is within {CLOSE:.0%} of the real gain in {sum(verdict.is_close for verdict in gains)} of"
        f" {len(gains)}, the real one lies in the stated range in {sum(verdict.is_expected for verdict in gains)}, and"
        f" the traces' own ratio is as close in {sum(verdict.is_shown for verdict in gains)}."
    )


def _make_row(verdict: Verdict) -> str:
    program, gain = verdict.program, verdict.gain
    has_bottleneck, is_given = program.expected != "none", verdict.untraced_ms is None
    cells = (
        program.name,
        program.expected,
        verdict.first,
        "right" if verdict.is_right else "**wrong**",
        f"`{verdict.culprit}`" if verdict.culprit and has_bottleneck else "",
        ("right" if verdict.is_culprit_right else "**wrong**") if has_bottleneck and not is_given else "",
        f"{verdict.predicted:.2f}" if verdict.predicted else "",
        f"{verdict.expected[0]:g} to {verdict.expected[1]:g}" if verdict.expected else "",
        f"{gain.real:.2f}",
        "" if is_given else f"{gain.least:.2f} to {gain.most:.2f}",
        _describe_proof(verdict),
        f"{verdict.cpu.real:.2f}" if verdict.cpu else "",
        f"{100 * verdict.error:+.0f} %" if verdict.error is not None else "",
        f"{verdict.shown:.2f}" if verdict.shown else "",
        *("{:.1f} to {:.1f}".format(*ms) if ms else "" for ms in (verdict.untraced_ms, verdict.traced_ms)),
        verdict.fixed,
    )
    return f"| {' | '.join(cells)} |"


def _describe_proof(verdict: Verdict) -> str:
    if verdict.proof is None or verdict.proof.speedup is None:
        return ""
    value, least, most = verdict.proof.speedup
    return f"{value:.2f} ({least:.2f} to {most:.2f}){', **apart from the range**' if verdict.is_apart else ''}"


def read_known_scores(page: str) -> list[str]:
    """The scores that the page states for the programs that were known while the rules were written."""
    other = _SECTIONS.sub("", page)
    return [
        f"{title.lower()}: {score}" for title, score in re.findall(r"^## (.+)\n\n(The first advice .+)$", other, re.M)
    ]


if __name__ == "__main__":
    sys.exit(main())
