"""Dumps of the flight recorder: their names, and how they start."""

from __future__ import annotations

from stepscope.formats.form import Format

_KEYS = (b"pg_config", b"nccl_version", b"comm_lib_version", b"entries")


class FlightRecorderFormat(Format):
    """A pickle or JSON of one rank's last collectives."""

    def looks_like(self, content: bytes) -> bool:
        """True for a pickle or JSON with one of a dump's keys near its start."""
        return content.lstrip()[:1] in (b"\x80", b"{") and any(key in content for key in _KEYS)


FORMAT = FlightRecorderFormat(
    name="flight-recorder",
    noun="a dump of the flight recorder",
    summary="flight recorder dumps (nccl_trace_rank_*, comm_lib_trace_rank_*), written by torch.distributed",
    pattern=r"(?P<host>(?:nccl|comm_lib)_trace_rank_?\d+)(?:\.(?:json|pickle|pkl))?",
    reader="stepscope.formats.flight_recorder.reader:read",
    reads_gzip=False,
)
