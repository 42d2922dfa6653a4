"""What to do about the work that a function of the program spends its time in: a query, an archive, text, pictures.

The work is told by the library's function furthest in that samples or calls show, and by the name of the function that
the statement calls, as the program writes it.
"""

from __future__ import annotations

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.statements import Statement
from stepscope.records import dataclass
from stepscope.vocabulary.python import modules_on_path


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


_WRITING = (
    "print write writelines writerow writerows flush fsync dump dumps iterencode _iterencode _iterencode_dict"
    " add_scalar add_scalars add_histogram add_image savefig np.save np.savez np.savetxt to_csv log_metric"
    " summary.scalar summary.histogram summary.image"
)
_PACKING = frozenset(
    {"zipfile", "gzip", "zlib", "bz2", "lzma", "tarfile", "zstandard", "lz4", "_compression", "_npyio"}
)
_SUMMARIES = frozenset({"summary"})
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
        _PACKING,
        frozenset({"decompress"}),
        "what it unpacks is unpacked again for each sample: unpack it once, and keep the arrays, or store them unpacked"
        " (.npy with numpy.load(path, mmap_mode='r'))",
    ),
    Work(
        _PACKING,
        frozenset({"np.savez_compressed", "savez_compressed", "_savez", "compress"}),
        "it packs and writes while the step waits: do so every N steps alone, or without packing (numpy.savez), or hand"
        " a copy to a thread",
    ),
    Work(
        frozenset({"json", "csv", "ast", "re", "yaml", "xml", "html", "pickle", "tomllib", "orjson", "ujson"}),
        frozenset({"literal_eval", "raw_decode", "fromstring", "genfromtxt", "loadtxt", "strptime"}),
        "parse that text once, before training, and store arrays",
    ),
    Work(
        frozenset({"json", "csv", "pickle", "tensorboard", "wandb", "mlflow", "logging"}),
        frozenset(_WRITING.split()),
        "it writes what the step does not need: write every N steps, or collect it and write it once",
    ),
    Work(
        frozenset({"PIL", "cv2", "imageio", "skimage", "simplejpeg", "turbojpeg"}),
        frozenset({"imread", "imdecode"}),
        "store the pictures at the size that the model takes, before training, or let the decoder make them smaller"
        " (Image.draft, cv2.IMREAD_REDUCED_COLOR_2)",
    ),
    Work(
        frozenset(),
        frozenset({"iterrows", "itertuples", "applymap", "apply_standard", "apply_series_generator"}),
        "it makes an object for each row, and calls Python with it: compute with whole columns, or with arrays of them"
        " (.to_numpy())",
    ),
    Work(
        frozenset({"concat"}),
        frozenset({"pd.concat", "pandas.concat"}),
        "it copies all rows each time: collect parts in a list, and join them once",
    ),
    Work(
        frozenset({"groupby", "merge", "pivot"}),
        frozenset(),
        "the rows are grouped, or joined, anew each time: do it once, before training, and keep arrays of the result,"
        " or the positions of each group (.indices)",
    ),
    Work(
        frozenset({"parsers", "parquet", "excel"}),
        frozenset({"read_csv", "read_table", "read_excel", "read_parquet", "read_feather", "read_hdf"}),
        "it reads the whole file each time: read it once, before training, and keep arrays",
    ),
    Work(
        frozenset({"pandas", "polars", "pyarrow"}),
        frozenset({"iloc", "loc"}),
        "take what it looks up out of the table once, before training: arrays of its columns, and an index of its rows",
    ),
    Work(
        frozenset({"librosa", "resampy", "soxr", "soundfile", "audioread", "torchaudio"}),
        frozenset(),
        "decode and resample the sound once, before training, and store arrays",
    ),
    Work(
        frozenset({"tokenizers", "tokenization_utils_base", "nltk", "spacy", "sentencepiece", "tiktoken"}),
        frozenset({"word_tokenize", "batch_encode_plus"}),
        "take the text apart once, before training, and store the numbers",
    ),
    Work(
        frozenset({"glob"}),
        frozenset({"os.listdir", "os.walk", "os.scandir", "rglob"}),
        "it reads the folder each time: list the files once, before the loop",
    ),
    Work(
        frozenset({"subprocess"}),
        frozenset({"os.system"}),
        "each call starts a process: call a library, or keep one process running and write to it",
    ),
    Work(
        frozenset({"multiprocessing"}),
        frozenset({"ForkingPickler"}),
        "it waits for another process, or unpacks what that sends: send fewer bytes (float32 or uint8, indices instead"
        " of arrays), or put arrays into memory that both see (torch.multiprocessing, multiprocessing.shared_memory)",
    ),
    Work(
        frozenset(),
        frozenset({"all_gather_object", "gather_object", "broadcast_object_list", "_object_to_tensor"}),
        "it pickles objects, and each rank unpacks those of all: send what is needed of them alone, as sums or counts"
        " in one tensor (torch.distributed.all_reduce), and where a report is due",
    ),
    Work(
        frozenset({"statistics"}),
        frozenset(),
        "it adds exactly, number by number: numpy.mean, numpy.std or statistics.fmean",
    ),
    Work(
        frozenset(),
        frozenset({"index"}),
        "it searches a list from its start each time: keep the position of each element in a dict, made once, before"
        " the loop",
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
        frozenset({"_insert_many", "_set_many"}),
        "each write into a sparse matrix moves all that comes after: collect rows, columns and values, and make the"
        " matrix once (scipy.sparse.coo_array)",
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
        frozenset({"np.random.choice"}),
        "without replacement it orders all candidates at each call: with rng = numpy.random.default_rng(),"
        " rng.choice(n, k, replace=False, shuffle=False) takes time for the k alone where they are few, and"
        " rng.integers(n, size=k) draws with replacement; of weights keep numpy.cumsum and use numpy.searchsorted",
    ),
    Work(
        frozenset(),
        frozenset({"random.sample", "random.choices"}),
        "it picks items one by one, and a deque walks to each from an end: keep the items in arrays, and take"
        " positions that rng.integers draws",
        is_avoidable=False,
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
        frozenset({"np.sort", "np.argsort", "np.lexsort", "sorted", "permutation", "randperm", "shuffle"}),
        "if only the largest, or a few, are needed, do not order all: numpy.argpartition, heapq.nlargest, or drawing"
        " numbers (rng.integers, torch.randint)",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset(
            {f"np.random.{name}" for name in ("normal", "randn", "rand", "random", "uniform", "standard_normal")}
        ),
        "numpy.random.default_rng() draws faster than numpy.random.*, and float32 faster still:"
        " rng.standard_normal(size, dtype=numpy.float32), rng.random(size, dtype=numpy.float32)",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"np.unique", "np._unique1d", "np.isin", "np.in1d", "np._in1d", "np.setdiff1d", "np.intersect1d"}),
        "it sorts all numbers: of whole numbers that are not large, numpy.bincount, or an array that is indexed by"
        " them, needs no order",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"np.at"}),
        "it goes number by number: numpy.bincount(rows, weights=values), or numpy.add.reduceat on rows in order",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"np.tile", "np.repeat"}),
        "it copies: let an axis of length 1 spread instead (x[:, None], numpy.broadcast_to)",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.LongTensor"}),
        "it converts a list of arrays number by number: make one array of them first,"
        " torch.from_numpy(numpy.stack(arrays)), or keep their numbers in one array from the start and index that",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"np.array", "np.asarray"}),
        "of a list it converts number by number, and an array of a framework is copied to the host: keep one array from"
        " the start, and compute where it is",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"np.convolve", "np.correlate", "convolve2d", "correlate2d"}),
        "it adds up each product: for more than some tens of weights scipy.signal.fftconvolve or oaconvolve is faster",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"cdist", "pdist", "KDTree", "cKDTree", "griddata", "interp1d"}),
        "if only the nearest points count, build scipy.spatial.KDTree of them once and ask it; what is built of points"
        " that stay, such as an interpolator, is needed once",
        is_avoidable=False,
    ),
    Work(
        frozenset(),
        frozenset({"toarray", "todense"}),
        "it writes out all zeros: take the rows of the batch first, and write out only these",
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
        frozenset(),
        frozenset({"gc.collect", "_xla_gc_callback"}),
        "it collects garbage, as Python does by itself: leave it out, or do it every N steps",
    ),
    Work(
        frozenset({"ndimage", "_interpolation"}),
        frozenset({"spline_filter", "zoom", "affine_transform", "map_coordinates"}),
        "order=1 costs far less than the default 3; or do it once, before training",
    ),
)
_WRAPPERS = ("_wrapfunc", "_wrapreduction", "_wrapit")  # of NumPy
_OF_NUMPY = {"_npyio_impl": "_npyio", "npyio": "_npyio", "_format_impl": "_npyio", "format": "_npyio"}

_LOADERS = ("torch/utils/data/", "keras/src/trainers/")  # these call the program: what takes time is not theirs


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
        much = "most" if statement is None or 2 * statement.share > 1 else "much"
        return (f"{much} of the time of {name} goes into {what}{place}: {work.action}",)
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
    if modules & (_PACKING | _SUMMARIES):  # what the program calls tells what for
        functions |= {called.rpartition(".")[2]} - {""}
    owners = modules
    if modules & {"np", "numpy"}:  # however it was imported
        owners = {"np", "np.random"} if "random" in modules else {"np"}
    functions |= {f"{owner}.{each}" for owner in owners for each in functions}
    by_name = [work for work in _WORK if functions & work.functions]
    by_library = [work for work in _WORK if modules & work.libraries]
    both = [work for work in by_library if work in by_name]
    # A name that pandas alone has tells more than that it is pandas.
    own = [work for work in by_name if work.is_avoidable and "pandas" in modules]
    found = [*both, *own, *by_library, *by_name]
    return found[0] if found else None


def act_on_culprit(culprit: Culprit | None, is_input: bool = False) -> tuple[str, ...]:
    """The same for a culprit; nothing where it is no function of the program."""
    if culprit is None or culprit.file is None:
        return ()
    return act_on_inside(culprit.name, culprit.inside, culprit.statement, is_input)


def _modules_of(inside: str | None) -> set[str]:
    """The names of the package and modules on the path of a library's function."""
    path = modules_on_path(inside or "")
    return {_OF_NUMPY.get(part, part) if "numpy" in path else part for part in path}
