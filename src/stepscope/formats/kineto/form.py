"""Kineto's and Chrome's trace files: their names, how they start, and what they are next to other profiles."""

from __future__ import annotations

from collections.abc import Set

from stepscope.formats.form import NO_STAMP, Companion, Format, JobPlace, NameParts
from stepscope.vocabulary.patterns import Pattern

_TORCH_NAME = Pattern(r"(?P<worker>.*?)(?:\.(?P<stamp>\d+))?\.pt\.trace\.json")
_JAX_COPY = "remote"  # how earlier releases name their copy
_JAX_PERFETTO = "perfetto_trace.json"  # what `create_perfetto_trace` makes of the xplane file
_FIRST_EVENTS = 4096  # bytes
_JOB = Pattern(
    rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,6})\b[^{}\[\]]*?"world_size"\s*:\s*(\d{1,6})\b'
)
_BASE_NS = Pattern(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,20})\b')
_FIRST_US = Pattern(rb'"ts"\s*:\s*"?([1-9]\d{0,19})\b')


class KinetoFormat(Format):
    """JSON with a list of events."""

    def looks_like(self, content: bytes) -> bool:
        """True for any JSON: its events may be far from the start."""
        return content.lstrip()[:1] in (b"{", b"[")

    def is_certain_match(self, content: bytes) -> bool:
        """True for JSON that is a trace: its keys and first events are near the start."""
        text = content.lstrip()
        if text.startswith(b"["):
            return b'"ph"' in text[:_FIRST_EVENTS]
        return text.startswith(b"{") and (b'"traceEvents"' in text or b'"deviceProperties"' in text)

    def place_in_job(self, content: bytes) -> JobPlace | None:
        """The place in a job that PyTorch 2 writes before the events, with the time of the first of these."""
        found = _JOB.search(content)
        if not found:
            return None
        first, base = _FIRST_US.search(content), _BASE_NS.search(content)
        begin_s = int(first[1]) / 1e6 + (int(base[1]) / 1e9 if base else 0.0) if first else None
        return JobPlace(int(found[1]), int(found[2]), begin_s)

    def name_parts(self, basename: str) -> NameParts:
        """The worker and the stamp that torch.profiler appends to it.

        In other names a number before ".trace.json" is part of the host's name, as in 10.0.0.2.trace.json.gz.
        """
        stem = basename.removesuffix(".gz")
        torch = _TORCH_NAME.fullmatch(stem)
        if not torch:
            return NameParts(stem.removesuffix(".trace.json"))
        digits = torch["stamp"]
        return NameParts(torch["worker"], (int(digits), digits) if digits else NO_STAMP)

    def classify_companion(self, basename: str, hosts: Set[str]) -> Companion:
        """What torch.profiler writes is data of its own, unless Stepscope has converted it.

        JAX names its copy after the host.  Stepscope keeps PyTorch's file under the name of the file converted from it.
        Anything else is probably an export, since exports are saved there.
        """
        stem, copies = basename.removesuffix(".gz"), hosts | {_JAX_COPY}
        if stem == _JAX_PERFETTO or stem.removesuffix(".pt.trace.json") in copies:
            return Companion.COPY
        if _TORCH_NAME.fullmatch(stem):
            return Companion.OWN
        return Companion.COPY if self.name_parts(basename).host in copies else Companion.EXPORT


FORMAT = KinetoFormat(
    name="kineto",
    noun="a trace in JSON",
    summary="*.trace.json and *.trace.json.gz (PyTorch)",
    pattern=r"(?P<host>.*?)(?:\.\d+)?(?:\.pt)?\.trace\.json(?:\.gz)?",
    reader="stepscope.formats.kineto.reader:read",
    hosts_reader="stepscope.formats.kineto.reader:read_hosts",
    takes_pieces=True,
    has_spans=True,
    other_endings=(".json",),
)
