"""Whose a Python file is: known packages, the standard library, and files of frameworks whose traces name no folder.

PyTorch's profiler writes paths relative to the entries of `sys.path`, so that `scipy/ndimage/x.py` is scipy's without
`site-packages` in its path.  TensorFlow's and JAX's tracer writes file names alone.
"""

from __future__ import annotations

import sys

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
__init__ base common config context core device error errors function layers layout losses mesh nn ops options path
registry tensor transform util utils
"""
_ANYONES = frozenset(_ANYONES_TEXT.split())


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
    """True for the name of a file, without its folder, that frameworks have as well as programs."""
    return name.removesuffix(".py") in _ANYONES
