"""Programs of TensorFlow by a third author, written without knowledge of the rules of the advice or of its results."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bench.bottlenecks.loops import Fit, scratch
from bench.bottlenecks.series import Run, program


def _make_pngs(count: int) -> list[bytes]:
    rng = np.random.default_rng(0)
    tiles = rng.integers(0, 256, (count, 14, 14, 3), dtype=np.uint8).repeat(18, axis=1).repeat(18, axis=2)
    return [tf.io.encode_png(tile).numpy() for tile in tiles]


def _read_leaf(png: tf.Tensor, kind: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.image.resize(tf.io.decode_png(png, channels=3), (64, 64), antialias=True) / 255, kind


def _change_leaf(picture: tf.Tensor, kind: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.image.random_crop(tf.image.random_flip_left_right(picture), (56, 56, 3)), kind


@program(
    "input_preprocessing",
    culprits=("_read_leaf", "Map", "DecodePng", "IteratorGetNext"),
    also=("input_no_prefetch",),
    fix="`cache` what was decoded and shrunk",
    ablate="input",
    lead=16,
    python=True,
)
def tf_leaves(run: Run) -> Iterator[None]:
    """Leaves of plants, decoded and shrunk in each epoch again, by a plain `map` that works on one at a time."""
    data = tf.data.Dataset.from_tensor_slices((_make_pngs(240), np.arange(240) % 8)).map(_read_leaf)
    data = data if run.slow else data.cache()
    data = data.shuffle(240).repeat().map(_change_leaf).batch(24).prefetch(2)
    model = keras.Sequential(
        [
            *(keras.layers.Conv2D(width, 3, strides=2, activation="relu") for width in (32, 64, 64)),
            *(keras.layers.Flatten(), keras.layers.Dense(8)),
        ]
    )
    step = _make_step(model, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = iter(data)
    for number in itertools.count():
        with run.mark(number):
            step(*next(batches))
        yield


def _make_step(model: Any, measure: Any) -> Any:
    optimizer = keras.optimizers.Adam(1e-3)

    @tf.function
    def step(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = measure(targets, model(inputs, training=True))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )
        return loss

    return step


class WeightLog(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes the distribution of all weights to a file."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every, self.file = every, (Path(scratch()) / "weights.jsonl").open("w", encoding="utf-8")

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Appends a line, which is on the disk when this returns."""
        if batch % self.every == 0:
            line: dict[str, Any] = dict(logs or {})
            for weight in self.model.weights:
                values = weight.numpy()
                line[weight.path] = np.quantile(values, np.linspace(0, 1, 21)).tolist()
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())


@program(
    "python_overhead",
    culprits=("WeightLog.on_train_batch_end", "on_train_batch_end"),
    also=("host_sync", "checkpoint_stall"),
    fix="log every 500 batches",
    ablate="WeightLog.on_train_batch_end",
    python=True,
)
def tf_weight_log(run: Run) -> Fit:
    """`Model.fit` with a callback that writes quantiles of all weights to disk after each batch."""
    rng = np.random.default_rng(0)
    layers = [keras.layers.Dense(384, activation="gelu") for _ in range(5)]
    model = keras.Sequential([*layers, keras.layers.Dense(20)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rows, labels = rng.normal(size=(4096, 384)).astype("float32"), rng.integers(0, 20, 4096)
    data = tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(4096).repeat().batch(512).prefetch(4)
    return Fit(model, data, [WeightLog(1 if run.slow else 500)])


@program(
    "recompilation",
    culprits=("tf_masked_words", "tf_masked_words.learn"),
    also=("python_overhead",),
    fix="hand the share of masked words over as a tensor",
    python=True,
)
def tf_masked_words(run: Run) -> Iterator[None]:
    """A masked language model whose share of masked words rises with each step, as a number of Python."""
    model = keras.Sequential(
        [
            *(keras.layers.Embedding(400, 128), keras.layers.Conv1D(256, 5, padding="same", activation="relu")),
            *(keras.layers.Conv1D(256, 5, padding="same", activation="relu"), keras.layers.Dense(400)),
        ]
    )
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def learn(words: tf.Tensor, share: Any) -> tf.Tensor:
        masked = tf.random.uniform(tf.shape(words)) < share
        with tf.GradientTape() as tape:
            logits = model(tf.where(masked, 0, words))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(words, logits)
            loss = tf.reduce_mean(losses * tf.cast(masked, tf.float32))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    texts = tf.random.uniform((8, 24, 64), 1, 400, tf.int32)
    for number in itertools.count():
        share = 0.15 + 0.15 * number / (number + 500)
        with run.mark(number):
            learn(texts[number % 8], share if run.slow else tf.constant(share))
        yield


class Forecaster(tf.Module):
    """Layers that somebody fills with numbers of NumPy, which are of 64 bits unless one asks for fewer."""

    def __init__(self, dtype: str, width: int = 448) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.matrices = [tf.Variable(rng.normal(0, width**-0.5, (width, width)).astype(dtype)) for _ in range(5)]
        self.biases = [tf.Variable(np.zeros(width, dtype)) for _ in range(5)]

    @tf.function
    def learn(self, rows: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """A step of gradient descent."""
        with tf.GradientTape() as tape:
            for matrix, bias in zip(self.matrices, self.biases, strict=True):
                rows = rows + tf.nn.relu(rows @ matrix + bias)
            loss = tf.reduce_mean((rows - targets) ** 2)
        for variable, slope in zip(
            self.trainable_variables, tape.gradient(loss, self.trainable_variables), strict=True
        ):
            variable.assign_sub(0.001 * slope)
        return loss


@program(
    "low_precision",
    culprits=("Forecaster.learn", "MatMul"),
    fix="numbers of 32 bits, in the weights and in the data",
)
def tf_wide_numbers(run: Run) -> Iterator[None]:
    """A forecast of electrical load that computes with 64 bits, since NumPy made its weights and data."""
    dtype = "float64" if run.slow else "float32"
    model, rng = Forecaster(dtype), np.random.default_rng(1)
    rows = [tf.constant(rng.normal(size=(384, 448)).astype(dtype)) for _ in range(6)]
    for number in itertools.count():
        with run.mark(number):
            model.learn(rows[number % 6], tf.sin(rows[number % 6]))
        yield


def _make_painter() -> Any:
    return keras.Sequential(
        [
            *(keras.layers.Dense(12 * 12 * 16, activation="relu"), keras.layers.Reshape((12, 12, 16))),
            keras.layers.Conv2DTranspose(16, 5, strides=2, padding="same", activation="relu"),
            keras.layers.Conv2DTranspose(1, 5, strides=2, padding="same"),
        ]
    )


@program(
    "redundant_compute",
    culprits=("tf_idle_painter", "tf_idle_painter.learn", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    fix="leave the painter out once its weight is zero",
    python=True,
)
def tf_idle_painter(run: Run) -> Iterator[None]:
    """A classifier with a second head that paints the input; its weight fell to zero long ago, but it is computed."""
    encoder = keras.Sequential(
        [keras.layers.Conv2D(width, 3, strides=2, activation="relu") for width in (32, 48)]
        + [keras.layers.Flatten(), keras.layers.Dense(64, activation="relu")]
    )
    judge, painter, optimizer = keras.layers.Dense(10), _make_painter(), keras.optimizers.SGD(0.05)
    importance = tf.Variable(0.0)  # what a schedule of earlier epochs left

    @tf.function
    def learn(pictures: tf.Tensor, kinds: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            codes = encoder(pictures)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(kinds, judge(codes)))
            if run.slow:
                loss += importance * tf.reduce_mean((painter(codes) - pictures) ** 2)
        parts = (encoder, judge, painter) if run.slow else (encoder, judge)
        weights = [weight for part in parts for weight in part.trainable_variables]
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    pictures, kinds = tf.random.normal((4, 96, 48, 48, 1)), tf.random.uniform((4, 96), 0, 10, tf.int32)
    for number in itertools.count():
        with run.mark(number):
            learn(pictures[number % 4], kinds[number % 4])
        yield


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed", python=True)
def tf_healthy_speech(run: Run) -> Fit:
    """`Model.fit` of a convolutional network over spectra in memory, batched in advance; no callbacks."""
    rng = np.random.default_rng(int(run.slow))
    spectra, words = rng.normal(size=(1024, 80, 40)).astype("float32"), rng.integers(0, 30, 1024)
    data = tf.data.Dataset.from_tensor_slices((spectra, words)).shuffle(1024, seed=int(run.slow)).repeat()
    model = keras.Sequential(
        [
            *(keras.layers.Conv1D(width, 5, strides=2, activation="relu") for width in (128, 192, 192)),
            *(keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(30)),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return Fit(model, data.batch(64, drop_remainder=True).prefetch(tf.data.AUTOTUNE))
