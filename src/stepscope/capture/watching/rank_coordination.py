"""Lets the ranks of a job keep the same window, through small files in the logdir.

    LOGDIR/plugins/.stepscope/watch/requests/<job>-<number>.json    what to keep, and under which name
    LOGDIR/plugins/.stepscope/watch/requests/<job>-<number>.<rank>  this rank has kept it
    LOGDIR/plugins/.stepscope/watch/ranks/<job>-<rank>.json         the step of a rank, written every few seconds

The first rank that notices something writes the request; whoever else notices it meanwhile joins that one.  A request
for `any` job is written by `stepscope trigger LOGDIR`, or by anyone else who can write to the folder: it holds no
command and no path, only a reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepscope.capture import files
from stepscope.capture.job import Worker
from stepscope.capture.publish import claim_name, draft_in, replace_text
from stepscope.capture.watching.triggers import Trigger
from stepscope.records import dataclass

ANY_JOB = "any"
_LONGEST_REASON, _LONGEST_FILE = 500, 100_000
_FORGOTTEN_S = 3600.0
_FRESH_S = 60.0
_SETTLED_NS = 2_000_000_000
_FORM = re.compile(r"(?P<job>[0-9a-f]{16}|any)-(?P<number>\d{1,9})\.json")


@dataclass(frozen=True)
class Request:
    """What all ranks of a job are to keep.

    Attributes:
        id: unique in the logdir.
        job: the hash of the job; `any` for every watch of the logdir.
        trigger: why.
        reason: in a sentence.
        rank: of the one that asks; None if it is no rank.
        unix_ns: when.
        run: the name of the session for what came before.
        window: the name of the session for the framework's window; empty for none.
        first_step: the first step of that window.
    """

    id: str
    job: str
    trigger: Trigger
    reason: str
    rank: int | None
    unix_ns: int
    run: str
    window: str = ""
    first_step: int = 0


def job_hash(worker: Worker) -> str:
    """What identifies a job in file names."""
    text = worker.job or f"{files.host_name()} {os.getpid()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_request(logdir: Path, reason: str) -> Request:
    """Asks every watch of a logdir to keep a capture.

    Raises:
        OSError: nothing can be written there.
    """
    requests = _requests(logdir)
    requests.mkdir(parents=True, exist_ok=True)
    name, reason = _next_id(requests, ANY_JOB), reason[:_LONGEST_REASON]
    return _publish(requests, Request(name, ANY_JOB, Trigger.REQUESTED, reason, None, time.time_ns(), files.run_name()))


def has_running_watch(logdir: Path) -> bool:
    """Whether a watch has written its ring to a local logdir in the last minute; it does so every second."""
    since_s = time.time() - _FRESH_S
    for path in logdir.glob(f"plugins/profile/*/*.{files.PARTIAL}"):
        with suppress(OSError):
            if path.stat().st_mtime > since_s:
                return True
    return False


def _requests(logdir: Path) -> Path:
    return logdir / "plugins" / ".stepscope" / "watch" / "requests"


def _publish(requests: Path, request: Request) -> Request:
    """Writes a request; returns that of another rank if it has taken the number a moment earlier."""
    final = requests / f"{request.id}.json"
    try:
        with draft_in(requests) as draft:
            draft.write_text(json.dumps({name: getattr(request, name) for name in _FIELDS}))
            claim_name(draft, final)
    except FileExistsError:
        other = _read_request(final)
        if other is None:
            raise
        return other
    return request


_FIELDS = ("id", "job", "trigger", "reason", "rank", "unix_ns", "run", "window", "first_step")


def _next_id(requests: Path, job: str) -> str:
    return f"{job}-{_next_number(requests, job):06d}"


def _next_number(requests: Path, job: str) -> int:
    found = (_FORM.fullmatch(path.name) for path in requests.iterdir())
    numbers = [int(each["number"]) for each in found if each and each["job"] == job]
    return max(numbers, default=-1) + 1


def _read_request(path: Path) -> Request | None:
    """The request in a file; None if it cannot be read or is invalid."""
    try:
        with path.open() as file:
            given: Any = json.loads(file.read(_LONGEST_FILE))
        first = int(given["first_step"])
        return Request(
            path.stem,
            str(given["job"]),
            Trigger(given["trigger"]),
            str(given["reason"])[:_LONGEST_REASON],
            None if given["rank"] is None else int(given["rank"]),
            int(given["unix_ns"]),
            files.safe_name(str(given["run"])),
            files.safe_name(str(given["window"])) if given["window"] else "",
            first,
        )
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return None


class Ranks:
    """This rank among the watches of its job.  For one thread at a time.

    Args:
        logdir: the logdir on this machine.
        worker: this process.
        now_ns: the time since 1970.
    """

    def __init__(self, logdir: Path, worker: Worker, now_ns: int) -> None:
        self._requests = _requests(logdir)
        self._ranks = self._requests.parent / "ranks"
        self._rank = worker.rank
        self.job = job_hash(worker)
        self._is_alone = worker.rank is None or not worker.job
        self._start_ns = now_ns
        self._seen: set[str] = set()
        self._changed_ns = -1

    @property
    def is_alone(self) -> bool:
        """Whether the job has no other ranks."""
        return self._is_alone

    @property
    def leads(self) -> bool:
        """Whether this rank plans the regular windows."""
        return self._is_alone or self._rank == 0

    def prepare(self) -> None:
        """Makes the folders, and removes what old jobs left.  Raises OSError."""
        self._requests.mkdir(parents=True, exist_ok=True)
        self._ranks.mkdir(exist_ok=True)
        for folder in (self._requests, self._ranks):
            for path in folder.iterdir():
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > _FORGOTTEN_S:
                        path.unlink()

    def ask(self, trigger: Trigger, reason: str, run: str, window: str = "", first_step: int = 0) -> Request:
        """Asks the other ranks to keep the same; returns the request, which may be that of another rank.

        Raises:
            OSError: it cannot be written.
        """
        self._requests.mkdir(parents=True, exist_ok=True)
        name, reason = _next_id(self._requests, self.job), reason[:_LONGEST_REASON]
        asked = Request(name, self.job, trigger, reason, self._rank, time.time_ns(), run, window, first_step)
        request = _publish(self._requests, asked)
        self._seen.add(request.id)
        return request

    def poll(self) -> list[Request]:
        """The requests of others since the last call."""
        try:
            changed_ns = self._requests.stat().st_mtime_ns
        except OSError:
            return []
        if changed_ns == self._changed_ns:
            return []
        # A second file of the same moment leaves the folder's time as it is, so a fresh time is not relied on.
        self._changed_ns = changed_ns if time.time_ns() - changed_ns > _SETTLED_NS else -1
        return [request for name in self._unseen() if (request := self._read(name)) is not None]

    def _unseen(self) -> list[str]:
        with suppress(OSError):
            names = sorted(path.name for path in self._requests.iterdir())
            return [name for name in names if name.removesuffix(".json") not in self._seen]
        return []

    def _read(self, name: str) -> Request | None:
        found = _FORM.fullmatch(name)
        if found is None or found["job"] not in (self.job, ANY_JOB):
            return None
        request = _read_request(self._requests / name)
        self._seen.add(name.removesuffix(".json"))
        return request if request is not None and request.unix_ns >= self._start_ns else None

    def answer(self, request: Request) -> None:
        """This rank has kept what was asked for.  An error is ignored: the one that asks reports the silence."""
        with suppress(OSError):
            (self._requests / f"{request.id}.{self._rank or 0}").touch()

    def beat(self, step: int, unix_s: float) -> None:
        """Writes where this rank is.  An error is ignored."""
        if self._is_alone:
            return
        with suppress(OSError):
            path = self._ranks / f"{self.job}-{self._rank}.json"
            replace_text(path, json.dumps({"step": step, "unix_s": unix_s}))

    def steps_of_others(self) -> dict[int, tuple[int, float]]:
        """The last known step of each other rank, and when it was written, in seconds since 1970."""
        found: dict[int, tuple[int, float]] = {}
        with suppress(OSError):
            for path in self._ranks.glob("*.json"):
                job, _, rest = path.stem.rpartition("-")
                if job == self.job and rest.isdecimal() and int(rest) != self._rank:
                    with suppress(OSError, ValueError, KeyError, TypeError):
                        content: Any = json.loads(path.read_text())
                        found[int(rest)] = int(content["step"]), float(content["unix_s"])
        return found

    def silent_ranks(self, request: Request) -> list[int]:
        """The ranks that were there and have not kept what was asked for."""
        return [
            rank
            for rank in sorted(self.steps_of_others())
            if rank != request.rank and not (self._requests / f"{request.id}.{rank}").exists()
        ]
