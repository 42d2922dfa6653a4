"""Writes the time series of a run: one short row every few seconds, for days; see `stepscope.formats.series`.

A killed job loses no row that was written.  Packing is done by another process, because the libraries for Parquet are
large.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from stepscope.capture import other_process
from stepscope.capture.report import report
from stepscope.capture.scratch import ScratchFolder
from stepscope.capture.watching.steps import QuickStep, StepRecord
from stepscope.capture.watching.triggers import Mark
from stepscope.errors import InputError
from stepscope.formats import series, store
from stepscope.formats.series import marks_path, tail_path

_PACK_ROWS = 720  # two hours of rows of ten seconds
_PATIENCE_S = 120.0
_COPY_S = 60.0
_HIGH = 0.9

Row = dict[str, float | int | None]


class Bucket:
    """Collects what happens during one row."""

    def __init__(self) -> None:
        self._quick: list[QuickStep] = []
        self._full: list[StepRecord] = []
        self._counters: dict[str, list[float]] = {}
        self.values: dict[str, float] = {}

    def add(self, quick: list[QuickStep], full: list[StepRecord]) -> None:
        """Steps that have ended, as `StepFollower.take` returns them."""
        self._quick += quick
        self._full += full

    def note_counters(self, counters: Mapping[str, list[float]]) -> None:
        """Values of the system's counters."""
        for name, values in counters.items():
            self._counters.setdefault(name, []).extend(values)

    def take(self, unix_s: float, extra: Mapping[str, float | int | None]) -> Row:
        """The row, and a new bucket.

        Args:
            unix_s: its end.
            extra: further values.
        """
        quick, self._quick = self._quick, []
        full, self._full = self._full, []
        counters, self._counters = self._counters, {}
        values, self.values = self.values, {}
        row: Row = {
            "unix_s": round(unix_s, 3),
            "steps": len(quick) + len(full),
            **_summarize_steps(quick, full),
            **extra,
        }
        row |= {_column(name): round(statistics.fmean(taken), 4) for name, taken in counters.items() if taken}
        return row | {f"value_{name}": value for name, value in values.items()}


def _column(counter: str) -> str:
    """The name of a counter's column: `CPU process %` becomes `cpu_process_percent`."""
    name = counter.lower().replace("%", "percent").replace("/", "_per_")
    return "_".join("".join(letter if letter.isalnum() else " " for letter in name).split())


def _summarize_steps(quick: list[QuickStep], full: list[StepRecord]) -> Row:
    ends = [(end, number) for number, _, end in quick[-1:]] + [(step.end.at_ns, step.number) for step in full[-1:]]
    last: Row = {"last_step": max(ends)[1] if ends else None}
    plain = [step.length_ns for step in full if not step.was_profiled]
    lengths_ms = [length / 1e6 for length in sorted([*plain, *(end - start for _, start, end in quick)])]
    if not lengths_ms:
        return last
    return last | {
        "step_ms_median": round(statistics.median(lengths_ms), 4),
        "step_ms_mean": round(statistics.fmean(lengths_ms), 4),
        "step_ms_p90": round(lengths_ms[min(len(lengths_ms) - 1, int(_HIGH * len(lengths_ms)))], 4),
        "step_ms_max": round(lengths_ms[-1], 4),
        "slow_steps": sum(step.is_slow for step in full),
        "contended_steps": sum(step.is_contended for step in full),
        **_share_of_steps(sum(end - start for _, start, end in quick), full),
    }


def _share_of_steps(quick_ns: int, full: list[StepRecord]) -> Row:
    """What the thread did in the steps whose counters were read, in percent of them; the collector in all steps, since
    its time is known from one reading to the next."""
    read_ns = sum(step.length_ns for step in full)
    collected_ns = sum(step.end.collector_ns - step.start.collector_ns for step in full)
    used = {
        "thread_cpu_percent": (sum(step.end.cpu_ns - step.start.cpu_ns for step in full), read_ns),
        "thread_queued_percent": (sum(step.end.queued_ns - step.start.queued_ns for step in full), read_ns),
        "collector_percent": (collected_ns, read_ns + quick_ns),
    }
    return {name: round(100 * ns / of_ns, 3) if of_ns and full else None for name, (ns, of_ns) in used.items()}


class SeriesFile:
    """The files of one worker's time series.  For one thread at a time.

    Args:
        folder: of the run.
        host: the worker's name.

    Raises:
        OSError: the folder cannot be made.
    """

    def __init__(self, folder: Path, host: str) -> None:
        self.folder = folder
        self._host = host
        self._rows = 0
        self._complained = False
        folder.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """The watch has ended."""

    def add(self, row: Row) -> None:
        """Appends a row.  What cannot be written is lost, and reported once."""
        self._append(tail_path(self.folder, self._host), row)
        self._rows += 1

    def add_mark(self, mark: Mark) -> None:
        """Appends a trigger."""
        self._append(marks_path(self.folder, self._host), mark.row())

    def is_due(self) -> bool:
        """Whether there are enough rows to pack."""
        return self._rows >= _PACK_ROWS

    def tend(self) -> None:
        """Does what is due."""
        self.pack()

    def pack(self) -> None:
        """Packs the rows in another process, and waits for that."""
        if not self._rows:
            return
        self._rows = 0
        with suppress(OSError):  # the folder is gone
            tail_path(self.folder, self._host).rename(self.folder / f"{self._host}.tail-{time.time_ns()}.jsonl")
            _pack_elsewhere(self.folder, self._host)

    def _append(self, path: Path, row: Mapping[str, object]) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            if not self._complained:
                report(error, "writing the time series")
            self._complained = True
        else:
            self._complained = False


class RemoteSeries(SeriesFile):
    """The files of one worker's time series in a remote store, which cannot append: they grow in a local folder, and
    are copied once a minute if they have changed.  A killed job loses the rows since then.

    Args:
        address: of the run's folder.
        host: the worker's name.

    Raises:
        OSError: the local folder cannot be made.
    """

    def __init__(self, address: str, host: str) -> None:
        self._scratch = ScratchFolder()
        super().__init__(Path(self._scratch.path) / "series", host)
        self._address = address
        self._is_away = False
        self._copied: dict[str, tuple[int, int]] = {}  # name -> size and time of what was copied
        self._next_copy = time.monotonic() + _COPY_S

    def is_due(self) -> bool:
        """Whether there are enough rows to pack, or it is time to copy."""
        return super().is_due() or time.monotonic() >= self._next_copy

    def tend(self) -> None:
        """Does what is due."""
        if super().is_due():
            super().pack()
        self._copy()

    def pack(self) -> None:
        """Packs the rows in another process, and copies what has changed."""
        super().pack()
        self._copy()

    def close(self) -> None:
        """Removes the local folder."""
        self._scratch.remove()

    def _copy(self) -> None:
        self._next_copy = time.monotonic() + _COPY_S
        try:
            self._copy_changes()
        except (OSError, InputError) as error:
            if not self._is_away:
                report(error, "copying the time series to the logdir")
            self._is_away = True
        else:
            self._is_away = False

    def _copy_changes(self) -> None:
        found = {path.name: path for path in self.folder.iterdir() if not path.name.startswith(".")}
        for name, path in found.items():
            facts = path.stat()
            state = (facts.st_size, facts.st_mtime_ns)
            if self._copied.get(name) != state:
                store.write_bytes(store.join(self._address, name), path.read_bytes())
                self._copied[name] = state
        for name in self._copied.keys() - found.keys():  # rows that were packed meanwhile
            store.remove(store.join(self._address, name))
            del self._copied[name]


def _pack_elsewhere(folder: Path, host: str) -> None:
    with suppress(other_process.UnableError, other_process.FailedError):  # the rows stay as text, which is read as well
        other_process.run(__name__, [str(folder), host], _PATIENCE_S)


def main(arguments: Sequence[str]) -> None:
    """Packs the rows of one host.  Another process runs this; see `stepscope.capture.other_process`.

    Args:
        arguments: the folder and the host.
    """
    folder, host = arguments
    pack_rows(Path(folder), host)


def pack_rows(folder: Path, host: str) -> None:
    """Adds the rows of `HOST.tail-N.jsonl` to `HOST.parquet`, and removes those files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tails, target = series.waiting_tails(folder, host), series.packed_path(folder, host)
    parts = [pq.read_table(target)] if target.exists() else []
    known = set(parts[0].column(series.TIME).to_pylist()) if parts else set()
    fresh = series.rows_to_table([row for tail in tails for row in series.read_lines(tail)], known)
    if len(fresh):
        draft = target.with_name(f".{target.name}.draft")
        pq.write_table(pa.concat_tables([*parts, fresh], promote_options="default"), draft, compression="zstd")
        draft.replace(target)
    for tail in tails:
        tail.unlink()
