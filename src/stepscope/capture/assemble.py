"""Makes one profile of what the framework's profiler and Stepscope's own tracers recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.capture import cost, own_clock
from stepscope.capture.report import report
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.formats.spool.layout import FRAMEWORK_LOST

if TYPE_CHECKING:
    from stepscope.formats.spool.reader import Spool

PROFILE = "xplane.pb"
# The framework records the annotations as well: they are in its profile already.
_FRAMEWORK_PLANES = frozenset({"/host:CPU"})


def assemble_profile(spooled: bytes, framework: Collected | None, host: str, jump_ns: int = 0) -> Collected:
    """The files to store.

    Args:
        spooled: everything that was flushed, including the end record.
        framework: what the framework's profiler made; None if there is no framework, or if its profiler failed.  The
            profile then holds what Stepscope recorded itself.
        jump_ns: by how much the system's clock was set during the capture.
    """
    from stepscope.formats.spool.reader import parse

    spool = parse(spooled)
    assert spool is not None, "a spool begins with its magic"
    if framework is None or not framework.artifacts:
        error = None if framework is None else framework.error
        if jump_ns:
            spool.notes.append(own_clock.describe_jump(jump_ns, settled=None))
        if error is not None:
            spool.notes.append(f"the framework's part of this profile is missing: {error}")
            spool.facts.setdefault(cost.PLANE, {})[FRAMEWORK_LOST] = 1
        return Collected((Artifact(PROFILE, _write_alone(spool, host)),), error)
    first, others = framework.artifacts[0], framework.artifacts[1:]
    if first.suffix != PROFILE:  # only another file could be made, such as PyTorch's JSON
        spool.notes.append(f"{framework.error}; {host}.{first.suffix} beside this file holds it")
        return replace(framework, artifacts=(Artifact(PROFILE, _write_alone(spool, host)), *framework.artifacts))
    spool.notes.extend(framework.notes)
    if framework.error is not None:
        spool.notes.append(str(framework.error))
    try:
        return replace(framework, artifacts=(_merge_tracks(first, spool, host, jump_ns), *others))
    except Exception as error:  # an error of ours must not lose the framework's profile
        report(error, "adding Stepscope's own tracks")
        return framework


def _write_alone(spool: Spool, host: str) -> bytes:
    from stepscope.formats.xspace.writer import write

    return write(spool.trace(host))


def _merge_tracks(profile: Artifact, spool: Spool, host: str, jump_ns: int) -> Artifact:
    from stepscope.formats.xspace import merge

    content = profile.content.read_bytes() if isinstance(profile.content, Path) else profile.content
    began = merge.start_unix_ns(content)
    assert spool.unix_ns is not None, "every capture records its start time"
    if jump_ns and began is not None:
        settled = own_clock.settle_events(content, spool.trace(host, shift_ns=spool.unix_ns - began))
        spool.notes.append(own_clock.describe_jump(jump_ns, settled is not None))
        content = settled or content
    if began is None:  # an older JAX: its lines count from 1970
        own = spool.trace(host, without=_FRAMEWORK_PLANES)
        own = replace(own, lines=replace(own.lines, start_ns=own.lines.start_ns + spool.unix_ns))
    else:
        own = spool.trace(host, shift_ns=spool.unix_ns - began, without=_FRAMEWORK_PLANES)
    return Artifact(PROFILE, merge.append_planes(content, own))
