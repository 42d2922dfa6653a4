"""Writes reports to the terminal and to files, and shows the progress of long work."""

from __future__ import annotations

import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.cli.options import OutputFormat
from stepscope.errors import InputError, OutputError, counted
from stepscope.report import Report, clean, export
from stepscope.report.export import EXPORTS, SHEETS
from stepscope.report.sections import TABLE_ROWS

if TYPE_CHECKING:
    from stepscope.report.styled import Line

PATIENCE_SECONDS = 1.0
_ROWS_ALONE = (OutputFormat.CSV, OutputFormat.PARQUET)
_LEFT_OUT = "not listed"  # in every warning about rows that a report leaves out
_VERDICT = "verdict "  # starts the line of a summary that answers the question
_SHARES = ("goes to ", "filled by ")  # start the line of the causes of the step's time, or of what filled the memory
_WIDEST_BAR = 80
_RECORDED = "recorded "  # starts the line of a summary on what was recorded
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)")  # one letter is a drive
WIDE = 200  # columns of a table that goes to a file or a pipe


def file_size_text(nbytes: int) -> str:
    """A file size as text.

    >>> file_size_text(812), file_size_text(81_234), file_size_text(17_900_000)
    ('812 bytes', '81.2 kB', '17.9 MB')
    """
    if nbytes < 1000:
        return counted(nbytes, "byte")
    unit, divisor = ("kB", 1e3) if nbytes < 999_950 else ("MB", 1e6)
    return f"{nbytes / divisor:,.1f} {unit}"


def remote_address(output: Path) -> str | None:
    """The address of an --output in an object store, from which `Path` takes a slash: `s3:/bucket/rows.csv`."""
    found = _ADDRESS.match(output.as_posix())
    return f"{found[1]}://{found[2]}" if found else None


def write_file(output: Path, content: bytes | Iterable[bytes]) -> int:
    """Writes what a command made; what goes to an object store is written on this machine first, and then copied.

    Returns the number of bytes.  Raises OutputError.
    """
    address = remote_address(output)
    if address is None:
        return export.write_file(output, content)
    import tempfile

    from stepscope.formats import store

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, output.name)
        size = export.write_file(file, content)
        try:
            store.upload(file, address)
        except InputError as error:
            reason = f"the result could not be copied: {error.problem.reason}"
            raise OutputError(reason, path=address, hint=error.problem.hint or "") from error
    return size


def show_report(report: Report, form: OutputFormat, output: Path | None, top: int | None) -> None:
    """Writes a report in the given format.  Raises OutputError if the file cannot be written."""
    if form == OutputFormat.TABLE:
        _show_table(report, output, top)
        return
    content = _content(report, form.value, top)
    if form in _ROWS_ALONE:  # these forms have no place for a warning
        for warning in report.warnings:
            if _LEFT_OUT in warning:
                print(f"stepscope: {warning}", file=sys.stderr)
    put(content, output)


def put(content: bytes, output: Path | None) -> None:
    """Writes what a command made to its --output, or to stdout where there is none."""
    if output is not None:
        write_file(output, content)
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _content(report: Report, form: str, top: int | None) -> bytes:
    if form in SHEETS:
        return SHEETS[form](report, TABLE_ROWS if top is None else top).encode()
    return EXPORTS[form](report if top is None else report.head(top))


def _show_table(report: Report, output: Path | None, top: int | None) -> None:
    from stepscope.report.styled import join_lines, print_lines, screen_width
    from stepscope.report.terminal import report_lines

    if output is not None:
        write_file(output, join_lines(report_lines(report, WIDE, top)).encode())
    else:
        print_lines(report_lines(report, screen_width() if sys.stdout.isatty() else WIDE, top))


def show_lines(
    report: Report, output: Path | None = None, chosen: str = "", why: bool = False, recorded_ns: int | None = None
) -> None:
    """Writes the ten lines of a summary; a terminal wraps long ones under their text.

    Args:
        chosen: the session that was read, which the line on what was recorded names.
        why: also write what stands behind the verdict and the first advice.
        recorded_ns: when it was recorded, in ns since the epoch; None if unknown.
    """
    said = f"; from {chosen}" if chosen else ""
    found = [*report.summary_lines(), *(_list_evidence(report, recorded_ns) if why else ())]
    lines = [clean(line + said * line.startswith(_RECORDED)) for line in found]
    if output is not None:
        write_file(output, "".join(f"{line}\n" for line in lines).encode())
        return
    if not sys.stdout.isatty():
        print("\n".join(lines))
        return
    from stepscope.report.styled import has_colours, print_lines, screen_width
    from stepscope.report.terminal import wrap_line

    width = screen_width()
    shown: list[Line] = []
    for line in lines:
        shown += wrap_line(line, width, _style_of(line))
        if line.startswith(_SHARES) and has_colours(sys.stdout):
            shown.append(_bar_of_shares(report, width))
    print_lines(shown)


def _bar_of_shares(report: Report, width: int) -> Line:
    """The line above as the page draws it: the causes of the step's time, or what filled the memory."""
    from stepscope.report.palette import share_colour
    from stepscope.report.styled import bar_of

    said = report.to_dict()
    filled = [(row["held_bytes"], share_colour(row["kind"])) for row in said.get("filled") or ()]
    causes = [(row["ms"], share_colour(row["cause"])) for row in said.get("account") or ()]
    label = _SHARES[0].ljust(11)
    return ((" " * len(label), ""), *bar_of(filled or causes, min(width - len(label), _WIDEST_BAR)))


def _style_of(line: str) -> str:
    """How a terminal shows a line of a summary: the verdict before all."""
    return "bold" if line.startswith(_VERDICT) else "yellow" if line.startswith("! ") else ""


_MOST_PURPOSES = 5
_HOW_KNOWN = ("recorded", "inferred", "not_recorded")


def _known_line(account: Sequence[Mapping[str, Any]]) -> str:
    """How the causes of the step are known, in percent of it; empty where nothing says so."""
    rows = [row for row in account if row.get("known")]
    shares = {name: sum(row["percent"] * row["known"][name] / 100 for row in rows) for name in _HOW_KNOWN}
    said = [f"{share:.0f} % {name.replace('_', ' ')}" for name, share in shares.items() if share >= 1]
    return f"known      {', '.join(said)}" if said else ""


def _list_evidence(report: Report, recorded_ns: int | None) -> Iterator[str]:
    from stepscope.program_source import find_source

    whole = report.to_dict()
    yield from (f"because    {each}" for each in whole["verdict_evidence"] if each not in whole["verdict_text"])
    if known := _known_line(whole["account"]):
        yield known
    said = {clause for sentence in whole["verdict_evidence"] for clause in sentence.split("; ")}
    for first in whole["advice"][:1]:
        if more := [clause for clause in first["evidence"].split("; ") if clause not in said]:
            yield f"advised    {'; '.join(more)}"
        yield f"predicted  {first['reasoning']}"
        source = find_source(first["culprit"], recorded_ns=recorded_ns)
        yield from (f"source     {line}" for line in (source.numbered() if source else ()))
    purposes = [each for each in whole.get("purpose", ()) if each["percent"] >= 1]
    if any(each["purpose"] != "unknown" for each in purposes):
        shares = [f"{each['purpose'].replace('_', ' ')} {each['percent']:.0f} %" for each in purposes]
        yield f"computes   {', '.join(shares[:_MOST_PURPOSES])} of all computing"
    evidence = " ".join(item["evidence"] for item in whole["advice"][:1])
    for each in (each for each in whole.get("excess", ()) if each["fact"] not in evidence):
        yield f"needless   {each['ms']:.2f} ms per step: it {each['fact']}; needed after all if {each['against']}"


@contextmanager
def working() -> Iterator[Callable[[str], None]]:
    """Shows progress on stderr once the work takes longer than a second; nothing if stderr is not a terminal.

    While a file is read, the line says how much of it is decoded, and how long the rest will take.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from stepscope.formats.progress import watched_by

    status = _Status()
    timer = threading.Timer(PATIENCE_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        with watched_by(status):
            yield status.update
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class _Status:
    """A progress line on stderr.  The library that draws it is imported when the line is first shown.

    Args:
        clock: the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._text = "working"
        self._drawn: Any = None
        self._clock = clock
        self._started, self._nbytes, self._decoded = 0.0, 0, 0

    def start(self) -> None:
        """Shows the line."""
        from rich.console import Console
        from rich.text import Text

        self._drawn = Console(stderr=True).status(Text(self.line()))
        self._drawn.start()

    def update(self, text: str) -> None:
        """Changes the text; the work that it names has just started."""
        self._text, self._nbytes = text, 0
        self._draw()

    def start_file(self, nbytes: int | None) -> None:
        """A file of that size is read; its share counts from here."""
        self._started, self._nbytes, self._decoded = self._clock(), nbytes or 0, 0

    def advance(self, nbytes: int) -> None:
        """So many more bytes of the file are decoded."""
        before = self._percent()
        self._decoded = min(self._decoded + nbytes, self._nbytes)
        if self._percent() != before:
            self._draw()

    def line(self) -> str:
        """The text, with the share of the file that is decoded and the time that the rest of it will take."""
        if not self._nbytes or not self._decoded:
            return self._text
        left = (self._clock() - self._started) * (self._nbytes - self._decoded) / self._decoded
        return f"{self._text}: {self._percent()} %" + (f", {_duration_text(left)} left" if left else "")

    def _percent(self) -> int:
        return 100 * self._decoded // self._nbytes if self._nbytes else 0

    def _draw(self) -> None:
        if self._drawn is not None:
            from rich.text import Text

            self._drawn.update(Text(self.line()))  # as Text: a run name such as `exp[lr=0.1]` is not markup

    def stop(self) -> None:
        """Removes the line."""
        if self._drawn is not None:
            self._drawn.stop()


def _duration_text(seconds: float) -> str:
    """A rough duration.

    >>> _duration_text(0.2), _duration_text(7.4), _duration_text(150)
    ('1 s', '8 s', '3 min')
    """
    return f"{max(1, math.ceil(seconds))} s" if seconds <= 99 else f"{math.ceil(seconds / 60)} min"
