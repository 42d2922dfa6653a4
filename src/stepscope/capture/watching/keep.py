"""Keeps what the ring holds at a trigger, as a session of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from stepscope.capture import cost, files
from stepscope.capture.assemble import PROFILE, make_profile_in_helper
from stepscope.capture.other_process import ConverterProcess, FailedError, UnableError
from stepscope.capture.report import report
from stepscope.capture.tracers.base import Artifact
from stepscope.capture.watching.triggers import Mark
from stepscope.formats.spool import layout
from stepscope.formats.spool.layout import WITHOUT_FRAMEWORK, StatValue


def trigger_facts(mark: Mark) -> dict[str, StatValue]:
    """What a profile says of its trigger."""
    facts: dict[str, StatValue] = {"trigger": mark.trigger.value, "trigger_sentence": mark.sentence}
    return facts if mark.step is None else facts | {"trigger_step": mark.step}


def trigger_note(mark: Mark) -> str:
    """The same as a sentence for the reader of the profile."""
    return f"kept by the watch ({mark.trigger.value}): {mark.sentence}"


def end_of_ring(mark: Mark, clock_ns: int, notes: Iterable[str]) -> bytes:
    """The last records of a kept ring.

    Args:
        notes: for the reader of the profile, after that of the trigger.
    """
    said = [layout.note(note) for note in (trigger_note(mark), *notes)]
    facts: Mapping[str, StatValue] = trigger_facts(mark) | {WITHOUT_FRAMEWORK: 1}
    return b"".join((*said, layout.facts(cost.PLANE, facts), layout.end(clock_ns)))


def write_ring(content: bytes, target: files.Target) -> None:
    """Writes a ring to the file that the target has claimed, on the disk.

    Raises:
        OSError: it cannot be written.
    """
    with target.partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


_EXPLAINED = "explained.json"
_PATIENCE_S = 60.0
_EXPLAINER = "stepscope.overtime.slow_step"  # by name: nothing that captures knows an analysis


def explain_step(content: bytes, number: int, helper: ConverterProcess) -> tuple[str, str]:
    """Why a step of a ring was slow, by its account, which the helper makes: what takes longer and where, for people,
    and what identifies that; both empty where nothing is known.

    Args:
        content: the ring.
    """
    result = helper.folder / _EXPLAINED
    try:
        helper.run(_EXPLAINER, [str(number), str(result)], _PATIENCE_S, content)
        reason, cause = json.loads(result.read_text())
    except (UnableError, FailedError, OSError, ValueError):
        return "", ""
    return str(reason), str(cause)


def convert_ring(
    content: bytes, target: files.Target, helper: ConverterProcess, attached: tuple[Artifact, ...] = ()
) -> Path | str:
    """Makes the profile of a ring that `write_ring` has written; returns its path or its address.

    If it cannot be made, the ring stays as it is; every command reads it.

    Args:
        content: the ring.
        helper: makes the profile.
        attached: other files to keep beside it.
    """
    try:
        profile = make_profile_in_helper(content, None, target.name, 0, helper)
        stored = files.store_all((Artifact(PROFILE, profile), *attached), target)
        with suppress(OSError):
            target.partial.unlink()
        return stored[0] if target.url is None else files.upload(stored, target)
    except Exception as error:
        report(error, "converting the ring of the watch")
        return target.partial
