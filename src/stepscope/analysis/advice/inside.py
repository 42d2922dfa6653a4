"""What to do about the work that a function of the program spends its time in: a query, an archive, text, pictures.

The work is told by the library's function furthest in that samples or calls show, and by the name of the function that
the statement calls, as the program writes it.
"""

from __future__ import annotations

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.statements import Statement

# The libraries, the functions that only such work has, and what helps.
_WORK: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (
        frozenset({"sqlite3", "sqlalchemy", "duckdb", "psycopg", "psycopg2", "pymysql", "lmdb"}),
        frozenset({"execute", "executemany", "executescript", "fetchone", "fetchmany", "fetchall"}),
        "if a query searches the whole table, create an index on the columns that it asks for (CREATE INDEX); or ask"
        " for all rows of a batch in one query",
    ),
    (
        frozenset({"zipfile", "gzip", "zlib", "bz2", "lzma", "tarfile", "zstandard", "lz4", "_compression", "_npyio"}),
        frozenset({"decompress"}),
        "what it unpacks is unpacked again for each sample: unpack it once, and keep the arrays, or store them unpacked"
        " (.npy with numpy.load(path, mmap_mode='r'))",
    ),
    (
        frozenset({"json", "csv", "ast", "re", "yaml", "xml", "html", "pickle", "tomllib", "orjson", "ujson"}),
        frozenset({"literal_eval", "raw_decode", "fromstring", "genfromtxt", "loadtxt"}),
        "parse that text once, before training, and store arrays",
    ),
    (
        frozenset({"PIL", "cv2", "imageio", "skimage", "simplejpeg", "turbojpeg"}),
        frozenset({"imread", "imdecode"}),
        "store the pictures at the size that the model takes, before training, or let the decoder make them smaller"
        " (Image.draft, cv2.IMREAD_REDUCED_COLOR_2)",
    ),
    (
        frozenset({"pandas", "polars", "pyarrow"}),
        frozenset({"iloc", "loc"}),
        "take what it looks up out of the table once, before training: arrays of its columns, and an index of its rows",
    ),
)  # fmt: skip
_OF_NUMPY = {"_npyio_impl": "_npyio", "npyio": "_npyio", "_format_impl": "_npyio", "format": "_npyio"}

_LOADERS = ("torch/utils/data/", "keras/src/trainers/")  # these call the program: what takes time is not theirs


def act_on_inside(name: str, inside: str | None, statement: Statement | None) -> tuple[str, ...]:
    """What to do first about a function: about the work in it where that is known, else about the function it calls.

    Args:
        inside: the library's function furthest in, such as `json/decoder.py:353 raw_decode`; None without one.
        statement: that holds most of its time; None where that is not known.
    """
    called = statement.called if statement is not None else ""
    inside = None if inside and inside.startswith(_LOADERS) else inside
    modules = _modules_of(inside) | set(called.split("."))
    place = f" at {statement.place}" if statement is not None else ""
    what = called or (inside or "")
    for libraries, functions, action in _WORK:
        if modules & libraries or called.rpartition(".")[2] in functions:
            return (f"{name} spends most of its time in {what}{place}: {action}",)
    if not what:
        return ()
    return (f"make what {name} does in {what}{place} cheaper, or do it once, before training, and keep the result",)


def act_on_culprit(culprit: Culprit | None) -> tuple[str, ...]:
    """The same for a culprit; nothing where it is no function of the program."""
    if culprit is None or culprit.file is None:
        return ()
    return act_on_inside(culprit.name, culprit.inside, culprit.statement)


def _modules_of(inside: str | None) -> set[str]:
    """The names of the package and modules on the path of a library's function."""
    path = (inside or "").partition(".py")[0].replace("\\", "/").split("/")
    return {_OF_NUMPY.get(part, part) if "numpy" in path else part for part in path}
