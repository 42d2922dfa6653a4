"""Where a capture's files go, and how they get there.

    LOGDIR/plugins/profile/RUN/HOST.xplane.pb            the profile
    LOGDIR/plugins/profile/RUN/HOST.xplane.pb.partial    while the capture runs, what Stepscope's own tracers flushed

RUN is the local time at which the capture started, the same for all workers of a job.  `stepscope.capture.job` explains
this, and when HOST is followed by a rank.  A final name appears only when its content is complete and on the disk, and
it never replaces a file: if two workers want one name, the second gets HOST_<pid>, then HOST_<pid>_<n>.  The name is
claimed when the capture starts, by making the partial file.  If the job is killed, that file stays; `stepscope.load`
and every command open it, with a warning that says what is missing.

A logdir on another machine (gs://, s3://, memory://, or anything else that fsspec supports) is written when the capture
has ended.  Until then its files are in a local temporary folder, which is kept if the upload fails.

Where a capture was asked for and none was made, a note in the logdir says why, so that `stepscope doctor`, the commands
and the page can say it after the job has ended.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stepscope.capture import handles, job
from stepscope.capture.own_threads import register_at_fork
from stepscope.capture.publish import claim_name, draft_in
from stepscope.capture.report import report, warn
from stepscope.capture.tracers.base import Artifact
from stepscope.errors import CaptureError, InputError, StepscopeError
from stepscope.formats.not_recorded import ENDING
from stepscope.formats.store import is_remote, plain
from stepscope.records import dataclass

PARTIAL = "xplane.pb.partial"
_CHOOSE = "choose a logdir that can be written"
_TRIED_BYTES = 4096  # a full disk takes empty files still


class RunNames:
    """The names of runs that this process has given.  Any thread may ask.

    Attributes:
        last: the latest second that a run is named after, since 1970; 0 before the first run.
        count: how many runs are named after it.
    """

    def __init__(self) -> None:
        self.last = self.count = 0
        self._lock = threading.Lock()

    def claim(self, second: int) -> str:
        """A name that this process has not given: the local time, followed by a number if that is not the first run of
        its second, so that a name never lies in the future.  A clock that is set back does not repeat a name."""
        with self._lock:
            self.count = self.count + 1 if second <= self.last else 1
            self.last = max(second, self.last)
            name = time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(self.last))
            return name if self.count == 1 else f"{name}_{self.count:03d}"

    def forget_parent(self) -> None:
        """After a fork: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()


RUN_NAMES = RunNames()

register_at_fork(after_in_child=RUN_NAMES.forget_parent)


def host_name() -> str:
    """This machine's name in a form that is safe in a file name."""
    return safe_name(socket.gethostname())


def worker_name(worker: job.Worker | None = None) -> str:
    """The name of this process's files: the machine's name, with the rank of this process in its job."""
    rank = (worker or job.this_worker()).rank
    return host_name() if rank is None else f"{host_name()}_rank{rank}"


def safe_name(host: str) -> str:
    """A worker's name or address in a form that is safe in a file name: `10.0.0.2:6009` becomes `10.0.0.2_6009`.

    The colons of an IPv6 address become dashes, as in Windows' names for them: `[fe80::1]:6009` becomes
    `fe80--1_6009`, and `[::1]:6009` becomes `0--1_6009`.
    """
    host = re.sub(r"^\[(:?)([^\]]*)\]", lambda found: f"{'0-' * bool(found[1])}{found[2].replace(':', '-')}", host)
    return re.sub(r"[^\w.-]", "_", host).lstrip(".") or "localhost"


def run_name(now: Callable[[], float] = time.time) -> str:
    """The name of a run that starts now.

    No two runs of a process share a name, because all files of a run are read as workers of one job.  A second run
    within the same second is named after it with a number: `2026_11_22_20_15_00_002`.
    """
    return RUN_NAMES.claim(int(now()))


def resolve_logdir(logdir: object) -> str:
    """The place of a logdir: a URL unchanged, a folder as its absolute path.  `~` is the home folder.

    Raises:
        CaptureError: it is empty, None, or not a path.
    """
    text = os.fsdecode(logdir) if isinstance(logdir, str | bytes | os.PathLike) else ""
    if not text:
        raise CaptureError(
            f"{logdir!r} is not a folder", code="logdir", lost="the capture", hint="give the logdir as a path"
        )
    place = plain(text)
    return place if is_remote(place) else str(Path(place).absolute())


def make_run_folder(logdir: str | os.PathLike[str]) -> Path:
    """Makes the folder of a run that starts now.

    Raises:
        CaptureError: `logdir` is on another machine, or nothing can be written there.
    """
    place = resolve_logdir(logdir)
    if is_remote(place):
        raise CaptureError(
            "a capture writes to local folders only",
            code="logdir",
            path=place,
            hint="capture to a local folder and copy its plugins/profile folder there",
        )
    folder = Path(place, "plugins", "profile", run_name())
    with translate_write_errors(folder, _CHOOSE):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    return folder


@dataclass(frozen=True)
class Target:
    """Where one worker's capture goes.

    Attributes:
        folder: the local folder that the files are written to.
        name: the worker's name in it, which this capture has claimed.
        url: where the files are moved in the end; None if `folder` is their place.
    """

    folder: Path
    name: str
    url: str | None = None

    @property
    def partial(self) -> Path:
        """The file that holds what was flushed while the capture runs."""
        return self.folder / f"{self.name}.{PARTIAL}"

    def release(self) -> None:
        """Releases the claimed name.  Removes the folder, and those above it in the logdir, if they are empty."""
        with suppress(OSError):
            self.partial.unlink()
        drop_if_empty(self.folder)
        if self.url is None:
            drop_if_empty(self.folder.parent)
            drop_if_empty(self.folder.parent.parent)


def open_target(logdir: str | os.PathLike[str], run: str = "") -> Target:
    """Makes the folder of a run that starts now, and claims this worker's name in it.

    Args:
        run: the name of the run; if it is empty, the workers of the job agree on one.

    Raises:
        CaptureError: nothing can be written to `logdir`.
    """
    place = resolve_logdir(logdir)
    worker = job.this_worker()
    wanted = worker_name(worker)
    if is_remote(place):
        folder = Path(tempfile.mkdtemp(prefix="stepscope-"))
        name = run or os.environ.get(job.RUN_VARIABLE) or run_name()
        return Target(folder, _claim_name(folder, wanted), f"{place}/plugins/profile/{safe_name(name)}")
    with translate_write_errors(Path(place, "plugins", "profile")):
        folder = _run_folder(Path(place), worker, run)
        return Target(folder, _claim_name(folder, wanted))


def require_writable(logdir: str | os.PathLike[str], goes_on: bool = True) -> None:
    """Tries to write where a capture would, and leaves nothing there.

    Args:
        goes_on: whether the program runs without a capture then, which the error says.

    Raises:
        CaptureError: nothing can be written to `logdir`.  A logdir on another machine is not checked.
    """
    place = resolve_logdir(logdir)
    if is_remote(place):
        return
    folder = Path(place)
    with translate_write_errors(folder) if goes_on else translate_write_errors(folder, _CHOOSE):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(bytes(_TRIED_BYTES))
            file.flush()


def _run_folder(logdir: Path, worker: job.Worker, run: str) -> Path:
    wanted = run or os.environ.get(job.RUN_VARIABLE)
    name = safe_name(wanted) if wanted else job.agree_on_run(logdir / "plugins", worker, run_name)
    folder = logdir / "plugins" / "profile" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _claim_name(folder: Path, wanted: str) -> str:
    """Claims the first free name by making its partial file.  Raises OSError."""
    for name in _candidate_names(wanted):
        if (folder / f"{name}.xplane.pb").exists():
            continue
        try:
            (folder / f"{name}.{PARTIAL}").touch(exist_ok=False)
        except FileExistsError:
            continue
        return name
    raise AssertionError("there is always another name")


@contextmanager
def translate_write_errors(
    folder: Path, hint: str = f"training goes on without a capture; {_CHOOSE}"
) -> Iterator[None]:
    """Raises a CaptureError that names the folder for an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise CaptureError(
            f"nothing can be written here: {error.strerror or error}", code="logdir", path=folder, hint=hint
        ) from error


def store_all(artifacts: tuple[Artifact, ...], target: Target) -> list[Path]:
    """Stores the files of a worker in its target's folder; returns the stored ones, the profile first.

    Raises:
        CaptureError: the profile could not be written.
    """
    target.folder.mkdir(parents=True, exist_ok=True)  # it may have been removed during the capture
    profile = store(artifacts, target.folder, target.name)
    name = profile.name.removesuffix(artifacts[0].suffix)
    others = [profile.with_name(name + artifact.suffix) for artifact in artifacts[1:]]
    return [profile, *(path for path in others if path.exists())]


def upload(stored: list[Path], target: Target) -> str:
    """Moves files to the target's place on another machine; returns the address of the first.

    Raises:
        CaptureError: a file could not be copied; all of them are still in the local folder.
    """
    from stepscope.capture import other_process, uploading

    try:
        for path in stored:
            uploading.copy(path, f"{target.url}/{path.name}")
    except (InputError, other_process.FailedError) as error:
        known = error.problem if isinstance(error, InputError) else None
        raise CaptureError(
            f"the profile could not be copied to the logdir: {known.reason if known else error}",
            code="upload",
            path=target.url,
            kept=f"the files in {target.folder}",
            hint=(known.hint if known else "") or "copy them yourself",
        ) from error
    for path in stored:
        path.unlink()
    return f"{target.url}/{stored[0].name}"


def drop_if_empty(folder: Path) -> None:
    """Removes a folder if it is empty."""
    with suppress(OSError):
        folder.rmdir()


def store(artifacts: tuple[Artifact, ...], folder: Path, host: str) -> Path:
    """Stores the files of one worker under one name; returns the path of the first, which is the profile itself.

    If another file cannot be stored, that is reported, and the profile stays.

    Raises:
        CaptureError: the profile could not be written; no half-written file is left.
    """
    for name in _candidate_names(host):
        if any((folder / f"{name}.{artifact.suffix}").exists() for artifact in artifacts):
            continue
        try:
            profile = _store(artifacts[0], folder, name)
        except FileExistsError:  # another worker took the name since we looked
            continue
        _store_others(artifacts[1:], folder, name)
        return profile
    raise AssertionError("there is always another name")


def _store_others(artifacts: tuple[Artifact, ...], folder: Path, name: str) -> None:
    for artifact in artifacts:
        try:
            _store(artifact, folder, name)
        except (CaptureError, FileExistsError) as error:
            report(error, f"storing {name}.{artifact.suffix}")


def _candidate_names(host: str) -> Iterator[str]:
    yield host
    name = f"{host}_{os.getpid()}"
    yield name
    number = 1
    while True:
        number += 1
        yield f"{name}_{number}"


def _store(artifact: Artifact, folder: Path, name: str) -> Path:
    final = folder / f"{name}.{artifact.suffix}"
    try:
        with draft_in(folder) as draft:
            _fill(draft, artifact.content)
            claim_name(draft, final)
    except FileExistsError:
        raise
    except OSError as error:
        raise CaptureError(
            f"the profile could not be written: {error.strerror or error}",
            code="write-failed",
            path=final,
            lost=f"the capture as {artifact.suffix}",
            hint="make room there or choose another logdir",
        ) from error
    _sync_folder(folder)
    return final


def _fill(draft: Path, content: bytes | Path) -> None:
    """Writes a file, on the disk."""
    with io.BufferedWriter(handles.open_file(draft, "wb")) as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            with handles.open_file(content, "rb") as source:
                shutil.copyfileobj(source, file)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system can open a folder; the file itself is already on the disk
        handle = handles.move_up(os.open(folder, os.O_RDONLY))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- where nothing was recorded --------------------------------------------------------------------------------------


def leave_reason(logdir: object, reason: str, hint: str) -> None:
    """Logs why nothing was recorded, and leaves it in the logdir.  Raises nothing: it runs in training jobs.

    Args:
        logdir: as for `stepscope.start`; nothing is left in one on another machine.
        reason: what happened, one sentence without a full stop.
        hint: what to do, likewise.
    """
    warn(f"{reason}; {hint}")
    with suppress(OSError, StepscopeError):
        place = resolve_logdir(logdir)
        if not is_remote(place):
            note = _note_path(Path(place))
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(f"{reason}\n{hint}\n", encoding="utf-8")


def forget_reason(logdir: object) -> None:
    """Removes the note of this host: a capture is written to the logdir now."""
    with suppress(OSError, StepscopeError):
        place = resolve_logdir(logdir)
        if not is_remote(place):
            _note_path(Path(place)).unlink()


def _note_path(logdir: Path) -> Path:
    return logdir / "plugins" / "profile" / f"{worker_name()}{ENDING}"
