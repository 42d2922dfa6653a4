"""Nsight Systems' files: their names, and how they start."""

from __future__ import annotations

from stepscope.formats.form import Format

_MAGIC = b"SQLite format 3\x00"
_ITS_TABLES = (b"CUPTI_ACTIVITY_KIND_", b"NVTX_EVENTS", b"META_DATA_EXPORT", b"TARGET_INFO_GPU")


class NsightSqliteFormat(Format):
    """A database of SQLite with Nsight's tables."""

    def looks_like(self, content: bytes) -> bool:
        """True for any database: where its tables are named is not at the start of every one."""
        return content.startswith(_MAGIC)

    def is_certain_match(self, content: bytes) -> bool:
        """True for a database that names one of Nsight's tables near its start."""
        return self.looks_like(content) and any(table in content for table in _ITS_TABLES)


class NsightParquetFormat(Format):
    """The one file of the folder that every export has; the reader takes the others from beside it."""

    def looks_like(self, content: bytes) -> bool:
        """True for a Parquet file."""
        return content.startswith(b"PAR1")


class NsightReportFormat(Format):
    """The report itself, which only Nsight can read."""

    def looks_like(self, content: bytes) -> bool:
        """False: how a report starts is not documented, and its name says what it is."""
        return False


SQLITE = NsightSqliteFormat(
    name="nsight-sqlite",
    noun="a database of SQLite",
    summary="Nsight Systems as SQLite (*.sqlite), written by `nsys export --type sqlite`",
    pattern=r"(?P<host>.+)\.sqlite",
    reader="stepscope.formats.nsight.reader:read_sqlite",
    in_folders=False,
    takes_pieces=True,
    other_endings=(".sqlite",),
    reads_gzip=False,
)
PARQUET = NsightParquetFormat(
    name="nsight-parquet",
    noun="a table of an Nsight export",
    summary="Nsight Systems as Parquet (a folder with StringIds.parquet), written by `nsys export --type parquetdir`",
    pattern=r"StringIds\.parquet",
    reader="stepscope.formats.nsight.reader:read_parquet",
    reads_gzip=False,
)
REPORT = NsightReportFormat(
    name="nsight-report",
    noun="a report of Nsight Systems",
    summary="Nsight Systems' own report (*.nsys-rep): export it with `nsys export --type sqlite`",
    pattern=r"(?P<host>.+)\.(?:nsys-rep|qdrep|qdstrm)",
    reader="stepscope.formats.nsight.reader:refuse_report",
    in_folders=False,
    reads_gzip=False,
)
