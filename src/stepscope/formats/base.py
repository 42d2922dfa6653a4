"""The one list of formats.  To add a format, add a folder with a reader, and its row here.

A format whose files are not known by their first bytes alone has a `form.py` in its folder.  The session finder, error
messages and the doctor use this list; no other module names a format.
"""

from __future__ import annotations

from collections.abc import Callable

from stepscope.errors import UnreadableError
from stepscope.formats.form import Format
from stepscope.formats.kineto.form import FORMAT as KINETO
from stepscope.formats.perfetto.form import FORMAT as PERFETTO
from stepscope.formats.xspace.form import FORMAT as XSPACE
from stepscope.plugins import plugins_of
from stepscope.vocabulary.patterns import Pattern

__all__ = [
    "FORMATS",
    "Format",
    "format_from_prefix",
    "format_of",
    "formats_that_may_hold",
    "require_format",
]

_PICKLE = b"\x80"
_FIRST_KEY = 256  # bytes of a memory snapshot that hold it
_KEYS_OF_DUMPS = (b"pg_config", b"nccl_version", b"comm_lib_version", b"entries")
_KEY_OF_ROCPROF = b'"rocprofiler-sdk-tool"'
_KEYS_OF_NODES = (b'"children"', b'"frame"', b'"metrics"')
_SURE_KEYS_OF_DUMPS = (b"pg_config", b"collective_seq_id")
_ENDS_WITH_RANK = Pattern(r"\d(?:\.(?:json|pickle|pkl|bin))?$")
_TABLES_OF_NSIGHT = (b"CUPTI_ACTIVITY_KIND_", b"NVTX_EVENTS", b"META_DATA_EXPORT", b"TARGET_INFO_GPU")


class _FlightRecorder(Format):
    def looks_like(self, content: bytes) -> bool:
        """True for a pickle or JSON with one of a dump's keys near its start."""
        return content.lstrip()[:1] in (_PICKLE, b"{") and any(key in content for key in _KEYS_OF_DUMPS)

    def is_certain_match(self, content: bytes) -> bool:
        """True for a pickle or JSON with the groups of a job or a numbered call near its start."""
        return self.looks_like(content) and any(key in content for key in _SURE_KEYS_OF_DUMPS)

    def may_hold(self, basename: str) -> bool:
        """True for a name that ends with a number, as the recorder adds the rank to whatever name it is given."""
        return _ENDS_WITH_RANK.search(basename) is not None


class _TorchMemory(Format):
    def looks_like(self, content: bytes) -> bool:
        """True for a pickle with one of a snapshot's keys."""
        return content.startswith(_PICKLE) and (b"device_traces" in content or b"segments" in content[:_FIRST_KEY])


class _Proton(Format):
    def looks_like(self, content: bytes) -> bool:
        """True for a JSON array of nodes."""
        text = content.lstrip()
        return text.startswith(b"[") and all(key in text for key in _KEYS_OF_NODES) and b'"ph"' not in text


class _Rocprofiler(Format):
    def looks_like(self, content: bytes) -> bool:
        """True for a JSON object whose first key is that of rocprofv3."""
        return content.lstrip().startswith(b"{") and content.lstrip()[1:].lstrip().startswith(_KEY_OF_ROCPROF)


class _NsightSqlite(Format):
    def is_certain_match(self, content: bytes) -> bool:
        """True for a database that names one of Nsight's tables near its start, which not every one does."""
        return self.looks_like(content) and any(table in content for table in _TABLES_OF_NSIGHT)

    def is_certain_file(self, path: str, content: bytes) -> bool:
        """True for a database with one of Nsight's tables: their names may stand on any of its pages."""
        if self.is_certain_match(content) or not self.looks_like(content):
            return self.looks_like(content)
        from stepscope.formats.nsight.tables import names_of_tables

        return any(table.decode() in name for name in names_of_tables(path) for table in _TABLES_OF_NSIGHT)


class _NsightParquet(Format):
    def is_certain_match(self, content: bytes) -> bool:
        """False: any table of any program starts so."""
        return False


FORMATS: tuple[Format, ...] = (
    Format(
        name="jax-memory",
        noun="a device memory profile",
        summary="*.prof (JAX's device memory)",
        pattern=r"(?P<host>.+?)(?:\.memory)?\.(?:prof|pprof)",
        reader="stepscope.formats.jax_memory.reader:read",
        # The types of the values of a sample: two messages, each with the numbers of two texts; the reader looks at
        # their names.
        starts=(b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04",),
        in_folders=False,
        other_endings=(".prof", ".pprof"),
        holds_memory_only=True,
    ),
    XSPACE,
    _Proton(
        name="proton",
        noun="a profile of Proton",
        summary="*.hatchet (Triton's Proton)",
        pattern=r"(?P<host>.+)\.hatchet",
        reader="stepscope.formats.proton.reader:read",
        other_endings=(".json",),
        reads_gzip=False,
    ),
    _Rocprofiler(
        name="rocprofiler",
        noun="a recording of rocprofv3",
        summary="*_results.json (AMD's rocprofv3)",
        pattern=r"(?P<host>.+)_results\.json",
        reader="stepscope.formats.rocprofiler.reader:read",
        hosts_reader="stepscope.formats.rocprofiler.reader:read_hosts",
        in_folders=False,
        other_endings=(".json",),
    ),
    KINETO,
    PERFETTO,
    Format(
        name="riegeli",
        noun="an XSpace in chunks",
        summary="*.xplane.riegeli (JAX, beyond 2 GB)",
        pattern=r"(?:(?P<host>.*)\.)?xplane\.riegeli",
        reader="stepscope.formats.riegeli.reader:read",
        starts=(bytes.fromhex("83af70d10d884a3f"),),  # the checksum of the first block's header
        releases_input=True,
        reads_gzip=False,
    ),
    Format(
        name="spool",
        noun="a spool",
        summary="*.xplane.pb.partial (a capture whose job was killed)",
        pattern=r"(?:(?P<host>.*)\.)?xplane\.pb\.partial",
        reader="stepscope.formats.spool.reader:read",
        starts=(b"stepscope spool 1\n",),  # `stepscope.formats.spool.layout.MAGIC`
        unfinished_ending=".partial",
    ),
    _FlightRecorder(
        name="flight-recorder",
        noun="a dump of the flight recorder",
        summary="nccl_trace_rank_* and comm_lib_trace_rank_* (PyTorch's flight recorder)",
        pattern=r"(?P<host>.*(?:nccl|comm_lib)_trace_rank_?(?:.*[-_.])?\d+)(?:\.(?:json|pickle|pkl))?",
        reader="stepscope.formats.flight_recorder.reader:read",
        reads_gzip=False,
        is_of_job=True,
    ),
    _TorchMemory(
        name="torch-memory",
        noun="a memory snapshot",
        summary="*.pickle (PyTorch's memory snapshot)",
        pattern=r"(?P<host>.+)\.(?:pickle|pkl)",
        reader="stepscope.formats.torch_memory.reader:read",
        in_folders=False,
        other_endings=(".pickle", ".pkl"),
        holds_memory_only=True,
    ),
    _NsightSqlite(
        name="nsight-sqlite",
        noun="a database of SQLite",
        summary="*.sqlite (Nsight Systems, by `nsys export --type sqlite`)",
        pattern=r"(?P<host>.+)\.sqlite",
        reader="stepscope.formats.nsight.reader:read_sqlite",
        hosts_reader="stepscope.formats.nsight.reader:read_hosts_of_sqlite",
        starts=(b"SQLite format 3\x00",),
        in_folders=False,
        takes_pieces=True,
        other_endings=(".sqlite",),
        reads_gzip=False,
    ),
    _NsightParquet(
        name="nsight-parquet",
        noun="a table of an Nsight export",
        summary="a folder with StringIds.parquet (Nsight Systems, by `nsys export --type parquetdir`)",
        pattern=r"StringIds\.parquet",  # which every export has; the reader takes the others from beside it
        reader="stepscope.formats.nsight.reader:read_parquet",
        hosts_reader="stepscope.formats.nsight.reader:read_hosts_of_parquet",
        starts=(b"PAR1",),
        reads_gzip=False,
    ),
    Format(
        name="nsight-report",
        noun="a report of Nsight Systems",
        summary="*.nsys-rep (Nsight Systems; export it first)",
        pattern=r"(?P<host>.+)\.(?:nsys-rep|qdrep|qdstrm)",  # how it starts is not documented
        reader="stepscope.formats.nsight.reader:refuse_report",
        in_folders=False,
        reads_gzip=False,
    ),
)


GROUP = "stepscope.formats"


def added_formats() -> tuple[Format, ...]:
    """The formats of other packages."""
    return plugins_of(GROUP, Format).found


def _first(fits: Callable[[Format], bool]) -> Format | None:
    """The first format that fits; those of other packages come last, and are imported only if no other fits."""
    found = next(filter(fits, FORMATS), None)
    return found or next(filter(fits, added_formats()), None)


def format_of(basename: str) -> Format | None:
    """The format that claims a file name, or None."""
    return _first(lambda candidate: candidate.claims(basename))


def format_from_prefix(content: bytes) -> Format | None:
    """The format that the first bytes of an unpacked file fit; None if they fit none."""
    return _first(lambda candidate: candidate.looks_like(content))


def formats_that_may_hold(basename: str) -> tuple[Format, ...]:
    """The formats that may use a name which no format claims."""
    return tuple(candidate for candidate in (*FORMATS, *added_formats()) if candidate.may_hold(basename))


def require_format(basename: str, path: str) -> Format:
    """The format that claims a file name.  Raises UnreadableError with the list of formats if none does."""
    found = format_of(basename)
    if found is None:
        known = "; ".join(candidate.summary for candidate in (*FORMATS, *added_formats()))
        record = f"to record a program: stepscope run {path}; " if basename.endswith(".py") else ""
        raise UnreadableError(
            "its name is not that of a profile",
            code="unknown-format",
            path=path,
            hint=f"{record}files that can be read: {known}",
        )
    return found
