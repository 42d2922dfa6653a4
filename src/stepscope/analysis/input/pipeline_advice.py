"""What to change about a slow stage of a tf.data pipeline."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Patterns for the type of an iterator without its version; the first match wins.  `{op}` is the dataset op,
# `{avoid}` what was recorded and is better avoided.
# Keras feeds a PyDataset through the same iterators as any generator, so a trace cannot distinguish them.
_RULES: tuple[tuple[str, str], ...] = (
    (
        r"TFRecord|TextLine|FixedLengthRecord",
        "reading files is slow in {op}: read several at once, {reader}Dataset(files, "
        "num_parallel_reads=tf.data.AUTOTUNE, buffer_size=8 << 20) or "
        ".interleave(open_file, num_parallel_calls=tf.data.AUTOTUNE), and pack small files",
    ),
    (
        r"SSTable|RecordIO|ArrayRecord|LMDB|Csv|Sql|Parquet|Bigtable|Snapshot|TFColumn",
        "reading files is slow in {op}: read several at once with .interleave(open_file, "
        "num_parallel_calls=tf.data.AUTOTUNE), pack small files, and end with .prefetch(tf.data.AUTOTUNE)",
    ),
    (
        r"Generator",
        "the Python behind {op} is slow: give a keras.utils.PyDataset (Sequence) workers=4, use_multiprocessing=True, "
        "max_queue_size=10; replace from_generator with TensorFlow ops or files",
    ),
    (
        r"FromTensor|TensorSlice|SparseTensorSlice|Range|Random",
        "the source {op} itself is slow: make fewer, larger elements, e.g. slice whole batches instead of single "
        "examples",
    ),
    (r"DataService", "{op} waits for the tf.data service: profile its workers, or start more workers"),
    (
        r"MapAndBatch of brief elements",
        "the .map() before .batch() in {op} takes {brief} us for an element, mostly the cost of a call: map whole "
        "batches, .batch(n).map(fn); parallel calls gain little",
    ),
    (
        r"MapAndBatch of a ParallelMap",
        "the .map() before .batch() in {op} is slow though it runs in parallel: {avoid}.cache() what stays the "
        "same, behind it; map whole batches",
    ),
    (
        r"MapAndBatch",
        "the .map() before .batch() in {op} is slow: use .map(fn, num_parallel_calls=tf.data.AUTOTUNE), map whole "
        "batches, .cache() what stays the same, end with .prefetch(tf.data.AUTOTUNE)",
    ),
    (
        r"ParallelMap",
        "the .map() in {op} is slow though parallel: {avoid}.cache() what stays the same, behind it; map whole "
        "batches; if fixed, num_parallel_calls=tf.data.AUTOTUNE",
    ),
    (
        r"Map|Scan|ParseExample",
        "the .map() in {op} runs on one element at a time: use .map(fn, num_parallel_calls=tf.data.AUTOTUNE), map "
        "whole batches, {avoid}.cache() what stays the same",
    ),
    (
        r"(?:Legacy)?ParallelInterleave",
        "opening and reading the inputs of .interleave() in {op} is slow: raise cycle_length, make its "
        "function cheaper, and pack small files into larger ones",
    ),
    (
        r"(?:Interleave|FlatMap|WeightedFlatMap) without files",
        "{op} makes a dataset for each element, which costs more than what it holds: make its elements with ops on"
        " whole tensors instead, before training or in .map() with .unbatch() behind it; windows by"
        " keras.utils.timeseries_dataset_from_array, tf.signal.frame, or rows of indices for tf.gather",
    ),
    (
        r"Interleave|FlatMap|WeightedFlatMap",
        "{op} opens and reads its inputs one after the other: replace it with .interleave(open_input, cycle_length=8, "
        "num_parallel_calls=tf.data.AUTOTUNE), with fewer, larger inputs",
    ),
    (
        r"DirectedInterleave|Zip|Concatenate",
        "{op} combines its inputs one element at a time: batch each input before combining",
    ),
    (
        r"ParallelFilter|Filter",
        "the predicate of .filter() in {op} is slow or drops many elements: filter earlier and on less data, or "
        ".cache() the result",
    ),
    (
        r"ParallelBatch",
        "copying elements into batches is slow in {op}: use smaller elements or fewer batches, e.g. decode "
        "and resize before .batch(), or use narrower dtypes",
    ),
    (
        r"PaddedBatch|Batch|Unbatch|Rebatch|Window|GroupBy\w*",
        "copying elements into batches is slow in {op}: .batch(n, num_parallel_calls=tf.data.AUTOTUNE), keep "
        "elements small until then, use narrower dtypes, and .prefetch(tf.data.AUTOTUNE) at the end",
    ),
    (
        r"Shuffle",
        "filling and drawing from the buffer of .shuffle() in {op} is slow: lower buffer_size, or shuffle "
        "file names instead of decoded elements",
    ),
    (
        r"Memory\w*|File(?:Reader|Writer|Cache)\w*|Cache\w*",
        "{op} is filling or reading a cache: the first epoch is slow by design; cache elements while they are small",
    ),
    (
        r"Prefetch",
        "nothing that {op} waited for was recorded: no stage before it is slow; if batches are tiny, make them larger",
    ),
)
# An element that takes less is mostly the cost of calling the function and its ops: where rows of text took 65 us each,
# parsing whole batches made steps 4.7 times as fast, and parallel calls made them slower.
BRIEF_US = 100.0
_OF_DATASETS = re.compile(r"Interleave|FlatMap|WeightedFlatMap")
_READS_FILES = re.compile("|".join(pattern for pattern, _ in _RULES[:2]))
_COMPILED = tuple((re.compile(f"(?:{pattern})(?:V\\d+)?$"), text) for pattern, text in _RULES)
_VERSION = re.compile(r"V\d+$")
_OTHER = (
    "{op} is slow: make fewer, larger elements, run expensive work in .map(fn, "
    "num_parallel_calls=tf.data.AUTOTUNE), and .prefetch(tf.data.AUTOTUNE) at the end"
)
_DEVICE_WAITS = (
    "the device waits for the host's pipeline, which may run in another process: look there, and end it with "
    ".prefetch(tf.data.AUTOTUNE)"
)


def makes_datasets(iterator: str, inputs: Sequence[str]) -> bool:
    """Whether a stage makes a dataset for each element, of elements that lie in memory.

    Args:
        iterator: its type; inputs: the types of the iterators that it takes from.
    """
    return bool(_OF_DATASETS.match(iterator) and inputs) and not any(map(_READS_FILES.match, inputs))


def suggestion(
    iterator: str,
    dataset_op: str,
    on_device: bool,
    runs_python: bool = False,
    element_us: float | None = None,
    inputs: Sequence[str] = (),
) -> str:
    """What to change about a bottleneck.

    Args:
        iterator: the type, such as `ParallelMapV2`.
        dataset_op: the name of its dataset op, such as `MapDataset:3`; may be empty.
        on_device: it belongs to a pipeline that fetches from a host's pipeline.
        runs_python: the capture holds a Python function that a graph called.
        element_us: how long it takes for each element that it takes in; None if that is not known.
        inputs: the types of the iterators that it takes from.
    """
    if on_device:
        return _DEVICE_WAITS
    # TensorFlow fuses a map and the batch after it; only the name of the fused op shows how the map ran.
    fused = iterator.startswith("MapAndBatch") and "ParallelMap" in dataset_op
    # The last stage is always named Root; its dataset op shows what it does.
    own = dataset_op.partition("Dataset")[0] if iterator == "Root" else iterator
    kind = "MapAndBatch of a ParallelMap" if fused else own
    brief = element_us if own.startswith("MapAndBatch") and not runs_python else None
    if brief is not None and brief < BRIEF_US:
        kind = "MapAndBatch of brief elements"
    if makes_datasets(own, inputs):
        kind = f"{own} without files"
    text = next((text for pattern, text in _COMPILED if pattern.match(kind)), _OTHER)
    reader = _VERSION.sub("", own)
    avoid = "avoid tf.py_function, " if runs_python else ""
    return text.format(
        op=f"{iterator} ({dataset_op})" if dataset_op else iterator,
        reader=reader,
        avoid=avoid,
        brief=round(brief or 0.0),
    )
