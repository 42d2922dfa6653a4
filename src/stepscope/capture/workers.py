"""Records what worker processes do: of a DataLoader, of Grain, of `multiprocessing` and of `concurrent.futures`.

Workers usually start long before a capture, so each has a small thread that looks ten times a second whether the
process that started it captures: a file says so, in a folder that both know.  While it does, the worker samples its own
stacks and notes how long each batch or task takes; when it ends, the capture collects what the workers wrote.  All of
them read the same monotonic clock as the capture, which is that of the machine.

    main process    ---start writes FOLDER/now---------------stop removes it---collects FOLDER/7/*
    worker          ....looks....|records into FOLDER/7/1234.part......|renames it to 1234.done
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.capture import handles
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import Recurring
from stepscope.capture.patches import ImportHook
from stepscope.capture.publish import replace_text
from stepscope.capture.report import NeverRaise, report
from stepscope.capture.startup.sitecustomize import STARTED
from stepscope.capture.tracers.base import Clock, Probe, make_chunk
from stepscope.capture.tracers.stack_samples import StackSampler
from stepscope.formats.spool import layout
from stepscope.formats.spool.layout import WORKERS_PLANE, Chunk
from stepscope.private_folders import make_private

FOLDER_PREFIX = "stepscope-workers-"
PREPARE, SEND = "prepare", "send"
_LOOK_S, _FLUSH_S = 0.1, 0.25  # a look takes 0.2 ms of a busy core
_NOW = "now"
_JOIN = "*stepscope.capture.workers:join"

# What a worker runs -> what its processes are called, and where among the arguments its two queues are.
_LOOPS: dict[tuple[str, str], tuple[str, int, int]] = {
    ("torch.utils.data._utils.worker", "_worker_loop"): ("DataLoader worker", 2, 3),
    ("multiprocessing.pool", "worker"): ("pool worker", 0, 1),
    ("concurrent.futures.process", "_process_worker"): ("executor worker", 0, 1),
}
# A Grain worker takes no tasks: it makes one batch after another, and puts each into this argument.
_GRAIN = ("grain._src.python.dataset.transformations.process_prefetch", "_put_dataset_elements_in_buffer")
_GRAIN_BUFFER = "buffer"


def install() -> None:
    """Lets all processes that `multiprocessing` starts from now on record themselves while this one captures.

    That is done when the program imports `multiprocessing`, which takes the module that is `__main__` then for the
    program's.
    """
    if shared_folder() is None:
        name = f"{FOLDER_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        share_folder(str(Path(tempfile.gettempdir()) / name))
    if not STARTED.text:
        STARTED.follow(f"{_JOIN}\n{Shared.folder}")
    if not Shared.is_installed:
        Shared.is_installed = True
        ImportHook({"multiprocessing.process": _watch_processes}).install()


def join(folder: str) -> None:
    """In a process that `multiprocessing` of a program that captures itself has started: it records itself, too."""
    share_folder(folder)
    install()


def _watch_processes(module: Any) -> None:
    bootstrap: Any = getattr(module.BaseProcess, "_bootstrap", None)
    if bootstrap is None or getattr(bootstrap, "records_workers", False):
        return

    @functools.wraps(bootstrap)
    def bootstrap_and_record(self: Any, *args: Any, **kwargs: Any) -> Any:
        worker = WorkerProcess(self)
        worker.start()
        try:
            return bootstrap(self, *args, **kwargs)
        finally:
            worker.finish()

    bootstrap_and_record.records_workers = True  # type: ignore[attr-defined]
    module.BaseProcess._bootstrap = bootstrap_and_record


def install_early() -> None:
    """Lets workers that start before the first capture record themselves, if the program may start any."""
    if "multiprocessing.process" in sys.modules:
        install()


class Shared:
    """What this process knows of the program that it belongs to.

    Attributes:
        folder: of the program's processes, as text; empty if there is none yet.
        is_installed: whether processes that `multiprocessing` starts record themselves.
    """

    folder = ""
    is_installed = False


def shared_folder() -> Path | None:
    """The folder of this program's processes; None if `install` was never called."""
    return Path(Shared.folder) if Shared.folder else None


def share_folder(name: str) -> None:
    """Uses the folder of the program that this process belongs to."""
    Shared.folder = name


def write_now(folder: Path, text: str) -> None:
    """Asks the workers to record: a capture has started."""
    make_private(folder)
    replace_text(folder / _NOW, text)


def clear_now(folder: Path) -> None:
    """Asks them to stop."""
    with suppress(OSError):
        (folder / _NOW).unlink()


def remove_folder(folder: Path) -> None:
    """Removes the folder, if nobody records into it."""
    if not (folder / _NOW).exists():
        shutil.rmtree(folder, ignore_errors=True)


class WorkerProcess:
    """A worker process: looks whether to record, and records.

    Args:
        process: the object of `multiprocessing` that describes this process.
    """

    def __init__(self, process: Any) -> None:
        self._folder = shared_folder()
        self._name = str(getattr(process, "name", "worker"))
        self._spans: list[tuple[str, int, int]] = []
        self._recording: WorkerRecording | None = None
        self._ended = False
        self._lock = threading.Lock()
        self._looking = Recurring(self._run, _LOOK_S, "stepscope-worker")
        with NeverRaise("watching a worker", strict=False):
            self._time_queues(process)

    def _time_queues(self, process: Any) -> None:
        """Notes when the worker takes a batch's indices or a task, and when it has the result."""
        target = getattr(process, "_target", None)
        place = (getattr(target, "__module__", ""), getattr(target, "__name__", ""))
        if place == _GRAIN:
            self._time_grain_buffer(process)
        found = _LOOPS.get(place)
        if found is None:
            return
        what, source, sink = found
        self._name = f"{what} {self._name.rpartition('-')[2]}"
        args = list(process._args)
        took: list[int] = [0]

        def note_task(begin: int, end: int, task: object) -> None:
            took[0] = end if task is not None else 0  # None ends a worker, which an executor's answers

        args[source] = Timed(args[source], "get", note_task)
        args[sink] = Timed(args[sink], "put", lambda begin, end, _: self._note_result(took[0], begin, end))
        process._args = tuple(args)

    def _note_result(self, took: int, begin: int, end: int) -> None:
        if self._recording is not None and took:
            self._spans += [(PREPARE, took, begin), (SEND, begin, end)]

    def _time_grain_buffer(self, process: Any) -> None:
        """Notes how long each batch takes: from the end of putting one into the buffer until the next is put.

        What putting takes is left out: it is mainly waiting, since a full buffer lets the worker wait.
        """
        self._name = "Grain worker"
        since = [time.perf_counter_ns()]

        def note(begin: int, end: int, _: object) -> None:
            if self._recording is not None:
                self._spans.append((PREPARE, since[0], begin))
            since[0] = end

        process._kwargs = {
            **process._kwargs, _GRAIN_BUFFER: Timed(process._kwargs[_GRAIN_BUFFER], "put", note)
        }  # fmt: skip

    def start(self) -> None:
        """Starts looking."""
        if self._folder is None:
            return
        with NeverRaise("watching a worker", strict=False):
            self._looking.start()

    def finish(self) -> None:
        """The process ends: what it has recorded is written."""
        self._looking.stop()
        with NeverRaise("ending a worker", strict=False), self._lock:
            self._ended = True
            self._stop()

    def _run(self) -> float | None:
        try:
            with self._lock:
                if not self._ended:
                    self._look()
            return _LOOK_S
        except Exception as error:
            report(error, "recording a worker")
            return None

    def _look(self) -> None:
        assert self._folder is not None
        try:
            wanted = (self._folder / _NOW).read_text()
        except OSError:
            wanted = ""
        if self._recording is not None and self._recording.wanted != wanted:
            self._stop()
        if wanted and self._recording is None:
            self._spans.clear()
            self._recording = WorkerRecording(self._folder, wanted)
        if self._recording is not None:
            self._recording.flush_if_due(self._take)

    def _stop(self) -> None:
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.finish(self._take)

    def _take(self, sampled: list[Chunk]) -> list[Chunk]:
        """What was recorded since the last call, under the name of this worker."""
        name, pid = f"{self._name} ({os.getpid()})", os.getpid()
        spans, self._spans = self._spans, []
        chunks = [replace(chunk, line=f"{name}: {chunk.line}") for chunk in sampled]
        if spans:
            chunks.append(make_chunk(WORKERS_PLANE, name, pid, "INPUT_CALLBACK", spans))
        return chunks


Take = Callable[[list[Chunk]], list[Chunk]]


class WorkerRecording:
    """What one worker records for one capture.

    Args:
        folder: of the program's processes.
        wanted: what the capture asks for: its number, and how many samples a second.
    """

    def __init__(self, folder: Path, wanted: str) -> None:
        self.wanted = wanted
        number, _, rate = wanted.partition(" ")
        place = folder / number
        place.mkdir(exist_ok=True)
        self._path = place / f"{os.getpid()}.part"
        self._file = handles.open_file(self._path, "wb")
        self._file.write(layout.MAGIC)
        self._sampler = StackSampler(reads_usage=False)
        self._sampler.start(ProfilerOptions(stack_samples_hz=int(rate or 0)), time.perf_counter_ns)
        self._flushed_s = time.monotonic()

    def flush_if_due(self, take: Take) -> None:
        """Writes what was recorded, four times a second: a worker may be killed at any moment."""
        if time.monotonic() - self._flushed_s >= _FLUSH_S:
            self._flush(take)

    def _flush(self, take: Take) -> None:
        self._flushed_s = time.monotonic()
        self._sampler.end_open()  # what a worker does for long would be lost if it is killed
        for chunk in take(self._sampler.drain()):
            self._file.write(layout.chunk(chunk))

    def finish(self, take: Take) -> None:
        """Ends the recording, and says that its file is complete."""
        self._sampler.stop()
        with suppress(OSError):  # the capture may have given up waiting, and removed the folder
            self._flush(take)
            self._path.rename(self._path.with_suffix(".done"))
        self._file.close()


class Timed:
    """A queue one method of which reports when it was called, when it returned, and what; all else is the queue's."""

    def __init__(self, queue: Any, method: str, note: Callable[[int, int, object], object]) -> None:
        self._queue = queue
        call = getattr(queue, method)

        def call_and_note(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter_ns()
            result = call(*args, **kwargs)
            note(begin, time.perf_counter_ns(), result)
            return result

        setattr(self, method, call_and_note)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


# ---- in the process that captures ------------------------------------------------------------------------------------

_PATIENCE_S, _POLL_S = 0.5, 0.01  # a worker looks every 0.1 s
_MOST_BYTES = 1 << 28  # of one worker's file
_number = itertools.count(1).__next__


class WorkersTracer(Probe):
    """Asks the workers to record, and takes over what they wrote once the capture has ended."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._place: Path | None = None
        self._since_ns = 0
        self._ended = False

    def start(self, options: ProfilerOptions, clock: Clock) -> None:
        """Asks the workers to record."""
        install()
        self._since_ns = clock()
        self._folder = shared_folder()
        if self._folder is not None:
            name = f"{os.getpid()}-{_number()}"
            self._place = self._folder / name
            write_now(self._folder, f"{name} {options.stack_samples_hz}")

    def stop(self) -> None:
        """Asks them to stop; they need a moment to write."""
        if self._folder is not None:
            clear_now(self._folder)
        self._ended = True

    def drain(self) -> list[Chunk]:
        """What the workers recorded, once the capture has ended."""
        place, self._place = (self._place, None) if self._ended else (None, self._place)
        if place is None or self._folder is None:
            return []
        until = time.monotonic() + _PATIENCE_S
        while any(place.glob("*.part")) and time.monotonic() < until:
            time.sleep(_POLL_S)
        chunks = [
            _drop_earlier(chunk, self._since_ns) for path in sorted(place.glob("*.*")) for chunk in _read_chunks(path)
        ]
        remove_folder(self._folder)
        return chunks


def _drop_earlier(chunk: Chunk, since_ns: int) -> Chunk:
    """The chunk without events that started before the capture, such as the batch that a worker was at."""
    kept = [row for row, begin in enumerate(chunk.begin) if begin >= since_ns]
    if len(kept) == len(chunk.begin):
        return chunk
    name, begin, end = (
        array(each.typecode, [each[row] for row in kept]) for each in (chunk.name, chunk.begin, chunk.end)
    )
    return replace(chunk, name=name, begin=begin, end=end)


def _read_chunks(path: Path) -> Iterator[Chunk]:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES)
    for head, body in layout.records(data):
        if head.get("is") == "chunk":
            yield _make_chunk(head, body)


def _make_chunk(head: dict[str, Any], body: memoryview) -> Chunk:
    """The chunk of a record that a worker of this machine wrote."""
    count = len(body) // layout.EVENT_BYTES
    name, begin, end = array("i"), array("q"), array("q")
    name.frombytes(body[: 4 * count])
    begin.frombytes(body[4 * count : 12 * count])
    end.frombytes(body[12 * count :])
    return Chunk(head["plane"], head["line"], head["id"], head["kind"], head["names"], name, begin, end)
