"""A format: lines of a name, a start and an end in milliseconds.

acme-log 1
step 0 10
load 0 4
compute 4 9
"""

from __future__ import annotations

from stepscope.errors import UnreadableError
from stepscope.formats.form import Format
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

HEAD = b"acme-log 1\n"
PS_PER_MS = 10**9


class AcmeLog(Format):
    """Acme's log."""

    def looks_like(self, content: bytes) -> bool:
        """Whether a file starts as one of ours."""
        return content.startswith(HEAD)


FORMAT = AcmeLog(
    name="acme-log",
    noun="an Acme log",
    summary="Acme's logs (*.acme)",
    pattern=r"(?P<host>[^.]*)\.acme",
    reader="acme_stepscope.log_format:read",
)


def read(data: bytes, source: str, host: str) -> HostTrace:
    """Reads a log.  The kind of each event is decided here: tools look at nothing else."""
    builder = TraceBuilder(host)
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    steps = 0
    for line in bytes(data).decode("utf-8", "replace").splitlines()[1:]:
        try:
            name, start, end = line.rsplit(maxsplit=2)
            start_ps, end_ps = (int(float(text) * PS_PER_MS) for text in (start, end))
        except ValueError as error:
            raise UnreadableError(f"a line is not NAME START END: {line!r}", path=source) from error
        is_step = name == "step"
        kind = EventKind.STEP_MARK if is_step else EventKind.INPUT_WAIT if name == "load" else EventKind.OP
        thread.event(name, start_ps, end_ps - start_ps, kind, {"step_num": steps} if is_step else {})
        steps += is_step
    return builder.build()
