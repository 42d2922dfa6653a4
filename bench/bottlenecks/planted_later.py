"""More programs for `bench.prove`, written when the method stood, as users write theirs: their steps are not marked.

Each is a generator that runs a loop of training, or a call of `Model.fit`.
"""

from __future__ import annotations

import collections
import gzip
import itertools
import json
import queue
import re
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.bottlenecks.harness import scratch
from bench.bottlenecks.loops import Fit
from bench.bottlenecks.planted import Planted

# -- PyTorch -----------------------------------------------------------------------------------------------------------


def _torch_model(width: int, outputs: int, hidden: int = 512) -> tuple[Any, Any]:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs))
    return model, torch.optim.AdamW(model.parameters(), 1e-4)


def _update(loss: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _again(batches: Iterable[Any], bare: bool) -> Iterable[Any]:
    """The batches, or in a bare variant the first one for ever."""
    return itertools.repeat(next(iter(batches))) if bare else batches


def torch_compressed_pictures(slow: bool, bare: bool = False) -> Iterator[None]:
    """Two workers unpack and normalize pictures; the fixed variant keeps them in memory."""
    import torch
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    packed = [
        zlib.compress(np.random.default_rng(at).integers(0, 32, 3 * 96 * 96, np.uint8).tobytes()) for at in range(64)
    ]

    class Pictures(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 100_000

        def __getitem__(self, at: int) -> Any:
            pixels = np.frombuffer(zlib.decompress(packed[at % 64]), np.uint8).reshape(3, 96, 96)
            for _ in range(4):
                picture = (pixels / 255.0 - pixels.mean()) / (pixels.std() + 1e-6)
            return torch.from_numpy(picture[0].astype(np.float32).ravel())

    data = Pictures() if slow else TensorDataset(torch.rand(4096, 96 * 96))
    model, optimizer = _torch_model(96 * 96, 10, 128)
    while True:
        loader = DataLoader(data, batch_size=32, num_workers=2 if slow else 0)
        for batch in _again(loader, bare):
            _update(model(batch if slow else batch[0]).square().mean(), optimizer)
            yield


def torch_tokenizes(slow: bool, bare: bool = False) -> Iterator[None]:
    """The loader's collate function splits texts into words and counts them in every epoch again."""
    import torch
    from torch.utils.data import DataLoader

    words = [f"token{at}" for at in range(997)]
    texts = [" ".join(words[(at * 7 + each * each) % 997] + "," for each in range(150)) for at in range(512)]

    def tokenize(text: str) -> Any:
        row = torch.zeros(1024)
        for word, count in collections.Counter(re.findall(r"\w+", text.lower())).items():
            row[zlib.crc32(word.encode()) % 1024] = count
        return row

    def collate(batch: list[Any]) -> Any:
        return torch.stack([tokenize(each) if slow else each for each in batch])

    data = texts if slow else [tokenize(text) for text in texts]
    model, optimizer = _torch_model(1024, 2, 768)
    while True:
        loader: Any = DataLoader(data, batch_size=16, shuffle=True, collate_fn=collate)  # type: ignore[arg-type]
        for batch in _again(loader, bare):
            _update(model(batch).logsumexp(1).mean(), optimizer)
            yield


def torch_gradient_report(slow: bool) -> Iterator[None]:
    """After each update the norms of all gradients are fetched one by one and put into words."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(*(layer for _ in range(24) for layer in (nn.Linear(96, 96), nn.LayerNorm(96), nn.Tanh())))
    optimizer, history = torch.optim.SGD(model.parameters(), 1e-3), collections.deque[str](maxlen=10)

    def report_gradients() -> str:
        rows = []
        for name, weight in model.named_parameters():
            slope = weight.grad
            assert slope is not None
            largest = sorted(abs(each.item()) for each in slope.flatten()[:64])[-3:]
            rows.append(f"{name}: {slope.norm().item():.3e} {slope.std().item():.3e} {largest}")
        return "\n".join(rows)

    while True:
        _update(model(torch.rand(32, 96)).square().mean(), optimizer)
        if slow:
            history.append(report_gradients())
        yield


def torch_distills(slow: bool) -> Iterator[None]:
    """A frozen teacher sees the same few batches again and again; the fixed variant keeps what it said."""
    import torch

    teacher, _ = _torch_model(256, 32, 1024)
    student, optimizer = _torch_model(256, 32, 256)
    batches = [torch.rand(128, 256) for _ in range(4)]
    said: dict[int, Any] = {}

    def ask_teacher(batch: Any) -> Any:
        with torch.no_grad():
            return teacher(batch).softmax(1)

    while True:
        for at, batch in enumerate(batches):
            if slow or at not in said:
                said[at] = ask_teacher(batch)
            _update((student(batch).softmax(1) - said[at]).square().mean(), optimizer)
            yield


def torch_averages(slow: bool) -> Iterator[None]:
    """An average of the weights goes through copied state dicts after each step."""
    import torch

    model, optimizer = _torch_model(512, 64, 768)
    average = {name: value.clone() for name, value in model.state_dict().items()}

    def update_average() -> None:
        now = {name: value.detach().clone().double() for name, value in model.state_dict().items()}
        for name, value in now.items():
            average[name] = (0.999 * average[name].double() + 0.001 * value).float()

    while True:
        _update(model(torch.rand(64, 512)).square().mean(), optimizer)
        if slow:
            update_average()
        yield


def torch_json_lines(slow: bool, bare: bool = False) -> Iterator[None]:
    """An iterable dataset unpacks and parses lines of JSON in the training process."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    path = Path(scratch()) / "rows.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for at in range(2000):
            file.write(json.dumps({"values": [((at + each) % 97) / 97 for each in range(128)], "label": at % 3}) + "\n")
    ready = torch.rand(128)

    class Rows(IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[Any]:
            while True:
                with gzip.open(path, "rt") as file:
                    for line in file:
                        yield torch.tensor(json.loads(line)["values"]) if slow else ready

    model, optimizer = _torch_model(128, 3, 640)
    data: Any = Rows() if slow else [ready] * 100_000
    for batch in _again(DataLoader(data, batch_size=64), bare):
        _update(model(batch).square().mean(), optimizer)
        yield


def torch_prints(slow: bool, bare: bool = False) -> Iterator[None]:
    """Each step prints a table of the classes to a log that is flushed."""
    import torch

    model, optimizer = _torch_model(256, 50, 256)
    with (Path(scratch()) / "out.txt").open("w") as log:
        while True:
            scores = model(torch.rand(64, 256))
            _update(scores.square().mean(), optimizer)
            for at in range(2000 if slow else 0):
                line = f"class {at % 50:3} {at / 7:8.3f} {'#' * (at % 20)}"
                if not bare:
                    print(line, file=log, flush=True)
            yield


def torch_healthy_loader(slow: bool, bare: bool = False) -> Iterator[None]:
    """A loader slices tensors that are in memory, for a model that computes."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model, optimizer = _torch_model(256, 16, 1024)
    while True:
        for (batch,) in _again(DataLoader(TensorDataset(torch.rand(2048, 256)), batch_size=64), bare):
            _update(model(batch).square().mean(), optimizer)
            yield


# -- TensorFlow and Keras ----------------------------------------------------------------------------------------------


def _keras_model(width: int, outputs: int, hidden: int = 256) -> Any:
    import keras

    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(hidden, activation="relu") for _ in range(3)]
    model = keras.Sequential([keras.Input((width,)), *layers, keras.layers.Dense(outputs)])
    model.compile("adam", "mse")
    return model


def keras_generator(slow: bool, bare: bool = False) -> Fit:
    """`Model.fit` gets its batches from a generator of Python that warps signals."""
    rng = np.random.default_rng(0)
    signals = rng.random((64, 512), np.float32)

    def warp_signal(signal: Any) -> Any:
        grid = np.sort(rng.random(512)) * 511
        return np.convolve(np.interp(grid, np.arange(512), signal), np.hanning(31), "same")

    def make_signals() -> Iterator[Any]:
        while True:
            rows = np.stack([warp_signal(each) for each in signals]) if slow else signals
            yield rows.astype(np.float32), np.zeros((64, 8), np.float32)

    if bare:
        import tensorflow as tf

        return Fit(_keras_model(512, 8), tf.data.Dataset.from_tensors(next(make_signals())).repeat())
    return Fit(_keras_model(512, 8), make_signals())


def keras_histograms(slow: bool) -> Fit:
    """A callback makes histograms of all weights after every batch."""
    import keras
    import tensorflow as tf

    class Histograms(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if slow:
                self.count_weights()

        def count_weights(self) -> Any:
            return [np.histogram(weight.numpy(), 50)[0] for weight in self.model.trainable_weights]

    data = tf.data.Dataset.from_tensors((tf.ones((64, 256)), tf.zeros((64, 8)))).repeat()
    return Fit(_keras_model(256, 8), data, [Histograms()])


def keras_checkpoints(slow: bool) -> Fit:
    """`ModelCheckpoint` writes the weights after every second batch."""
    import keras
    import tensorflow as tf

    path = str(Path(scratch()) / "best.weights.h5")
    saves = [keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=2)] if slow else []
    data = tf.data.Dataset.from_tensors((tf.ones((256, 256)), tf.zeros((256, 8)))).repeat()
    return Fit(_keras_model(256, 8, 768), data, saves)


def tf_numpy_function(slow: bool, bare: bool = False) -> Iterator[None]:
    """A pipeline of tf.data calls NumPy for every sample, without prefetching."""
    import tensorflow as tf

    def filter_sample(sample: Any) -> Any:
        spectrum = np.fft.rfft(np.tile(sample, 3))
        return np.abs(np.fft.irfft(spectrum * np.exp(-np.arange(spectrum.size) / 900)))[:256].astype(np.float32)

    samples = tf.data.Dataset.from_tensor_slices(tf.random.uniform((2048, 256))).repeat()
    if slow:
        samples = samples.map(lambda each: tf.ensure_shape(tf.numpy_function(filter_sample, [each], tf.float32), [256]))
    weights = [tf.Variable(tf.random.normal((256, 512)) * 0.05), tf.Variable(tf.random.normal((512, 512)) * 0.05)]

    @tf.function
    def train_batch(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(tf.tanh(batch @ weights[0]) @ weights[1]) ** 2)
        for weight, slope in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * slope)
        return loss

    for batch in _again(samples.batch(64), bare):
        train_batch(batch)
        yield


# -- JAX and plain Python ----------------------------------------------------------------------------------------------


def _jax_update(width: int, hidden: int = 512) -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    def measure_loss(weights: Any, batch: Any) -> Any:
        return jnp.mean((jnp.tanh(batch @ weights["in"]) @ weights["out"]) ** 2)

    @jax.jit
    def update(weights: Any, batch: Any) -> Any:
        loss, slopes = jax.value_and_grad(measure_loss)(weights, batch)
        return jax.tree.map(lambda weight, slope: weight - 0.01 * slope, weights, slopes), loss

    return update, {"in": jnp.ones((width, hidden)) * 0.01, "out": jnp.ones((hidden, width)) * 0.01}


def jax_walks(slow: bool) -> Iterator[None]:
    """A generator of Python walks through a graph to make each batch."""
    rng = np.random.default_rng(0)
    neighbours = [[int(each) for each in rng.integers(0, 256, 6)] for _ in range(256)]
    ready = rng.random((64, 256), np.float32)

    def make_walks() -> Iterator[Any]:
        at = 0
        while True:
            counts = np.zeros((64, 256), np.float32)
            for row in range(64 if slow else 0):
                for step in range(100):
                    at = neighbours[at][(row + step * step) % 6]
                    counts[row, at] += 1
            yield counts if slow else ready

    update, weights = _jax_update(256)
    for batch in make_walks():
        weights, loss = update(weights, batch)
        loss.block_until_ready()
        yield


def jax_fetches(slow: bool) -> Iterator[None]:
    """The loss is fetched in each step, so the next batch is drawn only when the device is done."""
    rng, history = np.random.default_rng(0), collections.deque[Any](maxlen=2)
    update, weights = _jax_update(256, 768)

    def draw_batch() -> Any:
        time.sleep(0.006)  # a store that answers
        return rng.random((96, 256), np.float32)

    while True:
        weights, loss = update(weights, draw_batch())
        history.append(loss)
        float(loss if slow else history[0])
        yield


def jax_database(slow: bool) -> Iterator[None]:
    """Each step asks a database for its rows and unpacks them."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE samples (id INTEGER PRIMARY KEY, text TEXT)")
    texts = (",".join(str((at * each) % 89) for each in range(128)) for at in range(2000))
    base.executemany("INSERT INTO samples (text) VALUES (?)", ((text,) for text in texts))
    drawn, ready = np.random.default_rng(0), np.ones((64, 128), np.float32)

    def read_rows() -> Any:
        wanted = drawn.integers(1, 2000, 64).tolist()
        rows = base.execute(f"SELECT text FROM samples WHERE id IN ({','.join('?' * 64)})", wanted).fetchall()
        unpacked = np.array([text.split(",") for (text,) in rows], np.float32) / 89
        return np.resize(unpacked, (64, 128))

    update, weights = _jax_update(128, 1536)
    while True:
        weights, loss = update(weights, read_rows() if slow else ready)
        loss.block_until_ready()
        yield


def jax_healthy_reader(slow: bool) -> Iterator[None]:
    """A thread has the next shards ready, long before they are needed."""
    shards: queue.Queue[Any] = queue.Queue(3)
    shard = np.ones((256, 512), np.float32)

    def load_shard() -> Any:
        time.sleep(0.003)
        return shard

    def fill() -> None:
        while True:
            shards.put(load_shard())

    def take_shard() -> Any:
        return shards.get()

    threading.Thread(target=fill, daemon=True).start()
    update, weights = _jax_update(512, 1024)
    while True:
        weights, loss = update(weights, take_shard())
        loss.block_until_ready()
        yield


def plain_ranks(slow: bool) -> Iterator[None]:
    """A model of NumPy whose quality is ranked in Python after each of its steps, which it marks."""
    import stepscope

    rng = np.random.default_rng(0)
    weights, truth = rng.random((192, 192)), rng.random(600)

    def rank_items(scores: Iterable[float]) -> float:
        order = sorted(enumerate(scores), key=lambda pair: -pair[1])
        return sum(truth[at] / (place + 1) for place, (at, _) in enumerate(order) for _ in range(6))

    for number in range(10**6):
        with stepscope.step(number):
            for _ in range(2):
                weights = np.tanh(weights @ weights * 0.01) + 0.01
            if slow:
                rank_items(float(weights.flat[at]) * truth[at] for at in range(600))
        yield


LATER = {
    each.name: each
    for each in (
        Planted(torch_compressed_pictures, "input", hidden=("input",)),  # its workers prepare during a delay
        Planted(torch_tokenizes, "input", critical=("tokenize",)),
        Planted(torch_gradient_report, "report_gradients", critical=("report_gradients",)),
        Planted(torch_distills, "ask_teacher", critical=("ask_teacher",)),
        Planted(torch_averages, "update_average", critical=("update_average",)),
        Planted(torch_json_lines, "input", critical=("input",)),
        Planted(torch_prints, "logging", critical=("logging",)),
        Planted(torch_healthy_loader, "input", critical=("torch.Tensor.backward",), is_healthy=True),
        Planted(keras_generator, "input", critical=("warp_signal",)),
        Planted(keras_histograms, "count_weights", critical=("count_weights",)),
        Planted(keras_checkpoints, "checkpoint", critical=("checkpoint",)),
        Planted(tf_numpy_function, "input", critical=("train_batch",)),
        Planted(jax_walks, "make_walks", critical=("make_walks",)),
        Planted(jax_fetches, "sync", critical=("draw_batch",)),
        Planted(jax_database, "read_rows", critical=("read_rows",)),
        Planted(jax_healthy_reader, "take_shard", critical=("update",), hidden=("load_shard",), is_healthy=True),
        Planted(plain_ranks, "rank_items", critical=("rank_items",)),
    )
}
