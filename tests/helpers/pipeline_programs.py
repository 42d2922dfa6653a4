"""tf.data pipelines with one slow stage each, recorded under TensorFlow's own profiler.

    python pipeline_programs.py LOGDIR [NAME...]

writes one profile per pipeline, or only those named, to LOGDIR/NAME.  `SLOW` says which iterator is slow in each, and
the dataset op behind it.  The stages are slow by what they do: matrix products, copies of large tensors, reading
compressed files, sleeping in Python.  Nothing of Stepscope is imported.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SECONDS = 0.25
MOST_STEPS = 40

# Name of a pipeline -> type of its slow iterator, what the name of its dataset op holds.
SLOW: dict[str, tuple[str, str]] = {
    "map": ("Map", "MapDataset"),
    "map_as_tensorflow_rewrites_it": ("MapAndBatch", "MapDataset"),
    "parallel_map": ("ParallelMapV2", "ParallelMapDataset"),
    "map_before_prefetch": ("Map", "MapDataset"),
    "python_map": ("Map", "MapDataset"),
    "batch": ("BatchV2", "BatchDataset"),
    "padded_batch": ("PaddedBatchV2", "PaddedBatchDataset"),
    "generator": ("Generator", "GeneratorDataset"),
    "interleave": ("Interleave", "InterleaveDataset"),
    "parallel_interleave": ("ParallelInterleaveV4", "ParallelInterleaveDataset"),
    "flat_map": ("FlatMap", "FlatMapDataset"),
    "tfrecord_files": ("TFRecord", "TFRecordDataset"),
    "interleaved_files": ("TFRecord", "TFRecordDataset"),
    "text_files": ("TextLine", "TextLineDataset"),
    "record_files": ("FixedLengthRecordV2", "FixedLengthRecordDataset"),
    "shuffle": ("Shuffle", "ShuffleDataset"),
    "filter": ("Filter", "FilterDataset"),
    "map_of_one_input": ("Map", "MapDataset"),
    "map_of_each_epoch": ("Map", "MapDataset"),
}
WARM_UP = 2
COLD = ("shuffle",)  # slow when it starts, so recorded from the first batch on


def pipelines(folder: Path) -> dict[str, Any]:
    """The datasets of `SLOW`; files are written below `folder`."""
    import tensorflow as tf

    data, auto = tf.data.Dataset, tf.data.AUTOTUNE
    numbers = data.range(1_000_000)
    as_written = tf.data.Options()
    as_written.experimental_optimization.apply_default_optimizations = False
    as_written.experimental_optimization.inject_prefetch = False

    def work(number: Any) -> Any:
        square = tf.random.stateless_uniform((320, 320), (1, 2)) + tf.cast(number, tf.float32) * 0
        for _ in range(4):
            square = square @ square * 1e-3
        return square[0, 0]

    def in_python(number: Any) -> Any:
        time.sleep(0.004)
        return number

    def slow_items() -> Iterator[float]:
        while True:
            time.sleep(0.004)
            yield 1.0

    def opened(number: Any) -> Any:
        return data.from_tensors(work(number))

    def kept(number: Any) -> Any:
        return (work(number) * 0 < 1) & (number % 4 == 0)

    large = data.from_tensors(tf.ones((600, 600))).repeat()
    ragged = data.from_tensors(tf.ones((400, 500))).repeat()
    files = _files(folder)
    packed = tf.data.TFRecordDataset(files["tfrecord"], "GZIP").repeat()
    text = data.from_tensors(files["text"]).repeat().flat_map(lambda name: tf.data.TextLineDataset(name, "GZIP"))
    records = tf.data.FixedLengthRecordDataset(files["records"], 1 << 20, compression_type="GZIP").repeat()
    both = data.zip((numbers.map(lambda number: number + 1), numbers.map(work)))
    found = {
        "map": numbers.map(work).batch(2),
        "parallel_map": numbers.map(work, num_parallel_calls=2).batch(2).prefetch(2),
        "map_before_prefetch": numbers.map(work).batch(2).prefetch(2),
        "python_map": numbers.map(lambda number: tf.py_function(in_python, [number], tf.int64)).prefetch(1),
        "batch": large.batch(24),
        "padded_batch": ragged.padded_batch(24, (500, 500)),
        "generator": data.from_generator(slow_items, output_signature=tf.TensorSpec((), tf.float32)).batch(2),
        "interleave": numbers.interleave(opened, cycle_length=2).batch(2),
        "parallel_interleave": numbers.interleave(opened, cycle_length=2, num_parallel_calls=2).batch(2).prefetch(auto),
        "flat_map": numbers.flat_map(opened).batch(2).prefetch(1),
        "tfrecord_files": packed.batch(2),
        "interleaved_files": data.from_tensors(files["tfrecord"])
        .repeat()
        .interleave(lambda name: tf.data.TFRecordDataset(name, "GZIP"), cycle_length=2, num_parallel_calls=2)
        .batch(2),
        "text_files": text.batch(2),
        "record_files": records.batch(2),
        "shuffle": numbers.shuffle(60_000).batch(4),
        "filter": numbers.filter(kept).batch(2).prefetch(1),
        "map_of_one_input": both.batch(2).prefetch(1),
        "map_of_each_epoch": data.range(4).map(work).batch(2),
    }
    found = {name: dataset.with_options(as_written) for name, dataset in found.items()}
    return found | {"map_as_tensorflow_rewrites_it": numbers.map(work).batch(2).prefetch(auto)}


def _files(folder: Path) -> dict[str, str]:
    """One compressed file of each sort, with a few large records that are slow to unpack."""
    import gzip

    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    paths = {sort: str(folder / sort) for sort in ("tfrecord", "text", "records")}
    record = bytes(range(32, 126)) * ((1 << 20) // 94 + 1)
    with tf.io.TFRecordWriter(paths["tfrecord"], "GZIP") as out:
        for _ in range(8):
            out.write(record)
    for sort, end in (("text", b"\n"), ("records", b"")):
        with gzip.open(paths[sort], "wb", compresslevel=1) as file:
            file.write((record[: (1 << 20) - len(end)] + end) * 8)
    return paths


def record(logdir: Path, name: str, dataset: Any) -> None:
    """Records `dataset` for SECONDS, but no more than MOST_STEPS batches."""
    import tensorflow as tf

    batches = _endless(dataset) if name == "map_of_each_epoch" else iter(dataset)
    for _ in range(0 if name in COLD else WARM_UP):
        next(batches)
    tf.profiler.experimental.start(str(logdir / name))
    end, step = time.perf_counter() + SECONDS, 0
    while step < MOST_STEPS and (step < WARM_UP or time.perf_counter() < end):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            next(batches)
        step += 1
    tf.profiler.experimental.stop()


def _endless(dataset: Any) -> Iterator[Any]:
    while True:
        yield from dataset


def main(logdir: Path, wanted: Callable[[str], bool] = bool) -> None:
    """Records every pipeline."""
    for name, dataset in pipelines(logdir / "files").items():
        if wanted(name):
            record(logdir, name, dataset)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    names = sys.argv[2:]
    main(Path(sys.argv[1]), names.__contains__ if names else bool)
