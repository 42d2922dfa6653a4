"""Programs of TensorFlow and Keras, written without knowledge of the rules of the advice."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bench.bottlenecks.harness import scratch
from bench.bottlenecks.loops import Fit
from bench.bottlenecks.unseen import Run, program


def _dense(width: int, outputs: int, depth: int = 2) -> Any:
    hidden = [keras.layers.Dense(width, activation="relu") for _ in range(depth)]
    return keras.Sequential([*hidden, keras.layers.Dense(outputs)])


class Reviews(keras.utils.PyDataset):  # type: ignore[misc]
    """Reviews as text. The slow variant hashes the words of a batch in each epoch, the other one once."""

    def __init__(self, slow: bool, batches: int = 24, batch: int = 32) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        words = [f"word{number}" for number in range(3000)]
        self.texts = [[" ".join(rng.choice(words, 300)) for _ in range(batch)] for _ in range(batches)]
        self.labels = rng.integers(0, 2, (batches, batch)).astype("float32")
        self.ready = None if slow else [self.encode(texts) for texts in self.texts]

    def __len__(self) -> int:
        return len(self.texts) * 100

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        index %= len(self.texts)
        counts = self.encode(self.texts[index]) if self.ready is None else self.ready[index]
        return counts, self.labels[index]

    def encode(self, texts: list[str]) -> np.ndarray:
        """Counts of hashed words, one row per text."""
        counts = np.zeros((len(texts), 1024), "float32")
        for row, text in enumerate(texts):
            for word in text.split():
                bucket = 0
                for letter in word:
                    bucket = (bucket * 31 + ord(letter)) % 1024
                counts[row, bucket] += 1
        return counts


@program(
    "input_python",
    culprits=("Reviews.__getitem__", "Reviews.encode", "PyFunc"),
    also=("input_preprocessing",),
    fix="encode the texts once, before training",
)
def tf_hashed_reviews(run: Run) -> Fit:
    """A PyDataset that hashes words letter by letter, in `Model.fit`."""
    model = _dense(1024, 1)
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])
    return Fit(model, Reviews(run.slow))


def _write_pictures(count: int, side: int) -> list[str]:
    folder, rng = Path(scratch()), np.random.default_rng(1)
    names = [str(folder / f"{number}.jpg") for number in range(count)]
    for name in names:
        coarse = rng.integers(0, 255, (side // 8, side // 8, 3)).astype("uint8")
        Path(name).write_bytes(tf.io.encode_jpeg(np.kron(coarse, np.ones((8, 8, 1), "uint8"))).numpy())
    return names


def _load_thumbnail(name: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    picture = tf.io.decode_jpeg(tf.io.read_file(name), channels=3)
    picture = tf.image.resize(picture, (64, 64), method="bicubic") / 255.0
    return tf.reshape(picture, (64, 64, 3)), label


@program(
    "input_preprocessing",
    culprits=("_load_thumbnail", "ResizeBicubic", "DecodeJpeg", "ParallelMap", "Map"),
    fix="cache() after the decoding",
    lead=12,
)
def tf_thumbnails(run: Run) -> Iterator[None]:
    """Pictures that are decoded and resized again in each epoch."""
    names = _write_pictures(64, 512)
    data = tf.data.Dataset.from_tensor_slices((names, np.arange(64) % 5))
    data = data.map(_load_thumbnail, num_parallel_calls=tf.data.AUTOTUNE)
    data = data if run.slow else data.cache()
    data = data.shuffle(64).repeat().batch(16).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential(
        [
            keras.layers.Conv2D(24, 5, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5),
        ]
    )
    train_step = _compile_step(model, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for number, (pictures, labels) in enumerate(data):
        with run.mark(number):
            train_step(pictures, labels)
        yield


def _compile_step(model: Any, loss_fn: Any) -> Any:
    optimizer = keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(inputs: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step


def _write_shards(count: int, compression: str) -> list[str]:
    folder, rng = Path(scratch()), np.random.default_rng(2)
    names = [str(folder / f"train-{number:05d}.tfrecord") for number in range(count)]
    for name in names:
        with tf.io.TFRecordWriter(name, tf.io.TFRecordOptions(compression)) as writer:
            for _ in range(64):
                signal = np.round(rng.normal(size=4096), 2).astype("float32")
                writer.write(signal.tobytes())
    return names


@program(
    "input_file_read",
    culprits=("TFRecord",),
    also=("input_no_prefetch",),
    fix="write the shards without GZIP",
)
def tf_gzip_shards(run: Run) -> Iterator[None]:
    """Records in compressed shards, read one after another while the step waits for them."""
    names = _write_shards(8, "GZIP" if run.slow else "")
    data = tf.data.TFRecordDataset(names, "GZIP" if run.slow else "").repeat()
    data = data.batch(128).map(lambda raw: tf.reshape(tf.io.decode_raw(raw, tf.float32), (128, 4096))).prefetch(2)
    model, targets = _dense(64, 1, depth=1), tf.zeros((128, 1))
    train_step = _compile_step(model, keras.losses.MeanSquaredError())
    for number, signals in enumerate(data):
        with run.mark(number):
            train_step(signals, targets)
        yield


def _query_rows(batch: int = 64, width: int = 512) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    while True:
        time.sleep(0.025)  # how long the answer of a database takes
        yield rng.random((batch, width), np.float32), rng.integers(0, 7, batch)


@program(
    "input_no_prefetch",
    culprits=("_query_rows", "PyFunc", "Generator", "IteratorGetNext"),
    also=("input_python",),
    fix="four connections and prefetch(2), so that answers arrive while the model trains",
)
def tf_database_rows(run: Run) -> Iterator[None]:
    """Each step waits for the answer of a database, which nobody asks in advance."""
    signature = (tf.TensorSpec((64, 512), tf.float32), tf.TensorSpec((64,), tf.int64))
    rows = tf.data.Dataset.from_generator(_query_rows, output_signature=signature)
    if run.slow:
        options = tf.data.Options()
        options.autotune.enabled = False  # "it once took all memory"; with it, TensorFlow adds a prefetch of its own
        data = rows.with_options(options)
    else:
        data = tf.data.Dataset.range(4).interleave(lambda _: rows, cycle_length=4, num_parallel_calls=4).prefetch(2)
    model = _dense(768, 7)
    train_step = _compile_step(model, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = iter(data)
    for number in range(10**6):
        with run.mark(number):
            features, labels = next(batches)
            train_step(features, labels)
        yield


class TreeRnn(tf.Module):
    """A hand-written recurrent cell over 24 positions."""

    def __init__(self) -> None:
        self.inner = tf.Variable(tf.random.normal((128, 128), stddev=0.1))
        self.outer = tf.Variable(tf.random.normal((32, 128), stddev=0.1))
        self.gate = tf.Variable(tf.random.normal((128, 128), stddev=0.1))

    def encode(self, tokens: tf.Tensor) -> tf.Tensor:
        """The state after the last position."""
        state = tf.zeros((tokens.shape[0], 128))
        for position in range(24):
            update = tf.tanh(tokens[:, position] @ self.outer + state @ self.inner)
            keep = tf.sigmoid(state @ self.gate)
            state = keep * state + (1 - keep) * update
        return state


@program(
    "eager_dispatch",
    culprits=("TreeRnn.encode", "tf_eager_rnn", "EagerKernelExecute"),
    also=("python_overhead",),
    fix="tf.function around the step",
)
def tf_eager_rnn(run: Run) -> Iterator[None]:
    """A recurrent network whose training loop nobody decorated."""
    rnn, optimizer = TreeRnn(), keras.optimizers.SGD(1e-3)
    batches = tf.random.normal((16, 192, 24, 32))

    def train_step(tokens: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(rnn.encode(tokens)))
        gradients = tape.gradient(loss, rnn.trainable_variables)
        optimizer.apply_gradients(zip(gradients, rnn.trainable_variables, strict=True))
        return loss

    step = train_step if run.slow else tf.function(train_step)
    for number in range(10**6):
        with run.mark(number):
            step(batches[number % 16])
        yield


@program(
    "recompilation",
    culprits=("tf_cosine_restarts", "tf_cosine_restarts.make_step", "train_step"),
    fix="one step function, with the learning rate in a variable",
    lead=1,
)
def tf_cosine_restarts(run: Run) -> Iterator[None]:
    """A learning rate as a Python number, so a new step function is made whenever it changes."""
    model = _dense(512, 10)
    features, labels = tf.random.normal((256, 256)), tf.random.uniform((256,), 0, 10, tf.int32)
    model(features)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def make_step(rate: Any) -> Any:
        @tf.function
        def train_step(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = loss_fn(targets, model(inputs))
            for variable, gradient in zip(
                model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
            ):
                variable.assign_sub(tf.cast(rate, tf.float32) * gradient)
            return loss

        return train_step

    rate = tf.Variable(0.1)
    once = make_step(rate)
    for number in range(10**6):
        now = 0.05 * (1 + float(np.cos(np.pi * (number % 50) / 50)))
        with run.mark(number):
            rate.assign(now)
            step = make_step(now) if run.slow else once
            step(features, labels)
        yield


class Curriculum:
    """Keeps the hardest samples seen so far, as Python objects."""

    def __init__(self) -> None:
        self.hardest: list[tuple[float, int]] = []
        self.history: dict[int, list[float]] = {}

    def update(self, indices: np.ndarray, losses: np.ndarray) -> None:
        """Ranks samples by their smoothed losses."""
        for index, loss in zip(indices.tolist(), losses.tolist(), strict=True):
            past = self.history.setdefault(index, [])
            past.append(loss)
            if len(past) > 6:
                past.pop(0)
            smooth = sum(value * 0.9 ** (len(past) - age) for age, value in enumerate(past))
            heapq.heappush(self.hardest, (smooth, index))
        self.hardest = heapq.nlargest(500, self.hardest)


@program(
    "python_overhead",
    culprits=("Curriculum.update",),
    also=("host_sync",),
    fix="update the curriculum every 100 steps",
)
def tf_curriculum(run: Run) -> Iterator[None]:
    """A curriculum in pure Python that is updated after each step, between the marks."""
    features = np.random.default_rng(5).normal(size=(1024, 64)).astype("float32")
    targets = np.random.default_rng(6).normal(size=(1024, 16)).astype("float32")
    model, optimizer, curriculum = _dense(192, 16), keras.optimizers.Adam(1e-3), Curriculum()
    rng = np.random.default_rng(7)

    @tf.function
    def train_step(inputs: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = tf.reduce_mean(tf.square(model(inputs) - wanted), axis=1)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return losses

    for number in range(10**6):
        chosen = rng.integers(0, 1024, 512)
        with run.mark(number):
            losses = train_step(tf.constant(features[chosen]), tf.constant(targets[chosen]))
        if run.slow or number % 100 == 99:
            curriculum.update(chosen, losses.numpy())
        yield


@program(
    "checkpoint_stall",
    culprits=("save_weights", "ModelCheckpoint", "on_train_batch_end"),
    fix="save once per epoch",
)
def tf_model_checkpoint(run: Run) -> Fit:
    """`ModelCheckpoint` with a `save_freq` of two batches."""
    model = _dense(512, 10, depth=3)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    features = np.random.default_rng(8).normal(size=(2048, 512)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((features, np.arange(2048) % 10))
    data = data.repeat().batch(64).prefetch(tf.data.AUTOTUNE)
    saver = keras.callbacks.ModelCheckpoint(
        f"{scratch()}/last.weights.h5", save_weights_only=True, save_freq=2 if run.slow else 10**6
    )
    return Fit(model, data, [saver])


@program(
    "small_batch",
    culprits=("tf_tiny_micro_batches", "accumulate", "MatMul"),
    also=("eager_dispatch",),
    fix="one micro-batch of 64 samples in place of 16 of 4",
)
def tf_tiny_micro_batches(run: Run) -> Iterator[None]:
    """Gradient accumulation over far more micro-batches than memory asks for."""
    model, optimizer = _dense(384, 8, depth=3), keras.optimizers.Adam(1e-3)
    loss_fn = keras.losses.MeanSquaredError()
    features, targets = tf.random.normal((64, 96)), tf.random.normal((64, 8))
    model(features)
    optimizer.build(model.trainable_variables)
    totals = [tf.Variable(tf.zeros_like(variable)) for variable in model.trainable_variables]

    @tf.function
    def accumulate(inputs: tf.Tensor, wanted: tf.Tensor, share: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = loss_fn(wanted, model(inputs)) * share
        for total, gradient in zip(totals, tape.gradient(loss, model.trainable_variables), strict=True):
            total.assign_add(gradient)

    @tf.function
    def update() -> None:
        optimizer.apply_gradients(zip(totals, model.trainable_variables, strict=True))
        for total in totals:
            total.assign(tf.zeros_like(total))

    size = 4 if run.slow else 64
    share = tf.constant(size / 64)
    for number in range(10**6):
        with run.mark(number):
            for first in range(0, 64, size):
                accumulate(features[first : first + size], targets[first : first + size], share)
            update()
        yield


@program(
    "input_transfer",
    culprits=("tf_whole_table", "constant", "convert_to_eager_tensor"),
    also=("memory_churn",),
    fix="make the tensor of the table once",
)
def tf_whole_table(run: Run) -> Iterator[None]:
    """The table of all features becomes a tensor again in each step, to gather one batch from it."""
    table = np.random.default_rng(9).normal(size=(36_000, 200)).astype("float32")
    kept = tf.constant(table)
    model, optimizer = _dense(512, 4), keras.optimizers.SGD(1e-2)
    rng = np.random.default_rng(10)

    @tf.function
    def train_step(everything: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.gather(everything, chosen))))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    for number in range(10**6):
        with run.mark(number):
            everything = tf.constant(table) if run.slow else kept
            train_step(everything, tf.constant(rng.integers(0, 36_000, 128)))
        yield


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed")
def tf_healthy_text(run: Run) -> Fit:
    """A text classifier in `Model.fit` whose input is ready in time."""
    keras.utils.set_random_seed(int(run.slow))
    tokens = np.random.default_rng(11).integers(0, 5000, (2048, 48))
    data = tf.data.Dataset.from_tensor_slices((tokens, np.arange(2048) % 3))
    data = data.shuffle(256).repeat().batch(64).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential(
        [
            keras.layers.Embedding(5000, 64),
            keras.layers.Conv1D(128, 5, activation="relu"),
            keras.layers.Conv1D(128, 5, activation="relu"),
            keras.layers.GlobalMaxPooling1D(),
            keras.layers.Dense(3),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return Fit(model, data)
