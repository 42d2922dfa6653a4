"""Python calls as profilers record them.

$train.py:12 step                          TensorFlow's and JAX's tracer: file, line, function
$scipy/ndimage/zoom.py:9 zoom              Stepscope's, for a library: its path below site-packages
$<unknown> read                            the same for a function without a file
model/train.py(12): step                   PyTorch's
<built-in method read of _io.BufferedReader object at 0x7f>
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from stepscope.model import EventKind, Trait
from stepscope.vocabulary import native
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.tables import KindRule, NameTable
from stepscope.vocabulary.traits import CallTrait, CodeTrait, InputTrait, RangeTrait

# ---- Whose a Python file is ------------------------------------------------------------------------------------------
# known packages, the standard library, and files of frameworks whose traces name no folder.  PyTorch's profiler
# writes paths relative to the entries of `sys.path`, so that `scipy/ndimage/x.py` is scipy's without `site-packages`
# in its path.  TensorFlow's and JAX's tracer writes file names alone.


# By the first folder of a relative path.  Left out: names that projects give their own folders (`datasets`, `models`).
_PACKAGES_TEXT = """
PIL _pytest absl accelerate aiohttp albumentations apex astunparse attr attrs bitsandbytes boto3 botocore certifi
charset_normalizer chex click cloudpickle cupy cv2 dask dateutil decord deepspeed diffusers dill einops equinox
fastai filelock flash_attn flatbuffers flax fsspec functorch gast gcsfs grpc h5py haiku horovod httpx
huggingface_hub hydra idna imageio jax jaxlib joblib keras librosa lightning lightning_fabric lightning_utilities
llvmlite lmdb matplotlib mlflow ml_dtypes mpi4py mpmath networkx nltk numba numpy nvidia omegaconf opt_einsum optax
orbax packaging pandas peft pip pkg_resources polars psutil pyarrow pydantic pynvml pytorch_lightning pytz ray
requests s3fs safetensors scipy seaborn sentencepiece setuptools six skimage sklearn soundfile spacy stepscope sympy
tensorboard tensorboardX tensorflow tensorflow_datasets tensorflow_probability tensorstore termcolor timm tokenizers
torch torchaudio torchdata torchmetrics torchtext torchvision tqdm transformers triton trl typeguard urllib3 wandb
webdataset wrapt xformers yaml
"""
_PACKAGES = frozenset(_PACKAGES_TEXT.split())
_FRAMEWORKS = frozenset({"functorch", "jax", "jaxlib", "keras", "tensorflow", "torch", "triton"})  # they compute
_PARTS_OF_DATASETS = ("datasets/arrow_", "datasets/features/", "datasets/fingerprint", "datasets/formatting/",
                      "datasets/iterable_dataset", "datasets/table.py")  # fmt: skip
# Modules of the standard library that scripts are often called after.
_NOT_STANDARD = frozenset({"code", "profile", "statistics", "test", "this", "token", "trace"})
_STANDARD = sys.stdlib_module_names - _NOT_STANDARD

# Files of JAX, TensorFlow and NumPy that hardly anybody else has.
_FRAMEWORK_FILES_TEXT = """
abstract_arrays ad ad_checkpoint ad_util api api_util array array_constructors array_creation array_methods
atomic_function auto_control_deps autograph_util backprop basearray batching c_api_util compilation_cache compiler
composite_tensor concrete_function constant_op custom_derivatives custom_partitioning dataset_ops def_function
dispatch dtypes effects encoder execute fromnumeric func_graph function_type_utils iterator_ops jaxpr_util lax
lax_numpy linear_util literals lru_cache mesh_utils mlir monitoring named_sharding numeric numpy_compat
op_def_library op_shardings ops_deprecation partial_eval partition_spec pickle_util pjit pmap polymorphic_function
pretty_printer profiler profiler_v2 pxla readers reductions resource_variable_ops saved_model_exported_concrete
scalar_types shard_map sharding sharding_impls sharding_specs source_info_util stages structured_function
tensor_conversion tensor_shape tensor_spec tensor_util tf_decorator traceback_utils traceback_util
tracing_compilation tree tree_util type_spec ufunc_api ufuncs xla xla_bridge xla_metadata_lib
"""
_FRAMEWORK_FILES = frozenset(_FRAMEWORK_FILES_TEXT.split())
# Files that frameworks have as well as programs: whose they are, only what calls them tells.
_ANYONES_TEXT = """
__init__ base common config context core deprecation device error errors fetch function layers layout losses mesh nn ops
options path registry tensor transform util utils
"""
_ANYONES = frozenset(_ANYONES_TEXT.split())
_ANYONES_ENDINGS = ("_ops", "_lib", "_impl", "_util", "_utils")  # how TensorFlow and Keras call most of theirs


def is_of_package(path: str) -> bool:
    """True for a path relative to an entry of `sys.path` that leads into a known package or the standard library.

    >>> is_of_package("scipy/ndimage/x.py"), is_of_package("threading.py"), is_of_package("project/train.py")
    (True, True, False)
    """
    path = path.replace("\\", "/")
    if path.startswith(("/", ".")) or path[1:2] == ":":
        return False
    root = path.partition("/")[0].removesuffix(".py")
    return root in _PACKAGES or root in _STANDARD or path.startswith(_PARTS_OF_DATASETS)


def is_framework_file(name: str) -> bool:
    """True for the name of a file, without its folder, of a framework or the standard library.

    Modules whose names start with an underscore are what libraries keep to themselves; a program has no reason to.

    >>> is_framework_file("pjit.py"), is_framework_file("random.py"), is_framework_file("utils.py")
    (True, True, False)
    >>> is_framework_file("_npyio_impl.py"), is_framework_file("__main__.py")
    (True, False)
    """
    stem = name.removesuffix(".py")
    is_private = stem.startswith("_") and not stem.startswith("__")
    return is_private or stem in _FRAMEWORK_FILES or (stem in _STANDARD and stem not in _ANYONES)


def is_anyones_file(name: str) -> bool:
    """True for the name of a file, without its folder, that frameworks have as well as programs.

    >>> is_anyones_file("utils.py"), is_anyones_file("weak_tensor_ops.py"), is_anyones_file("train.py")
    (True, True, False)
    """
    stem = name.removesuffix(".py")
    return stem in _ANYONES or stem.endswith(_ANYONES_ENDINGS)


KINDS: tuple[KindRule, ...] = ((r"\$", EventKind.PYTHON_CALL, Trait.NONE),)

_FRAME = Pattern(r"\$?[^<>]*\.py[(:]\d{1,9}")
_PLACE = Pattern(r"\$?(?P<file>[^<>]*\.py)[(:](?P<line>\d{1,9})\)?:? (?P<name>.*)")
_LIBRARY = Pattern(
    r"\$?(?:.*[/\\](?:site|dist)-packages[/\\]|(?:.*[/\\])?(?:torch|tensorflow|jax|keras|numpy|importlib|_?contextlib)[/\\.]"
    r"|.*[/\\]lib[/\\]python3\.\d+[/\\]|(?:.*[/\\])?__autograph_generated_file|.*[/\\]torchinductor_|<"
    r"|\$api\.py:\d+ (?:block_until_ready|try_to_block)$"
    # Traces of JAX and TensorFlow name files without their folder: these are their own.
    r"|\$(?:array_methods|pjit|ad|partial_eval|linear_util|traceback_utils?|mlir|lax_numpy|batching|api_util|tree_util"
    r"|pxla|ufuncs|source_info_util|polymorphic_function|tracing_compilation|concrete_function|atomic_function"
    r"|def_function|tensor_conversion_registry|function_type_utils)\.py:)"
)
# Names of functions that train, or that write something: these make no input.
_TRAINS = r"(?!.*[ .]\w*(?:train|test|eval|update|on_|optim|loss|backward|step|write|report|print|dump|log_)\w*$)"
_STARTS_THREADS = Pattern(r"\$(?:threading|thread)\.py:\d{1,9} ")
_PART_OF_STEP = Pattern(
    r"(?i)[ .](?:<(?:genexpr|listcomp|dictcomp|setcomp)>|\w*loss\w*|\w*(?:forward|backward|back_?prop)\w*"
    r"|_*(?:call|predict|evaluate|accuracy)_*)$"
)
_OF_LIBRARY = Pattern(r".*(?:-packages/|/lib/python3(?:\.\d+)?/)")
_MAY_SLEEP = Pattern(
    r"(?:.*\.)?(?:sleep|acquire|wait\w*|join|get|result|recv\w*|read\w*|select|poll|accept|connect|urlopen|request|post"
    r"|fsync)"
)
_READS_VALUE = Pattern(r"float|int|bool|(?:.*\.)?(?:item|tolist|numpy|asarray|device_get|block_until_ready)")
_SLEEPS = Pattern(r"(?:.*\.)?(?:sleep|select|poll|accept|connect|recv\w*|urlopen)")
_WRITES_FILE = Pattern(r"open|(?:.*\.)?(?:write\w*|flush|fsync)|os\.(?:replace|rename)|shutil\.(?:move|copy\w*)")
_SAVES_ARRAYS = Pattern(r"(?:.*\.)?savez(?:_compressed)?|(?:np|numpy)\.save")
_GIVES_ANEW = Pattern(
    r"(?:.*\.)?(?:next|__next__|rand\w*|integers|normal|uniform|choice|sample|shuffle|permutation|multinomial|bernoulli"
    r"|get\w*|read\w*|recv\w*|pop\w*|step|reset|append|extend|put|write\w*|sleep|wait|time|perf_counter|update|add"
    r"|send\w*|draw\w*|dropout)"
)
_TRAINING_FUNCTION = Pattern(r"(?i).*(?:train|update|grad|fit|optim|step|back_?prop)")


def starts_threads(frame: str) -> bool:
    """True for the functions of Python that start a thread, or the task of a pool.

    >>> starts_threads("$threading.py:988 _bootstrap"), starts_threads("$train.py:8 load")
    (True, False)
    """
    return _STARTS_THREADS.match(frame) is not None


def is_frame(name: str) -> bool:
    """True for a recorded Python call, by the form of its name."""
    return name.startswith("$") or "): " in name


def is_of_user(frame: str) -> bool:
    """True for a frame of a file that belongs to no library, as far as its name says.

    >>> is_of_user("train.py(12): step"), is_of_user("/usr/lib/python3.11/site-packages/torch/nn/x.py(3): f")
    (True, False)
    >>> is_of_user("scipy/ndimage/x.py(3): zoom"), is_of_user("$pjit.py:3 f"), is_of_user("$train.py:3 step")
    (False, False, True)
    """
    if _FRAME.match(frame) is None or _LIBRARY.match(frame) is not None:
        return False
    file = place_of(frame)[1] or ""
    without_folder = frame.startswith("$") and "/" not in file
    return not (is_framework_file(file.removeprefix("$")) if without_folder else is_of_package(file))


def is_outside_of_frameworks(frame: str) -> bool:
    """True for a frame of the user, or of a library that brings models or loops and computes by a framework.

    >>> is_outside_of_frameworks("transformers/models/x.py(3): forward"), is_outside_of_frameworks("train.py(3): step")
    (True, True)
    >>> is_outside_of_frameworks("/usr/lib/python3.11/site-packages/torch/nn/x.py(3): f")
    False
    """
    root, folder, _ = below_packages(place_of(frame)[1] or "").removeprefix("$").partition("/")
    return is_of_user(frame) or bool(folder and root in _PACKAGES and root not in _FRAMEWORKS)


def may_be_library(frame: str) -> bool:
    """True for a frame of a file name without a folder that frameworks have as well as programs."""
    return frame.startswith("$") and is_anyones_file(place_of(frame)[1] or "")


PLAIN = "python"  # the framework of a program that has none
CODE_OF_MODULE = "<module>"  # how Python names code outside of any function


def place_of(frame: str) -> tuple[str, str | None, int | None]:
    """The function, file and line of a recorded Python call; its whole text and None if it has no file.

    >>> place_of("$train.py:9 __getitem__"), place_of("model/train.py(12): step")
    (('__getitem__', 'train.py', 9), ('step', 'model/train.py', 12))
    """
    found = _PLACE.match(frame)
    return (found["name"], found["file"], int(found["line"])) if found else (frame, None, None)


class SampledStatement(NamedTuple):
    """The name of a sampled statement, taken apart: the frame that it is in, its line, what it calls, and its flow.

    Attributes:
        loop: the line of the innermost loop of the function around it, 0 for none.
        is_same: its call takes nothing that this loop changes.
        carries: a name that each round of the loop, with this statement, needs of the one before; empty for none.
        to: the lines of the function that take its result; None where that was not recorded.
        is_returned, is_kept: the function gives it back, or stores it where others may take it.
    """

    frame: str
    line: int
    called: str
    loop: int = 0
    is_same: bool = False
    carries: str = ""
    to: frozenset[int] | None = None
    is_returned: bool = False
    is_kept: bool = False


_BUILT_IN = Pattern(r"<built-in (?:method|function) (\S+)(?: of .*)?>")


def plain_built_in(name: str) -> str:
    """The name of a built-in function as a program writes it; any other name as it is.

    >>> plain_built_in("<built-in method matmul of M object at 0x7ba1>")
    'matmul'
    """
    found = _BUILT_IN.fullmatch(name)
    return found[1] if found else name


def statement_of(name: str) -> SampledStatement:
    """A statement by the name of its event.

    >>> said = statement_of("$train.py:9 fit @14 next loop=12 carries=state to=15,return")
    >>> said.frame, said.line, said.called, said.loop, said.carries, said.to, said.is_returned
    ('$train.py:9 fit', 14, 'next', 12, 'state', frozenset({15}), True)
    """
    frame, _, rest = name.rpartition(" @")
    line, *words = rest.split(" ")
    flow = dict(word.split("=", 1) for word in words if "=" in word)
    called = next((word for word in words if "=" not in word), "")
    loop, said = int(flow.get("loop", 0)), SampledStatement(frame, int(line), called)
    if "to" not in flow:
        return said
    to = flow["to"].split(",") if flow["to"] else []
    return said._replace(
        loop=loop, is_same="same" in flow, carries=flow.get("carries", ""),
        to=frozenset(int(each) for each in to if each.isdigit()),
        is_returned="return" in to, is_kept="kept" in to,
    )  # fmt: skip


def below_packages(file: str) -> str:
    """The path of a library's file below the folder that libraries are installed in; any other path as it is.

    >>> below_packages("/usr/lib/python3/dist-packages/numpy/ma.py"), below_packages("/usr/lib/python3.11/zipfile.py")
    ('numpy/ma.py', 'zipfile.py')
    """
    path = file.replace("\\", "/")
    inside = _OF_LIBRARY.match(path)
    return path[inside.end() :] if inside else file


_CALLS_OF_LAYERS = frozenset({"forward", "call", "__call__"})  # by PyTorch, Keras and Flax


def modules_on_path(place: str) -> list[str]:
    """The package and modules on the path of a library's function, whose place is written `file:line name`.

    >>> modules_on_path("scipy/ndimage/zoom.py:9 zoom"), modules_on_path("zoom")
    (['scipy', 'ndimage', 'zoom'], ['zoom'])
    """
    return place.partition(".py:")[0].replace("\\", "/").split("/")


def runs_layer(function: str) -> bool:
    """True for the method of a layer that its framework calls to compute the layer.

    >>> runs_layer("Net.forward"), runs_layer("forward_all")
    (True, False)
    """
    return function.rpartition(".")[2] in _CALLS_OF_LAYERS


def is_part_of_step(frame: str) -> bool:
    """True for a function whose name says that it computes a part of a step, and for what collects the elements of a
    list: what these call again and again are samples, layers or nodes.

    >>> [is_part_of_step(f"$net.py:3 {name}") for name in ("loss", "MLP.__call__", "<listcomp>", "fit", "main")]
    [True, True, True, False, False]
    """
    return _PART_OF_STEP.search(frame) is not None


def may_give_anew(called: str) -> bool:
    """Whether a call may give something else each time though it takes the same, as far as its name says: it draws,
    goes on, or changes what it belongs to.

    >>> may_give_anew("rng.integers"), may_give_anew("self.shadow.state_dict")
    (True, False)
    """
    return _GIVES_ANEW.fullmatch(called) is not None


def may_sleep(called: str) -> bool:
    """Whether a call may wait for a time, a lock, another thread, a file or a server, as far as its name says.

    >>> may_sleep("time.sleep"), may_sleep("self.queue.get"), may_sleep("self.optimizer.step")
    (True, True, False)
    """
    return _MAY_SLEEP.fullmatch(called) is not None


def sleeps(called: str) -> bool:
    """Whether a call uses no processor and waits for no other thread of the program, by what it is called.

    >>> sleeps("time.sleep"), sleeps("self.lock.acquire")
    (True, False)
    """
    return _SLEEPS.fullmatch(called) is not None


def reads_value(called: str) -> bool:
    """Whether a call reads the value of an array, and so waits until it is computed, by what it is called.

    >>> reads_value("float"), reads_value("loss.item"), reads_value("np.asarray"), reads_value("round")
    (True, True, True, False)
    """
    return _READS_VALUE.fullmatch(called) is not None


def writes_file(called: str) -> bool:
    """Whether a call writes a file, or puts it in its place, by what it is called.

    >>> writes_file("os.replace"), writes_file("file.write"), writes_file("text.replace")
    (True, True, False)
    """
    return _WRITES_FILE.fullmatch(called) is not None


def saves_arrays(called: str) -> bool:
    """Whether a call writes arrays into a file of NumPy, by what it is called.

    >>> saves_arrays("np.savez_compressed"), saves_arrays("numpy.save"), saves_arrays("self.save")
    (True, True, False)
    """
    return _SAVES_ARRAYS.fullmatch(called) is not None


def is_training_function(name: str) -> bool:
    """True for the name of a training function, or of a program compiled from one."""
    return _TRAINING_FUNCTION.match(name) is not None


NAMES: tuple[NameTable, ...] = (
    # Functions whose name, the part after the last space, says what they do.
    NameTable(
        applies=is_frame,
        rules=(
            (
                CallTrait.SAVES_STATE,
                r".*[ .](?:(?!_save_to_state_dict$)\w*(?:save(?!d)|checkpoint|ckpt|snapshot|serialize)\w*|to_bytes)$"
                r"|.*pickle\w* \w*dumps?$|.*(?:orbax|checkpoint)\w*/",
            ),
            (
                CallTrait.MAKES_INPUT,
                rf"{_TRAINS}.*[ .](?:__next__|__getitem__|\w*collate\w*|\w*augment\w*|\w*token\w*|\w*preprocess\w*"
                r"|\w*(?:batch|batches|dataset|loader|examples?|samples?|records?|images?|inputs?)"
                r"|\w*(?:load|read|decode|fetch)_\w+)$"
                r"|.*(?:torch/utils/data|/grain/|tensorflow_datasets)",
            ),
            (
                CallTrait.READS_VALUE,
                r".*[ .](?:_value|item|_item|tolist|device_get|__float__|__int__|__bool__|__array__)$",
            ),
            (CallTrait.WAITS, r".*[ .](?:block_until_ready|try_to_block|synchronize)$"),
        ),
    ),
    NameTable(rules=((RangeTrait.OF_RECORDER, r"(?:.*[/$])?profiler\.py[:(]\d+\)?:? (?:start|stop)_\w+"),)),
    NameTable(rules=((CodeTrait.IS_CODE, rf"\$.*\.py:\d+ |.*\.py\(\d+\): |{native.IS_FRAME}"),)),
    NameTable(rules=((CodeTrait.OF_USER, is_of_user), (CodeTrait.OF_USER, native.OF_PROGRAM))),
    NameTable(rules=((InputTrait.OF_KERAS, r".*/keras/.*/py_dataset_adapter"),)),
    NameTable(rules=((CodeTrait.MAY_BE_LIBRARY, may_be_library),)),
    NameTable(rules=((CodeTrait.PART_OF_FUNCTION, r".* <(?:genexpr|listcomp|dictcomp|setcomp)>$"),)),
    NameTable(
        rules=(
            (CodeTrait.IMPORTS, r"\$?<frozen importlib"),
            (
                CodeTrait.OF_SAVER,
                r".*(?:keras/src/saving/|torch/(?:serialization\.py|distributed/checkpoint/)|safetensors/|orbax/"
                r"|flax/(?:serialization\.py|training/checkpoints)|tensorflow/python/(?:checkpoint/|saved_model/"
                r"|training/saver)).*[ .]\w*(?:save(?!d)|write|serialize|to_bytes)\w*$",
            ),
            (
                CodeTrait.READS_FILE,
                r".*[ .](?:fromfile|open|readinto|readlines?|read|read_array\w*|imread|mmap|load)$"
                r"|<built-in (?:function (?:fromfile|open)"
                r"|method read\w* of _io\.(?:Buffered\w+|FileIO|TextIOWrapper)\b.*)>$",
            ),
            (
                CodeTrait.READS_DATA,
                r".*\b(?:h5py/_hl/dataset\.py.* __getitem__|zarr/\S+ (?:__getitem__|get_\w+)"
                r"|PIL/\S+ (?:load|decode|draft|open|_decode\w*)|soundfile\S+ _?read\w*"
                r"|(?:zipfile|gzip|tarfile)\S* read\w*"
                r"|pyarrow/\S+ read\w*|lmdb/|imageio/\S+ (?:imread|read|get_data)"
                r"|numpy/lib/_?(?:npyio|format)\w*\.py\S+ (?:load|read_\w+|__getitem__|_?read\w*|loadtxt|genfromtxt))$",
            ),
            (
                CodeTrait.IS_NATIVE,
                r"\$(?:numpy|<unknown>|scipy|PIL|cv2|_imaging)\b|.*/(?:numpy|scipy|PIL|cv2|skimage)/",
            ),
            (
                CodeTrait.SLEEPS,
                r"(?:\$(?:time|select|_?socket|_ssl|<unknown>) |<built-in (?:function|method) )"
                r"(?:sleep|recv\w*|select|poll|accept|connect|acquire)\b",
            ),
        )
    ),
    NameTable(
        rules=(
            (
                CodeTrait.AWAITS_PEER,
                r"(?:\$(?:select|_?socket|_ssl) |<built-in (?:function|method) )(?:recv\w*|select|poll|accept)\b"
                r"|\$?(?:.*/)?(?:poll|selectors|socket|connection)\.py(?::\d+|\(\d+\):)"
                r" (?:poll|select|recv\w*|accept)$",
            ),
        )
    ),
    NameTable(
        rules=(
            (
                CodeTrait.BLOCKS,
                r"\$?(?:.*/)?(?:threading|queue|_base|thread)\.py(?::\d+|\(\d+\):) (?:wait|get|acquire|join|result)$",
            ),
        )
    ),
    NameTable(rules=((InputTrait.STARTS_PROCESS, r"(?:.*/)?multiprocessing/process\.py\(\d+\): start$"),)),
)
