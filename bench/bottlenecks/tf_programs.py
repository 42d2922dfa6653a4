"""TensorFlow programs with one bottleneck each."""

from __future__ import annotations

import argparse
import math
import random
import zlib
from collections.abc import Iterator
from itertools import pairwise

import keras
import numpy as np
import tensorflow as tf

from bench.bottlenecks.harness import scratch, switches, train_tf

Args = argparse.Namespace


def _dense(inputs: int, width: int, depth: int) -> list[tf.Variable]:
    rng = np.random.default_rng(0)
    sizes = [inputs] + [width] * depth
    return [tf.Variable(rng.standard_normal((a, b), dtype=np.float32) / math.sqrt(a)) for a, b in pairwise(sizes)]


def _update(weights: list[tf.Variable], x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        for weight in weights:
            x = tf.tanh(x @ weight)
        loss = tf.reduce_mean(x * x)
    for weight, grad in zip(weights, tape.gradient(loss, weights), strict=True):
        weight.assign_sub(0.01 * grad)
    return loss


def _trigrams(text: str) -> list[int]:
    return [zlib.crc32(text[at : at + 3].encode()) % 512 for at in range(128)]


def py_function(args: Args) -> None:
    """input_python: tf.py_function tokenizes each text."""
    texts = ["".join(random.choices("abcdefgh", k=140)) for _ in range(512)]
    if args.slow:
        data = tf.data.Dataset.from_tensor_slices(texts).repeat()
        data = (
            data.map(
                lambda t: tf.ensure_shape(
                    tf.py_function(lambda s: np.array(_trigrams(s.numpy().decode()), np.float32), [t], tf.float32),
                    [128],
                )
            )
            .batch(128)
            .prefetch(2)
        )
    else:
        ready = np.array([_trigrams(text) for text in texts], np.float32)
        data = tf.data.Dataset.from_tensor_slices(ready).repeat().batch(128).prefetch(2)
    _train_on(args, data, 128, 512)


def generator(args: Args) -> None:
    """input_python: a Python generator feeds the dataset sample by sample."""
    texts = ["".join(random.choices("abcdefgh", k=140)) for _ in range(512)]

    def samples() -> Iterator[np.ndarray]:
        while True:
            for text in texts:
                yield np.array(_trigrams(text), np.float32)

    if args.slow:
        data = tf.data.Dataset.from_generator(samples, output_signature=tf.TensorSpec((128,), tf.float32))
        data = data.batch(128).prefetch(2)
    else:
        ready = np.array([_trigrams(text) for text in texts], np.float32)
        data = tf.data.Dataset.from_tensor_slices(ready).repeat().batch(128).prefetch(2)
    _train_on(args, data, 128, 512)


def _train_on(args: Args, data: tf.data.Dataset, inputs: int, width: int) -> None:
    weights, batches = _dense(inputs, width, 3), iter(data)
    update = tf.function(lambda x: _update(weights, x))
    train_tf(args, lambda _: update(next(batches)))


def eager_step(args: Args) -> None:
    """eager_dispatch: the step is no tf.function."""
    weights = _dense(64, 64, 24)
    x = tf.random.normal((64, 64))

    def step(x: tf.Tensor) -> tf.Tensor:
        return _update(weights, x)

    update = step if args.slow else tf.function(step)
    train_tf(args, lambda _: update(x))


def fetch_scalars(args: Args) -> None:
    """host_sync: norms of all weights are fetched one by one."""
    weights, x = _dense(128, 128, 32), tf.random.normal((256, 128))
    update = tf.function(lambda x: _update(weights, x))
    norms = tf.function(lambda: tf.stack([tf.norm(weight) for weight in weights]))

    def step(number: int) -> None:
        update(x)
        if args.slow:
            for weight in weights:
                for row in range(0, 128, 16):
                    float(tf.norm(weight[row]).numpy())
        elif number % 10 == 0:
            norms().numpy()

    train_tf(args, step)


def python_ranking(args: Args) -> None:
    """python_overhead: plain Python ranks scores in every step."""
    weights, x = _dense(256, 512, 4), tf.random.normal((256, 256))
    update = tf.function(lambda x: _update(weights, x))

    def step(number: int) -> None:
        update(x)
        if args.slow or number % 1000 == 0:
            sum(a * b % 7 for a in range(400) for b in range(600))

    train_tf(args, step)


def numpy_table(args: Args) -> None:
    """input_transfer: a large NumPy table is an argument in every step."""
    table = np.random.default_rng(0).standard_normal((100_000, 128))
    weights = _dense(128, 512, 3)

    @tf.function
    def update(table: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        return _update(weights, tf.cast(tf.gather(table, rows), tf.float32))

    kept = table if args.slow else tf.constant(table)
    train_tf(args, lambda n: update(tf.constant(kept), tf.range(n, n + 256)))


def changing_shape(args: Args) -> None:
    """recompilation: every batch has another length."""
    weights = _dense(128, 256, 4)
    update = tf.function(lambda x: _update(weights, x), jit_compile=True)

    def step(number: int) -> None:
        rows = 128 + number if args.slow else 160
        update(tf.ones((rows, 128)))

    train_tf(args, step)


def frozen_twin(args: Args) -> None:
    """redundant_compute: the loss of a frozen twin is computed and thrown away by a factor of zero."""
    weights, twin = _dense(256, 512, 3), _dense(256, 1024, 4)
    x = tf.random.normal((128, 256))
    weight_of_twin = tf.Variable(0.0, trainable=False)

    @tf.function
    def update(x: tf.Tensor) -> tf.Tensor:
        target = x
        if args.slow:
            for kernel in twin:
                target = tf.tanh(target @ kernel)
        with tf.GradientTape() as tape:
            y = x
            for kernel in weights:
                y = tf.tanh(y @ kernel)
            loss = tf.reduce_mean(y * y)
            if args.slow:
                loss += weight_of_twin * tf.reduce_mean(tf.stop_gradient(target))
        for kernel, grad in zip(weights, tape.gradient(loss, weights), strict=True):
            kernel.assign_sub(0.01 * grad)
        return loss

    train_tf(args, lambda _: update(x))


def queue_by_concat(args: Args) -> None:
    """memory_churn: a queue of keys is rebuilt by concatenation."""
    weights, x = _dense(128, 256, 3), tf.random.normal((256, 128))
    queue = tf.Variable(tf.zeros((100_000, 128)))

    @tf.function
    def update(x: tf.Tensor, at: tf.Tensor) -> tf.Tensor:
        loss = _update(weights, x)
        if args.slow:
            queue.assign(tf.concat([x, queue[:-256]], 0))
        else:
            queue.scatter_update(tf.IndexedSlices(x, tf.range(at, at + 256)))
        return loss

    train_tf(args, lambda n: update(x, tf.constant(n * 256)))


def single_samples(args: Args) -> None:
    """small_batch: Keras trains on one sample at a time."""
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.default_rng(0).standard_normal((64, 32), dtype=np.float32), np.zeros(64, np.int32)
    size = 1 if args.slow else 64

    def step(_: int) -> None:
        for at in range(0, 64, size):
            model.train_on_batch(x[at : at + size], y[at : at + size])

    train_tf(args, step)


def weights_to_file(args: Args) -> None:
    """checkpoint_stall: Keras writes all weights to a file after each step."""
    model = keras.Sequential(
        [keras.layers.Dense(512, activation="relu"), keras.layers.Dense(512), keras.layers.Dense(10)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.default_rng(0).standard_normal((128, 256), dtype=np.float32), np.zeros(128, np.int32)
    path = scratch() + "/last.weights.h5"

    def step(number: int) -> None:
        model.train_on_batch(x, y)
        if args.slow or number % 1000 == 0:
            model.save_weights(path)

    train_tf(args, step)


def read_files(args: Args) -> None:
    """input_file_read: tf.io.read_file opens a small file for each sample."""
    folder, rng = scratch(), np.random.default_rng(0)
    names = []
    for at in range(512):
        names.append(f"{folder}/{at}.raw")
        rng.standard_normal(1024, dtype=np.float32).tofile(names[-1])
    if args.slow:
        data = tf.data.Dataset.from_tensor_slices(names).repeat()
        data = data.map(lambda name: tf.ensure_shape(tf.io.decode_raw(tf.io.read_file(name), tf.float32), [1024]))
        data = data.batch(256).prefetch(2)
    else:
        ready = np.stack([np.fromfile(name, np.float32) for name in names])
        data = tf.data.Dataset.from_tensor_slices(ready).repeat().batch(256).prefetch(2)
    _train_on(args, data, 1024, 128)


def slow_callback(args: Args) -> None:
    """python_overhead: a Keras callback works in Python after each batch."""
    model = keras.Sequential(
        [keras.layers.Dense(512, activation="relu"), keras.layers.Dense(512), keras.layers.Dense(10)]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.default_rng(0).standard_normal((256, 256), dtype=np.float32), np.zeros(256, np.int32)

    def step(number: int) -> None:
        model.train_on_batch(x, y)
        if args.slow or number % 1000 == 0:
            sorted(str(at) for at in range(20_000))

    train_tf(args, step)


def repeated_table(args: Args) -> None:
    """memory_churn: a large tensor is tiled and padded before a small part of it is used."""
    weights, table = _dense(128, 256, 3), tf.random.normal((2000, 128))

    @tf.function
    def update(at: tf.Tensor) -> tf.Tensor:
        rows = tf.tile(table, (50, 1)) if args.slow else table
        return _update(weights, tf.pad(rows, ((0, 8), (0, 0)))[at : at + 256] if args.slow else rows[at : at + 256])

    train_tf(args, lambda n: update(tf.constant(n)))


def take_turns(args: Args) -> None:
    """input_no_prefetch: the dataset makes a batch when the step asks for it, and nothing meanwhile."""
    images = tf.random.normal((256, 24, 24, 3))
    mix = tf.random.normal((1728, 1728)) / 42.0
    data = tf.data.Dataset.from_tensors(images).repeat().map(lambda x: tf.tanh(tf.reshape(x, (256, -1)) @ mix))
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    data = data.with_options(options)
    _train_on(args, data if args.slow else data.prefetch(2), 1728, 512)


def sample_maps(args: Args) -> None:
    """input_preprocessing: three maps augment single images, one after the other."""
    images = tf.random.uniform((256, 32, 32, 3))
    data = tf.data.Dataset.from_tensor_slices(images).repeat()
    if args.slow:
        data = data.map(tf.image.random_flip_left_right).map(lambda x: tf.image.random_brightness(x, 0.2))
        data = data.map(lambda x: tf.reshape(tf.image.random_contrast(x, 0.8, 1.2), (-1,))).batch(128)
    else:
        data = data.batch(128).map(lambda x: tf.reshape(x + tf.random.uniform((128, 1, 1, 1), -0.2, 0.2), (128, -1)))
    _train_on(args, data.prefetch(2), 3072, 256)


def numpy_function(args: Args) -> None:
    """input_python: a parallel map calls a NumPy function that loops in Python."""

    def jitter(sample: np.ndarray) -> np.ndarray:
        return np.array([math.sin(value) + random.random() for value in sample.tolist()], np.float32)

    data = tf.data.Dataset.from_tensor_slices(tf.random.normal((512, 256))).repeat()
    if args.slow:
        data = data.map(
            lambda x: tf.ensure_shape(tf.numpy_function(jitter, [x], tf.float32), [256]), num_parallel_calls=2
        ).batch(128)
    else:
        data = data.batch(128).map(lambda x: tf.sin(x) + tf.random.uniform(tf.shape(x)))
    _train_on(args, data.prefetch(2), 256, 384)


def run_eagerly(args: Args) -> None:
    """eager_dispatch: a debugging switch was left on."""
    layers = [keras.layers.Dense(96, activation="relu") for _ in range(6)]
    model = keras.Sequential([*layers, keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=args.slow)
    x, y = np.random.default_rng(0).standard_normal((256, 64), dtype=np.float32), np.zeros(256, np.int32)
    train_tf(args, lambda _: model.train_on_batch(x, y))


def python_counter(args: Args) -> None:
    """recompilation: the number of the step is a Python argument of the compiled step."""
    weights, x = _dense(128, 256, 6), tf.random.normal((256, 128))

    @tf.function
    def update(x: tf.Tensor, number: int | tf.Tensor) -> tf.Tensor:
        return _update(weights, x * (1.0 + 0.001 * tf.cast(number, tf.float32)))

    train_tf(args, lambda n: update(x, n if args.slow else tf.constant(n)))


if __name__ == "__main__":
    _args = switches()
    globals()[_args.program](_args)
