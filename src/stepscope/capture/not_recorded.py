"""Says that a capture was asked for and none was made: in the log, and by a note in the logdir.

The note lets `stepscope doctor`, the commands and the page say why there is nothing to see, after the job has ended.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from stepscope.capture import files
from stepscope.capture.report import warn
from stepscope.errors import StepscopeError
from stepscope.formats.not_recorded import ENDING
from stepscope.formats.store import is_remote


def leave_reason(logdir: object, reason: str, hint: str) -> None:
    """Logs why nothing was recorded, and leaves it in the logdir.  Raises nothing: it runs in training jobs.

    Args:
        logdir: as for `stepscope.start`; nothing is left in one on another machine.
        reason: what happened, one sentence without a full stop.
        hint: what to do, likewise.
    """
    warn(f"{reason}; {hint}")
    with suppress(OSError, StepscopeError):
        place = files.resolve_logdir(logdir)
        if not is_remote(place):
            note = _note_path(Path(place))
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(f"{reason}\n{hint}\n", encoding="utf-8")


def forget_reason(logdir: object) -> None:
    """Removes the note of this host: a capture is written to the logdir now."""
    with suppress(OSError, StepscopeError):
        place = files.resolve_logdir(logdir)
        if not is_remote(place):
            _note_path(Path(place)).unlink()


def _note_path(logdir: Path) -> Path:
    return logdir / "plugins" / "profile" / f"{files.worker_name()}{ENDING}"
