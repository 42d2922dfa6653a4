"""Runs the tutorials of the documentation again, and writes what the commands said and the pictures into their pages:
`python scripts/tutorials.py [NAME...]`.

A tutorial is a page below `docs/tutorials/` with one program, the change that makes it faster as a diff, and commands
whose output stands below them.  Needs the framework of each tutorial.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stepscope import load
from stepscope.pictures.timeline import draw_window, usual_window
from stepscope.records import dataclass
from stepscope.report.drawing import to_svg

PAGES = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
SCRIPT = "train.py"
LOGDIR = "stepscope-logs"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
_COMMAND = re.compile(r"^    \$ (stepscope .*)\n(?:    (?!\$).*\n|\n(?=    (?!\$)))*", re.MULTILINE)
_MOST_LINES = {"run": 10, "compare": 2}  # of a command's output
_WIDEST = 160  # columns of it
_CUT_PATH = re.compile(r"(?<=>)/[^<]*\N{HORIZONTAL ELLIPSIS}(?=<)")  # of a narrow box: the start of a path says nothing


@dataclass(frozen=True)
class Tutorial:
    """A page with its parts.

    Attributes:
        name: of the page, without its suffix.
        text: the page.
        program: the script that it starts with.
        change: the lines of the diff that make it faster.
        culprit: what the page says that the program waits for, as the reports write it.
    """

    name: str
    text: str
    program: str
    change: tuple[str, ...]
    culprit: str

    @property
    def commands(self) -> list[str]:
        """What the reader types, in order."""
        return [found[1] for found in _COMMAND.finditer(self.text)]

    @property
    def changed_program(self) -> str:
        """The script after the change.  Raises ValueError if a line that it removes is not there exactly once."""
        program = self.program
        for removed, added in _hunks(self.change):
            if program.count(removed) != 1:
                raise ValueError(f"{self.name}: the change removes what the program does not have once: {removed!r}")
            program = program.replace(removed, added)
        return program


def read_tutorial(name: str) -> Tutorial:
    """The tutorial of that name.  Raises ValueError if its page lacks a part."""
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    parts = {kind: _fenced(text, kind) for kind in ("python", "diff")}
    culprit = re.search(r"^Look for `(.*?)`", text, re.MULTILINE)
    if not all(parts.values()) or culprit is None:
        raise ValueError(f"{name}: a tutorial has a program, a diff, and a line that starts with 'Look for `'")
    return Tutorial(name, text, parts["python"], tuple(parts["diff"].splitlines()), culprit[1])


def names() -> list[str]:
    """All tutorials."""
    return sorted(path.stem for path in PAGES.glob("*.md"))


def _fenced(text: str, kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def _hunks(change: Sequence[str]) -> list[tuple[str, str]]:
    """What is removed and what comes in its place, for each run of lines; `...` separates runs."""
    hunks, removed, added = [], "", ""
    for line in [*change, "..."]:
        if line == "...":
            hunks.append((removed, added))
            removed = added = ""
            continue
        removed += f"{line[1:]}\n" if line[:1] in "- " else ""
        added += f"{line[1:]}\n" if line[:1] in "+ " else ""
    return hunks


def run_stepscope(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of the tutorial in a folder."""
    environment = os.environ | QUIET
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def record_page(tutorial: Tutorial, folder: Path) -> str:
    """The page with what its commands say now; the program changes before the second `stepscope run`."""
    text, runs = tutorial.text, 0
    for command in tutorial.commands:
        is_run = command.startswith("stepscope run")
        program = tutorial.changed_program if runs else tutorial.program
        (folder / SCRIPT).write_text(program, encoding="utf-8")
        done = run_stepscope(command.split(), folder)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr}")
        if not (is_run and runs):  # the second run speaks through the comparison
            lines = _shown_lines(done.stderr if is_run else done.stdout, folder)[: _MOST_LINES[command.split()[1]]]
            text = _put_below(text, command, lines)
        runs += is_run
    return text


def _put_below(text: str, command: str, lines: Sequence[str]) -> str:
    block = "".join(f"    {line}\n" for line in [f"$ {command}", *lines])
    return _COMMAND.sub(lambda found: block if found[1] == command else found[0], text)


def _shown_lines(said: str, folder: Path) -> list[str]:
    """The lines of a summary or of a comparison, from its verdict on, cut at their ends where they are very long."""
    lines = [hide_machine(line, folder).rstrip() for line in said.splitlines() if line.strip()]
    start = next((row for row, line in enumerate(lines) if line.startswith(("stepscope: captured", "Verdict"))), 0)
    return [line if len(line) <= _WIDEST else f"{line[: _WIDEST - 4]} ..." for line in lines[start:]]


def hide_machine(text: str, folder: Path) -> str:
    """A text without the folders of the machine that it was made on."""
    places = {f"{folder}/": "", sys.prefix: ".venv", sys.base_prefix: "/usr"}
    for place, name in places.items():
        text = text.replace(place, name)
    return _CUT_PATH.sub("", text)


def draw_steps(logdir: Path, folder: Path) -> str:
    """The picture of two steps of the newest session, as SVG."""
    profile = load(logdir)
    trace = profile.trace(profile.hosts[0])
    return hide_machine(to_svg(draw_window(trace, *usual_window(trace)).drawing), folder) + "\n"


def main() -> None:
    """Writes the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())} (default: all)")
    for name in parser.parse_args().names or names():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            text = record_page(read_tutorial(name), folder)
            (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
            (PAGES / "pictures" / f"{name}.svg").write_text(draw_steps(folder / LOGDIR, folder), encoding="utf-8")
        print(f"wrote {name}", flush=True)


if __name__ == "__main__":
    main()
