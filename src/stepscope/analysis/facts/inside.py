"""What to do about the work that a function of the program spends its time in: a query, an archive, text, pictures.

The work is told by the library's function furthest in that samples or calls show, and by the name of the function that
the statement calls, as the program writes it.
"""

from __future__ import annotations

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.statements import Statement
from stepscope.records import dataclass
from stepscope.vocabulary.patterns import Pattern


@dataclass(frozen=True)
class Work:
    """A kind of work that libraries do for a program.

    Attributes:
        libraries: packages and modules that do nothing else; functions: that only such work has.
        action: what helps.
        is_avoidable: a cheaper form of the same is known, or it is needed once: then it is worth a change wherever it
            takes time, also in the middle of a step.  What may be needed as it is, is that where it is most of it.
    """

    libraries: frozenset[str]
    functions: frozenset[str]
    action: str
    is_avoidable: bool = True


_WORK = (
    Work(
        frozenset({"sqlite3", "sqlalchemy", "duckdb", "psycopg", "psycopg2", "pymysql", "lmdb"}),
        frozenset({"execute", "executemany", "executescript", "fetchone", "fetchmany", "fetchall"}),
        "if a query searches the whole table, create an index on the columns that it asks for (CREATE INDEX); or ask"
        " for all rows of a batch in one query",
    ),
    Work(
        frozenset({"h5py", "zarr", "netCDF4", "xarray"}),
        frozenset(),
        "each read unpacks all chunks that it touches: store the array in chunks of the shape that a batch takes, such"
        " as chunks=(batch, columns), or read it into memory once, before the loop",
    ),
    Work(
        frozenset({"zipfile", "gzip", "zlib", "bz2", "lzma", "tarfile", "zstandard", "lz4", "_compression", "_npyio"}),
        frozenset({"decompress"}),
        "what it unpacks is unpacked again for each sample: unpack it once, and keep the arrays, or store them unpacked"
        " (.npy with numpy.load(path, mmap_mode='r'))",
    ),
    Work(
        frozenset({"json", "csv", "ast", "re", "yaml", "xml", "html", "pickle", "tomllib", "orjson", "ujson"}),
        frozenset({"literal_eval", "raw_decode", "fromstring", "genfromtxt", "loadtxt", "strptime"}),
        "parse that text once, before training, and store arrays",
    ),
    Work(
        frozenset({"PIL", "cv2", "imageio", "skimage", "simplejpeg", "turbojpeg"}),
        frozenset({"imread", "imdecode"}),
        "store the pictures at the size that the model takes, before training, or let the decoder make them smaller"
        " (Image.draft, cv2.IMREAD_REDUCED_COLOR_2)",
    ),
    Work(
        frozenset({"pandas", "polars", "pyarrow"}),
        frozenset({"iloc", "loc"}),
        "take what it looks up out of the table once, before training: arrays of its columns, and an index of its rows",
    ),
    Work(
        frozenset({"copy"}),
        frozenset({"deepcopy"}),
        "copy only what changes, or keep one copy and write into it; a model's state needs no deepcopy to be read",
    ),
    Work(
        frozenset(),
        frozenset({"_minor_index_fancy", "_minor_slice", "getrow", "getcol"}),
        "the matrix is stored along the other axis, so that each access reads all of it: convert it once, before the"
        " loop (.tocsr() to take rows, .tocsc() to take columns)",
    ),
    Work(
        frozenset(),
        frozenset({"np.einsum"}),
        "without a path it multiplies number by number, over all indices at once: pass optimize=True, or write it as"
        " matrix products (a @ b) and sums",
    ),
    Work(
        frozenset({"_shape_base_impl", "shape_base"}),
        frozenset({"vectorize", "apply_along_axis", "frompyfunc", "apply_over_axes"}),
        "it calls Python for each element: write the function with NumPy on whole arrays",
    ),
    Work(
        frozenset(),
        frozenset({"np.append", "np.insert", "np.delete", "np.concatenate", "np.vstack", "np.hstack"}),
        "it copies the whole array each time: write into an array that was made once, or collect parts in a list and"
        " join them at the end",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"np.sort", "np.argsort", "np.lexsort", "sorted", "permutation", "shuffle"}),
        "if only the largest, or a few, are needed, do not order all: numpy.argpartition, heapq.nlargest, or drawing"
        " numbers (rng.integers)",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"np.inv", "np.pinv", "np.det", "np.eig", "np.eigh", "np.svd", "np.cholesky", "np.lstsq"}),
        "factor only what changes: solve instead of inverting, svd(compute_uv=False) where vectors are not used, or"
        " keep the factors between steps",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"choice"}),
        "it prepares all candidates at each call: draw positions (rng.integers), or keep numpy.cumsum of the weights"
        " and use numpy.searchsorted",
        is_avoidable=False,
    ),
    Work(
        frozenset({"ndimage", "_interpolation"}),
        frozenset({"spline_filter", "zoom", "affine_transform", "map_coordinates"}),
        "order=1 costs a fraction of the default order of 3; or do it once, before training",
    ),
)
# Calls that give something else each time though they take the same: they draw, go on, or change what they belong to.
_DRAWS = Pattern(
    r"(?:.*\.)?(?:next|__next__|rand\w*|integers|normal|uniform|choice|sample|shuffle|permutation|multinomial|bernoulli"
    r"|get\w*|read\w*|recv\w*|pop\w*|step|append|extend|put|write\w*|sleep|wait|time|perf_counter|update|add|send\w*"
    r"|draw\w*|dropout)"
)
_WRAPPERS = ("_wrapfunc", "_wrapreduction", "_wrapit")  # of NumPy
_OF_NUMPY = {"_npyio_impl": "_npyio", "npyio": "_npyio", "_format_impl": "_npyio", "format": "_npyio"}

_LOADERS = ("torch/utils/data/", "keras/src/trainers/")  # these call the program: what takes time is not theirs


def draws_anew(called: str) -> bool:
    """Whether a call may give something else each time though it takes the same, by its name.

    >>> draws_anew("rng.integers"), draws_anew("self.shadow.state_dict")
    (True, False)
    """
    return _DRAWS.fullmatch(called) is not None


def act_on_inside(
    name: str, inside: str | None, statement: Statement | None, is_input: bool = False
) -> tuple[str, ...]:
    """What to do first about a function: about the work in it where that is known; else, where it makes input, about
    the function that it calls, which takes what the program has from the start.

    Args:
        inside: the library's function furthest in, such as `json/decoder.py:353 raw_decode`; None without one.
        statement: that holds most of its time; None where that is not known.
    """
    called = statement.called if statement is not None else ""
    inside = None if inside and inside.startswith(_LOADERS) else inside
    place = f" at {statement.place}" if statement is not None else ""
    what = called or (inside or "")
    if (work := work_in(inside, called)) is not None:
        return (f"{name} spends most of its time in {what}{place}: {work.action}",)
    if not what or not is_input:
        return ()
    return (f"make what {name} does in {what}{place} cheaper, or do it once, before training, and keep the result",)


def work_in(inside: str | None, called: str) -> Work | None:
    """The work that a function does in a library: by the library's function furthest in, such as
    `json/decoder.py:353 raw_decode`, and where that is not known by what the program calls, such as `json.loads`; None
    for none of these."""
    modules = _modules_of(inside) | set(called.split(".")[:-1])
    inner = (inside or "").rpartition(" ")[2]
    if inner in _WRAPPERS:  # they call whatever they are asked for
        inner = ""
    functions = {inner or called.rpartition(".")[2]} - {""}
    if modules & {"np", "numpy"}:
        functions |= {f"np.{each}" for each in functions}
    found = [work for work in _WORK if modules & work.libraries] + [
        work for work in _WORK if functions & work.functions
    ]
    return found[0] if found else None


def act_on_culprit(culprit: Culprit | None, is_input: bool = False) -> tuple[str, ...]:
    """The same for a culprit; nothing where it is no function of the program."""
    if culprit is None or culprit.file is None:
        return ()
    return act_on_inside(culprit.name, culprit.inside, culprit.statement, is_input)


def _modules_of(inside: str | None) -> set[str]:
    """The names of the package and modules on the path of a library's function."""
    path = (inside or "").partition(".py")[0].replace("\\", "/").split("/")
    return {_OF_NUMPY.get(part, part) if "numpy" in path else part for part in path}
