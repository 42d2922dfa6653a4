"""Makes one profile of what the framework's profiler and Stepscope's own tracers recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.capture import cost, own_clock
from stepscope.capture.aside import Helper, UnableError
from stepscope.capture.report import report
from stepscope.capture.tracers.base import Artifact, Collected
from stepscope.formats.spool.layout import FRAMEWORK_LOST

if TYPE_CHECKING:
    from stepscope.capture.spool import Spool

PROFILE = "xplane.pb"
# The framework records the annotations as well: they are in its profile already.
_FRAMEWORK_PLANES = frozenset({"/host:CPU"})
_PATIENCE_S = 120.0
_BYTES_PER_S = 1e6


def assemble_profile(
    spool: Spool, clock_ns: int, framework: Collected | None, host: str, helper: Helper, jump_ns: int = 0
) -> Collected:
    """The files to store.

    Args:
        spool: everything that was flushed; it is finished here.
        clock_ns: when the recording ended.
        framework: what the framework's profiler made; None if there is no framework, or if its profiler failed.  The
            profile then holds what Stepscope recorded itself.
        helper: does the work if this process would hold it up, or be held up by it.
        jump_ns: by how much the system's clock was set during the capture.
    """
    first, others = _profile_of(framework)
    error = None if framework is None else framework.error
    for note in _notes(framework, first, host):
        spool.note(note)
    if first is None and error is not None and not others:
        spool.facts(cost.PLANE, {FRAMEWORK_LOST: 1})
    spooled = spool.finish(clock_ns)
    try:
        content = make_anywhere(spooled, first, host, jump_ns, helper)
    except Exception as failure:
        if first is None:
            raise
        report(failure, "adding Stepscope's own tracks")  # an error of ours must not lose the framework's profile
        assert framework is not None
        return framework
    return Collected((Artifact(PROFILE, content), *others), error)


def _profile_of(framework: Collected | None) -> tuple[bytes | Path | None, tuple[Artifact, ...]]:
    """The XSpace that the framework's profiler made, if it did, and its other files, such as PyTorch's JSON."""
    artifacts = framework.artifacts if framework is not None else ()
    if artifacts and artifacts[0].suffix == PROFILE:
        return artifacts[0].content, artifacts[1:]
    return None, artifacts


def _notes(framework: Collected | None, first: bytes | Path | None, host: str) -> Iterator[str]:
    """What the reader of the profile has to know of the framework's part."""
    if framework is None:
        return
    error, others = framework.error, framework.artifacts
    if first is not None:
        yield from framework.notes
        if error is not None:
            yield str(error)
    elif others:
        yield f"{error}; {host}.{others[0].suffix} beside this file holds it"
    elif error is not None:
        yield f"the framework's part of this profile is missing: {error}"


def make_anywhere(
    spooled: bytes, framework: bytes | Path | None, host: str, jump_ns: int, helper: Helper
) -> bytes | Path:
    """As `make_profile`, by the helper if it is wanted; the profile is a file of its folder then."""
    if helper.is_wanted:
        result = helper.folder / PROFILE
        if isinstance(framework, bytes):
            content, framework = framework, helper.folder / "framework"
            framework.write_bytes(content)
        size = len(spooled) + (framework.stat().st_size if framework is not None else 0)
        words = [str(result), host, str(jump_ns), str(framework or "")]
        with suppress(UnableError):
            helper.run(__name__, words, _PATIENCE_S + size / _BYTES_PER_S, spooled)
            return result
    return make_profile(spooled, framework.read_bytes() if isinstance(framework, Path) else framework, host, jump_ns)


def main(arguments: Sequence[str], spooled: bytes) -> None:
    """Makes a profile.  Another process runs this; see `stepscope.capture.aside`.

    Args:
        arguments: the path of the result, the host's name, the clock's jump in ns, and the path of the framework's
            profile, which may be empty.
        spooled: what was flushed.
    """
    result, host, jump_ns, framework = arguments
    profile = Path(framework).read_bytes() if framework else None
    Path(result).write_bytes(make_profile(spooled, profile, host, int(jump_ns)))


def make_profile(spooled: bytes, framework: bytes | None, host: str, jump_ns: int) -> bytes:
    """The XSpace of everything that was flushed, and of the framework's own, if there is one.

    Args:
        spooled: with the end record.
        framework: an XSpace.
        host, jump_ns: as for `assemble_profile`.
    """
    from stepscope.formats.spool.reader import parse
    from stepscope.formats.xspace import merge
    from stepscope.formats.xspace.writer import write

    spool = parse(spooled)
    assert spool is not None, "a spool begins with its magic"
    if framework is None:
        if jump_ns:
            spool.notes.append(own_clock.describe_jump(jump_ns, settled=None))
        return write(spool.trace(host))
    began = merge.start_unix_ns(framework)
    assert spool.unix_ns is not None, "every capture records its start time"
    if jump_ns and began is not None:
        settled = own_clock.settle_events(framework, spool.trace(host, shift_ns=spool.unix_ns - began))
        spool.notes.append(own_clock.describe_jump(jump_ns, settled is not None))
        framework = settled or framework
    if began is None:  # an older JAX: its lines count from 1970
        own = spool.trace(host, without=_FRAMEWORK_PLANES)
        own = replace(own, lines=replace(own.lines, start_ns=own.lines.start_ns + spool.unix_ns))
    else:
        own = spool.trace(host, shift_ns=spool.unix_ns - began, without=_FRAMEWORK_PLANES)
    return merge.append_planes(framework, own)
