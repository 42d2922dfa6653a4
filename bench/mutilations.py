"""Does Stepscope say the same of a recording with less in it, or that it does not know?

    python -m bench.mutilations                  all of them: a table, and those with a false answer
    python -m bench.mutilations NAME ...         these only, and what was said: `torch/input/no-waits`, or a part
    python -m bench.mutilations --keep FOLDER NAME ...   and leave their files there
    python -m bench.mutilations --write          the table into docs/advice-truth.md, false ones into false.txt

Each recording of a known answer, drawn (`bench.mutilation.jobs`) or recorded (`bench.mutilation.known`), is changed in
each way of `bench.mutilation.changes`, written as a file and read back.  A name is recording/change, and the same name
is always the same file.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.mutilation.changes import CHANGES
from bench.mutilation.jobs import FRAMEWORKS, KINDS, draw
from bench.mutilation.judge import DOUBTFUL, FALSE, HONEST, RIGHT, Judgement, ask, judge
from bench.mutilation.known import Known, load, shared_recordings
from bench.mutilation.rows import Recording
from bench.pages import put

STILL_FALSE = Path(__file__).with_name("mutilation") / "false.txt"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "advice-truth.md"


@dataclass(frozen=True)
class Result:
    """One answer."""

    base: str
    change: str
    judgement: Judgement

    @property
    def name(self) -> str:
        """By which it is asked for again."""
        return f"{self.base}/{self.change}"


def bases() -> Iterator[tuple[str, Callable[[], tuple[Recording, Known]]]]:
    """Name of each recording and how to obtain it with its right answer."""
    for framework in FRAMEWORKS:
        for kind in KINDS:
            yield f"{framework}/{kind}", lambda framework=framework, kind=kind: draw(framework, kind)  # type: ignore[misc]
    for name, path, known in shared_recordings():
        yield f"recorded/{name}", lambda path=path, known=known: load(path, known)  # type: ignore[misc]


def still_false() -> set[str]:
    """Names of the mutilations whose answer was false when all were last asked."""
    return set(STILL_FALSE.read_text("utf-8").split())


def run(wanted: Sequence[str] = (), keep: Path | None = None) -> Iterator[Result]:
    """Asks about every mutilation whose name holds one of the given texts; of all if none is given."""
    for base, obtain in bases():
        names = [change for change in CHANGES if not wanted or any(one in f"{base}/{change}" for one in wanted)]
        if not names:
            continue
        recording, known = obtain()
        for change in names:
            made = mutilate(recording, base, change)
            if made is None:
                continue
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / (f"{base}/{change}".replace("/", "__") + made.suffix)).write_bytes(made.encode())
            yield Result(base, change, judge_of(made, known, change))


def mutilate(recording: Recording, base: str, change: str) -> Recording | None:
    """A changed copy, the same for the same names; None where there is nothing to change."""
    return CHANGES[change].apply(recording.copy(), random.Random(f"{base}/{change}"))


def judge_of(made: Recording, known: Known, change: str) -> Judgement:
    """What Stepscope's answer is worth; an exception is a false one."""
    try:
        report = ask(made)
    except Exception as error:  # whatever ends in an exception gave no answer, and a user would see it
        return Judgement(FALSE, f"it fails: {type(error).__name__}: {error}"[:160], "nothing")
    return judge(report, known, CHANGES[change].longer)


def table(results: Sequence[Result]) -> str:
    """Right, honest and false by change, and their sum."""
    counts: dict[str, Counter[str]] = {}
    for one in results:
        counts.setdefault(one.change, Counter())[one.judgement.word] += 1
    lines = ["| recordings | right | honest | false |", "| --- | ---: | ---: | ---: |"]
    for change in CHANGES:
        if change in counts:
            row = counts[change]
            lines.append(f"| {CHANGES[change].title} | {row[RIGHT]} | {row[HONEST]} | {row[FALSE]} |")
    total = Counter(one.judgement.word for one in results)
    lines.append(f"| all {len(results)} | {total[RIGHT]} | {total[HONEST]} | {total[FALSE]} |")
    return "\n".join(lines)


LEVELS = ((1.0, 1.0), (0.9, 1.0), (0.7, 0.9), (DOUBTFUL, 0.7), (0.0, DOUBTFUL))  # of confidence: from, and below


def confidence_table(results: Sequence[Result]) -> str:
    """How many sessions whose steps state some confidence have the right step time; marks without one count as 1."""
    lines = ["| stated confidence | recordings | right steps | percent |", "| --- | ---: | ---: | ---: |"]
    known = [one.judgement for one in results if one.judgement.steps_right is not None]
    for low, high in LEVELS:
        here = [one for one in known if one.confidence is not None and _is_within(one.confidence, low, high)]
        right = sum(bool(one.steps_right) for one in here)
        title = "marks, or 1" if low == high else f"above {low:g}, below {high:g}" if low else f"{high:g} or less"
        share = f"{100 * right / len(here):.0f}" if here else ""
        lines.append(f"| {title} | {len(here)} | {right} | {share} |")
    return "\n".join(lines)


def _is_within(confidence: float, low: float, high: float) -> bool:
    if low == high:
        return confidence >= high
    return (
        low < confidence < high or (confidence == high and high == DOUBTFUL) or (confidence == low and low > DOUBTFUL)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table and the false answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path, help="a folder for the files")
    parser.add_argument("--write", action="store_true", help="the table goes into docs/advice-truth.md")
    options = parser.parse_args(arguments)
    began, results = time.perf_counter(), []
    for one in run(options.names, options.keep):
        results.append(one)
        if options.names or one.judgement.word == FALSE:
            word = one.judgement.word.upper() if one.judgement.word == FALSE else one.judgement.word
            print(
                f"{word:6} {one.name}: {one.judgement.said}" + (f"; {one.judgement.why}" if one.judgement.why else "")
            )
    print(f"\n{confidence_table(results)}")
    print(f"\n{table(results)}\n\n{len(results)} in {time.perf_counter() - began:.0f} s")
    if options.write:
        put(PAGE, "bench.mutilations", table(results))
        put(PAGE, "bench.mutilations confidence", confidence_table(results))
        names = sorted(one.name for one in results if one.judgement.word == FALSE)
        STILL_FALSE.write_text("".join(name + "\n" for name in names), "utf-8")


if __name__ == "__main__":
    main()
