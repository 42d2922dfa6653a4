"""Later programs of TensorFlow and Keras, written without knowledge of the rules of the advice or of its results."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import h5py
import keras
import numpy as np
import tensorflow as tf

from bench.bottlenecks.loops import Fit, scratch
from bench.bottlenecks.series import Run, program


class CartPoles:
    """Many carts that balance their poles, all moved at once by NumPy."""

    def __init__(self, count: int) -> None:
        self.rng = np.random.default_rng(0)
        self.states = self.rng.normal(0, 0.05, (count, 4)).astype("float32")

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rewards and new states; carts whose pole fell start again."""
        place, speed, angle, turn = self.states.T
        push = 10.0 * (2 * actions - 1) + 0.05 * turn**2 * np.sin(angle)
        spin = (9.8 * np.sin(angle) - np.cos(angle) * push / 1.1) / (0.5 * (4 / 3 - 0.09 * np.cos(angle) ** 2))
        moved = np.stack([place + 0.02 * speed, speed + 0.018 * push, angle + 0.02 * turn, turn + 0.02 * spin], axis=1)
        fell = np.abs(moved[:, 2]) > 0.2
        moved[fell] = self.rng.normal(0, 0.05, (fell.sum(), 4))
        self.states = moved.astype("float32")
        return (~fell).astype("float32"), self.states


def _choose_actions(values: tf.Tensor, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    actions = []
    for row in range(values.shape[0]):
        if rng.random() < epsilon:
            actions.append(int(rng.integers(2)))
        else:
            actions.append(int(tf.argmax(values[row]).numpy()))
    return np.array(actions)


def _choose_actions_at_once(values: tf.Tensor, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    best = values.numpy().argmax(axis=1)
    return np.where(rng.random(len(best)) < epsilon, rng.integers(2, size=len(best)), best)


@program(
    "host_sync",
    culprits=("_choose_actions", "ArgMax", "StridedSlice"),
    also=("eager_dispatch", "python_overhead"),
    fix="fetch the values of all carts at once and choose in NumPy",
)
def tf_cart_poles(run: Run) -> Iterator[None]:
    """Deep Q-learning on 64 carts; the best action of each cart is fetched on its own."""
    poles, rng = CartPoles(64), np.random.default_rng(1)
    network, target = (_dense(512, 2) for _ in range(2))
    optimizer = keras.optimizers.Adam(1e-3)
    evaluate = tf.function(network)
    memory = rng.normal(0, 0.1, (8192, 10)).astype("float32")

    @tf.function
    def learn(past: tf.Tensor, actions: tf.Tensor, rewards: tf.Tensor, following: tf.Tensor) -> None:
        wanted = rewards + 0.99 * tf.reduce_max(target(following), axis=1)
        with tf.GradientTape() as tape:
            values = tf.reduce_sum(network(past) * tf.one_hot(tf.cast(actions, tf.int32), 2), axis=1)
            loss = tf.reduce_mean(keras.losses.huber(wanted[:, None], values[:, None]))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))

    choose = _choose_actions if run.slow else _choose_actions_at_once
    for number in range(10**6):
        with run.mark(number):
            past = poles.states
            actions = choose(evaluate(past), 0.1, rng)
            rewards, following = poles.step(actions)
            first = 64 * number % 8192
            memory[first : first + 64] = np.column_stack([past, actions, rewards, following])
            sample = memory[rng.integers(0, 8192, 512)]
            learn(sample[:, :4], sample[:, 4], sample[:, 5], sample[:, 6:])
        yield


def _dense(width: int, outputs: int, depth: int = 2) -> Any:
    hidden = [keras.layers.Dense(width, activation="relu") for _ in range(depth)]
    return keras.Sequential([*hidden, keras.layers.Dense(outputs)])


class Extractor(tf.Module):
    """Frozen convolutions that describe a picture."""

    def __init__(self) -> None:
        shapes = [(3, 3, 3, 24), (3, 3, 24, 32), (3, 3, 32, 48)]
        self.kernels = [tf.random.stateless_normal(shape, (7, 7), stddev=0.1) for shape in shapes]

    def describe(self, picture: tf.Tensor) -> list[tf.Tensor]:
        """What each layer sees."""
        seen = [picture]
        for kernel in self.kernels:
            seen.append(tf.nn.relu(tf.nn.conv2d(seen[-1], kernel, strides=1 + (len(seen) > 1), padding="SAME")))
        return seen[1:]


def _measure_style(layers: list[tf.Tensor]) -> list[tf.Tensor]:
    return [tf.einsum("bhwc,bhwd->bcd", layer, layer) / float(layer.shape[1] ** 2) for layer in layers]


@program(
    "redundant_compute",
    culprits=("tf_style_transfer", "Extractor.describe", "_measure_style", "Conv2D"),
    fix="describe the two fixed pictures once, before the loop",
    python=True,
)
def tf_style_transfer(run: Run) -> Iterator[None]:
    """Neural style transfer that describes the style and the content, which never change, in each step again."""
    extractor, optimizer = Extractor(), keras.optimizers.Adam(0.02)
    style, content = tf.random.stateless_uniform((2, 1, 144, 144, 3), (8, 8))
    picture = tf.Variable(content)

    @tf.function
    def find_targets() -> tuple[list[tf.Tensor], tf.Tensor]:
        return _measure_style(extractor.describe(style)), extractor.describe(content)[-1]

    @tf.function
    def train_step(wanted_style: list[tf.Tensor], wanted_content: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            layers = extractor.describe(picture)
            pairs = zip(_measure_style(layers), wanted_style, strict=True)
            loss = tf.add_n([tf.reduce_mean(tf.square(found - wanted)) for found, wanted in pairs])
            loss += 0.1 * tf.reduce_mean(tf.square(layers[-1] - wanted_content))
        optimizer.apply_gradients([(tape.gradient(loss, picture), picture)])
        picture.assign(tf.clip_by_value(picture, 0.0, 1.0))
        return loss

    kept = find_targets()
    for number in range(10**6):
        with run.mark(number):
            train_step(*(find_targets() if run.slow else kept))
        yield


def _write_spectra(count: int = 2048, width: int = 768) -> str:
    place, rng = f"{scratch()}/spectra.h5", np.random.default_rng(2)
    with h5py.File(place, "w") as file:
        values = np.round(rng.normal(size=(count, width)), 1).astype("float32")
        file.create_dataset("x", data=values, chunks=(20, width), compression="gzip", shuffle=True)
        file["y"] = rng.integers(0, 12, count)
    return place


class Spectra(keras.utils.PyDataset):  # type: ignore[misc]
    """Random batches out of an HDF5 file."""

    def __init__(self, place: str, batch: int = 48) -> None:
        super().__init__()
        self.file, self.batch = h5py.File(place), batch
        self.rng = np.random.default_rng(3)

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.sort(self.rng.choice(len(self.file["y"]), self.batch, replace=False))
        return self.file["x"][rows], self.file["y"][rows]


@program(
    "input_file_read",
    culprits=("Spectra.__getitem__", "PyFunc"),
    also=("input_python", "input_no_prefetch", "input_preprocessing"),
    fix="read the file into memory once; it is small",
)
def tf_compressed_spectra(run: Run) -> Fit:
    """A Keras dataset that picks the rows of each batch from a compressed HDF5 file, chunk by chunk."""
    place = _write_spectra()
    model = keras.Sequential(
        [
            keras.layers.Reshape((768, 1)),
            keras.layers.Conv1D(32, 9, strides=3, activation="relu"),
            keras.layers.Conv1D(48, 9, strides=3, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(12),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    if run.slow:
        return Fit(model, Spectra(place))
    with h5py.File(place) as file:
        data = tf.data.Dataset.from_tensor_slices((file["x"][:], file["y"][:]))
    return Fit(model, data.shuffle(512).repeat().batch(48).prefetch(tf.data.AUTOTUNE))


def _pad_articles(articles: list[np.ndarray], length: int | None) -> np.ndarray:
    longest = length or max(map(len, articles))
    return np.stack([np.pad(article, (0, longest - len(article))) for article in articles])


def _batch_texts(slow: bool) -> Iterator[np.ndarray]:
    """Three batches of short messages, then one of articles, whose padding depends on the longest of them."""
    rng = np.random.default_rng(4)
    while True:
        for _ in range(3):
            yield rng.integers(1, 8000, (48, 64))
        articles = [rng.integers(1, 8000, rng.integers(300, 1200)) for _ in range(8)]
        yield _pad_articles(articles, None if slow else 1200)


class TextClassifier(tf.Module):
    """The mean of embeddings, then dense layers."""

    def __init__(self, width: int = 1024) -> None:
        self.table = tf.Variable(tf.random.normal((8000, 48), stddev=0.1))
        shapes = [(48, width), (width, width), (width, 6)]
        self.weights = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in shapes]

    def classify(self, tokens: tf.Tensor) -> tf.Tensor:
        """Logits; the padding has no part in the mean."""
        is_word = tf.cast(tokens > 0, tf.float32)[..., None]
        hidden = tf.reduce_sum(tf.gather(self.table, tokens) * is_word, axis=1) / tf.reduce_sum(is_word, axis=1)
        for weight in self.weights[:-1]:
            hidden = tf.nn.gelu(hidden @ weight)
        return hidden @ self.weights[-1]


@program(
    "recompilation",
    culprits=("_pad_articles", "_batch_texts", "tf_article_lengths.train_step", "tf_article_lengths"),
    fix="pad all articles to the same length",
    lead=2,
)
def tf_article_lengths(run: Run) -> Iterator[None]:
    """Every fourth batch is padded to its longest article, so nearly each of them has a shape of its own."""
    model = TextClassifier()
    labels = {48: tf.zeros(48, tf.int32), 8: tf.zeros(8, tf.int32)}

    @tf.function
    def train_step(tokens: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model.classify(tokens)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits))
        *dense, table = tape.gradient(loss, [*model.weights, model.table])
        for weight, gradient in zip(model.weights, dense, strict=True):
            weight.assign_sub(0.01 * gradient)
        model.table.scatter_sub(tf.IndexedSlices(0.01 * table.values, table.indices))
        return loss

    for number, tokens in enumerate(_batch_texts(run.slow)):
        with run.mark(number):
            train_step(tokens, labels[len(tokens)])
        yield


def _write_payments(count: int = 4096) -> str:
    rng, text = np.random.default_rng(5), io.StringIO()
    shops, lands = (rng.integers(0, most, count) for most in (40, 25))
    for shop, land, cents, second in zip(shops, lands, *rng.integers(0, 10**7, (2, count)), strict=True):
        when = datetime.fromtimestamp(1.6e9 + int(second)).strftime("%Y-%m-%d %H:%M:%S")
        text.write(f"{when},shop{shop},land{land},{cents / 100:.2f},{int(cents % 50 == 0)}\n")
    return text.getvalue()


def _encode_payment(row: list[str]) -> tuple[np.ndarray, int]:
    when = datetime.strptime(row[0], "%Y-%m-%d %H:%M:%S")
    features = np.zeros(72, "float32")
    features[int(row[1][4:])] = 1.0
    features[40 + int(row[2][4:])] = 1.0
    features[65:68] = when.hour / 24, when.weekday() / 7, when.month / 12
    features[68] = np.log1p(float(row[3]))
    return features, int(row[4])


def _read_payments(text: str) -> Iterator[tuple[np.ndarray, int]]:
    while True:
        for row in csv.reader(io.StringIO(text)):
            yield _encode_payment(row)


@program(
    "input_python",
    culprits=("_read_payments", "_encode_payment", "PyFunc", "Generator"),
    also=("input_preprocessing",),
    fix="encode the table once and make the dataset of its arrays",
    lead=8,
)
def tf_payments(run: Run) -> Fit:
    """Fraud detection in `Model.fit`; a Python generator parses the table row by row, in each epoch again."""
    text = _write_payments()
    if run.slow:
        signature = (tf.TensorSpec((72,), tf.float32), tf.TensorSpec((), tf.int32))
        rows = tf.data.Dataset.from_generator(lambda: _read_payments(text), output_signature=signature)
    else:
        features, labels = zip(*map(_encode_payment, csv.reader(io.StringIO(text))), strict=True)
        rows = tf.data.Dataset.from_tensor_slices((np.stack(features), np.array(labels, "int32"))).repeat()
    inputs = keras.Input((72,))
    wide = keras.layers.Dense(1)(inputs)
    deep = keras.layers.Dense(768, activation="relu")(inputs)
    deep = keras.layers.Dense(768, activation="relu")(deep)
    model = keras.Model(inputs, wide + keras.layers.Dense(1)(deep))
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
    return Fit(model, rows.shuffle(1024).batch(96).prefetch(tf.data.AUTOTUNE))


@program(
    "memory_churn",
    culprits=("tf_instance_bank.train_step", "tf_instance_bank", "TensorScatterUpdate", "AssignVariableOp"),
    fix="bank.scatter_nd_update, which writes the rows in place",
    python=True,
)
def tf_instance_bank(run: Run) -> Iterator[None]:
    """Contrastive learning with a bank of 31 MB, of which a step replaces 96 rows and so copies all of them."""
    encoder, optimizer = _dense(768, 128), keras.optimizers.SGD(0.03, momentum=0.9)
    bank = tf.Variable(tf.math.l2_normalize(tf.random.normal((60_000, 128)), axis=1))
    rng = np.random.default_rng(6)
    pictures = rng.normal(size=(3840, 256)).astype("float32")

    @tf.function
    def train_step(views: tf.Tensor, own: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
        negatives, positives = tf.gather(bank, others), tf.gather(bank, own)
        with tf.GradientTape() as tape:
            codes = tf.math.l2_normalize(encoder(views), axis=1)
            near = tf.reduce_sum(codes * positives, axis=1, keepdims=True)
            logits = tf.concat([near, codes @ tf.transpose(negatives)], axis=1) / 0.07
            loss = tf.reduce_mean(tf.reduce_logsumexp(logits, axis=1) - logits[:, 0])
        gradients = tape.gradient(loss, encoder.trainable_variables)
        optimizer.apply_gradients(zip(gradients, encoder.trainable_variables, strict=True))
        rows = tf.math.l2_normalize(0.5 * positives + 0.5 * codes, axis=1)
        if run.slow:
            bank.assign(tf.tensor_scatter_nd_update(bank, own[:, None], rows))
        else:
            bank.scatter_nd_update(own[:, None], rows)
        return loss

    for number in range(10**6):
        own = 96 * (number % 40) + np.arange(96)
        with run.mark(number):
            train_step(pictures[own], own, rng.integers(3840, 60_000, 1024))
        yield
