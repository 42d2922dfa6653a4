"""Programs of JAX, written without knowledge of the rules of the advice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.bottlenecks.harness import scratch
from bench.bottlenecks.unseen import Run, program


def _init(sizes: list[int], seed: int = 0) -> list[dict[str, Any]]:
    keys = jax.random.split(jax.random.key(seed), len(sizes))
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=False)
    return [{"w": jax.random.normal(key, (rows, cols)) * rows**-0.5, "b": jnp.zeros(cols)} for key, rows, cols in pairs]


def _apply(params: list[dict[str, Any]], inputs: Any) -> Any:
    for layer in params[:-1]:
        inputs = jax.nn.relu(inputs @ layer["w"] + layer["b"])
    return inputs @ params[-1]["w"] + params[-1]["b"]


def _squared(params: Any, inputs: Any, targets: Any) -> Any:
    return jnp.mean((_apply(params, inputs) - targets) ** 2)


@jax.jit
def _sgd_step(params: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
    loss, gradients = jax.value_and_grad(_squared)(params, inputs, targets)
    return jax.tree.map(lambda value, gradient: value - 1e-3 * gradient, params, gradients), loss


class Graph:
    """A random graph, whose walks are the training samples of node embeddings."""

    def __init__(self, nodes: int = 2000, degree: int = 8) -> None:
        self.table = np.random.default_rng(0).integers(0, nodes, (nodes, degree))
        self.neighbours = {node: row.tolist() for node, row in enumerate(self.table)}

    def sample_walks(self, count: int, length: int = 16) -> np.ndarray:
        """Walks of this length from random nodes, one node after another."""
        walks = []
        for _ in range(count):
            walk = [random.randrange(len(self.neighbours))]
            while len(walk) < length:
                walk.append(random.choice(self.neighbours[walk[-1]]))
            walks.append(walk)
        return np.array(walks)

    def sample_walks_at_once(self, count: int, length: int = 16) -> np.ndarray:
        """The same, all walks at once."""
        walks = np.random.randint(0, len(self.table), (count, 1))
        for _ in range(length - 1):
            turn = np.random.randint(0, self.table.shape[1], count)
            walks = np.concatenate([walks, self.table[walks[:, -1], turn][:, None]], axis=1)
        return walks


@program(
    "input_python",
    culprits=("Graph.sample_walks",),
    also=("input_preprocessing",),
    fix="walk all nodes of a batch at once, in NumPy",
)
def jax_random_walks(run: Run) -> Iterator[None]:
    """Node embeddings whose random walks are sampled node by node, between the marks."""
    graph = Graph()
    table = jax.random.normal(jax.random.key(1), (2000, 64)) * 0.1

    @jax.jit
    def train_step(table: Any, walks: Any) -> tuple[Any, Any]:
        def loss_fn(table: Any) -> Any:
            vectors = table[walks]
            return jnp.mean(jax.nn.softplus(-jnp.einsum("bld,bmd->blm", vectors, vectors)))

        loss, gradient = jax.value_and_grad(loss_fn)(table)
        return table - 0.1 * gradient, loss

    sample = graph.sample_walks if run.slow else graph.sample_walks_at_once
    for number in range(10**6):
        walks = sample(512)
        with run.mark(number):
            table, loss = train_step(table, walks)
            loss.block_until_ready()
        yield


def _spectrogram(audio: np.ndarray) -> np.ndarray:
    frames = np.lib.stride_tricks.sliding_window_view(audio, 256, axis=1)[:, ::64] * np.hanning(256)
    return np.log1p(np.abs(np.fft.rfft(frames))).astype("float32").mean(axis=1)


@program(
    "input_preprocessing",
    culprits=("_spectrogram", "_audio_batches"),
    also=("input_python", "input_no_prefetch"),
    fix="compute the spectrograms once, before training",
)
def jax_spectrograms(run: Run) -> Iterator[None]:
    """Spectrograms that NumPy computes for each batch again."""
    params, targets = _init([129, 1024, 1024, 20]), jnp.zeros((32, 20))
    for number, batch in enumerate(_audio_batches(run.slow)):
        with run.mark(number):
            params, loss = _sgd_step(params, batch, targets)
            loss.block_until_ready()
        yield


def _audio_batches(slow: bool) -> Iterator[np.ndarray]:
    audio = np.random.default_rng(2).normal(size=(8, 32, 4096))
    ready = [_spectrogram(clips) for clips in audio]
    number = 0
    while True:
        yield _spectrogram(audio[number % 8]) if slow else ready[number % 8]
        number += 1


def _write_archives(count: int) -> list[Path]:
    folder, rng = Path(scratch()), np.random.default_rng(3)
    places = [folder / f"part{number}.npz" for number in range(count)]
    for place in places:
        np.savez_compressed(place, x=rng.integers(0, 9, (64, 2048)).astype("float32"), y=np.zeros((64, 10), "float32"))
    return places


def _load_archive(place: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(place) as archive:
        return archive["x"], archive["y"]


@program(
    "input_file_read",
    culprits=("_load_archive",),
    also=("input_no_prefetch", "input_python"),
    fix="load the archives once",
)
def jax_archives(run: Run) -> Iterator[None]:
    """A compressed archive is opened for each batch."""
    places = _write_archives(12)
    loaded = [_load_archive(place) for place in places]
    params = _init([2048, 512, 10])
    for number in range(10**6):
        with run.mark(number):
            inputs, targets = _load_archive(places[number % 12]) if run.slow else loaded[number % 12]
            params, loss = _sgd_step(params, inputs, targets)
            loss.block_until_ready()
        yield


@program(
    "input_transfer",
    culprits=("jax_whole_dataset", "asarray", "device_put", "BatchedDevicePut"),
    also=("memory_churn",),
    fix="put the data set on the device once",
)
def jax_whole_dataset(run: Run) -> Iterator[None]:
    """The whole data set goes to the device in each step, which picks its batch there."""
    pictures = np.random.default_rng(4).random((6000, 784), np.float32)
    kept, rng, params = jnp.asarray(pictures), np.random.default_rng(5), _init([784, 512, 784])

    @jax.jit
    def train_step(params: Any, everything: Any, chosen: Any) -> tuple[Any, Any]:
        return _sgd_step(params, everything[chosen], everything[chosen])

    for number in range(10**6):
        with run.mark(number):
            everything = jnp.array(pictures) if run.slow else kept
            params, loss = train_step(params, everything, rng.integers(0, 6000, 64))
            loss.block_until_ready()
        yield


def _adam(params: Any, gradients: Any, state: tuple[Any, Any], count: Any) -> tuple[Any, tuple[Any, Any]]:
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state[1], gradients)

    def move(value: Any, m: Any, v: Any) -> Any:
        return value - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(move, params, first, second), (first, second)


@program(
    "eager_dispatch",
    culprits=("_adam", "_adam.move"),
    also=("python_overhead",),
    fix="jit the update",
)
def jax_unjitted_adam(run: Run) -> Iterator[None]:
    """Only the gradients are jitted: a hand-written Adam runs op by op over 16 arrays."""
    params = _init([64] + [96] * 7 + [16])
    state = (jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params))
    inputs, targets = jax.random.normal(jax.random.key(6), (256, 64)), jnp.zeros((256, 16))
    gradient_fn = jax.jit(jax.value_and_grad(_squared))
    update = _adam if run.slow else jax.jit(_adam)
    for number in range(10**6):
        with run.mark(number):
            loss, gradients = gradient_fn(params, inputs, targets)
            params, state = update(params, gradients, state, jnp.float32(number + 1))
            jax.block_until_ready((params, loss))
        yield


@jax.jit
def _contract(weight: Any, state: Any, inputs: Any) -> tuple[Any, Any]:
    new = jnp.tanh(state @ weight + inputs)
    return new, jnp.max(jnp.abs(new - state))


def _solve(weight: Any, inputs: Any) -> Any:
    state, residual, rounds = jnp.zeros_like(inputs), 1.0, 0
    while residual > 0.0 and rounds < 150:
        state, change = _contract(weight, state, inputs)
        residual = float(change)
        rounds += 1
    return state


@jax.jit
def _solve_on_device(weight: Any, inputs: Any) -> Any:
    def is_open(carry: tuple[Any, Any, Any]) -> Any:
        return (carry[1] > 0.0) & (carry[2] < 150)

    def improve(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        return (*_contract(weight, carry[0], inputs), carry[2] + 1)

    return jax.lax.while_loop(is_open, improve, (jnp.zeros_like(inputs), jnp.float32(1), 0))[0]


@program(
    "host_sync",
    culprits=("_solve", "_value", "__float__", "await"),
    also=("eager_dispatch",),
    fix="the loop as lax.while_loop, which compares on the device",
)
def jax_fixed_point(run: Run) -> Iterator[None]:
    """An implicit layer whose residual is fetched in each round of the solver."""
    weight = jax.random.normal(jax.random.key(7), (96, 96)) * 0.08
    inputs = jax.random.normal(jax.random.key(8), (48, 96))
    solve = _solve if run.slow else _solve_on_device

    @jax.jit
    def train_step(weight: Any, state: Any) -> Any:
        loss_fn = lambda weight: jnp.mean((jnp.tanh(state @ weight + inputs) - 0.1) ** 2)  # noqa: E731
        return weight - 1e-3 * jax.grad(loss_fn)(weight)

    for number in range(10**6):
        with run.mark(number):
            weight = train_step(weight, solve(weight, inputs))
            weight.block_until_ready()
        yield


class Priorities:
    """The sum tree of a prioritised replay buffer, in Python."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.sums: Any = [0.0] * (2 * size)

    def update(self, indices: list[int], priorities: list[float]) -> None:
        """Sets priorities, and the sums above each of them."""
        for index, priority in zip(indices, priorities, strict=True):
            node = index + self.size
            self.sums[node] = abs(priority) + 1e-3
            while node > 1:
                node //= 2
                self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]

    def update_at_once(self, indices: np.ndarray, priorities: np.ndarray) -> None:
        """The same, level by level for all of the tree."""
        sums = np.asarray(self.sums)
        sums[indices + self.size] = np.abs(priorities) + 1e-3
        first = self.size // 2
        while first:
            sums[first : 2 * first] = sums[2 * first : 4 * first].reshape(-1, 2).sum(axis=1)
            first //= 2
        self.sums = sums


@program(
    "python_overhead",
    culprits=("Priorities.update",),
    also=("host_sync",),
    fix="update all levels of the tree with NumPy",
)
def jax_sum_tree(run: Run) -> Iterator[None]:
    """Deep Q-learning that updates the priorities of its samples one by one in Python."""
    rng, params, tree = np.random.default_rng(9), _init([16, 256, 128, 1]), Priorities(2**14)
    states = rng.normal(size=(2**14, 16)).astype("float32")

    @jax.jit
    def train_step(params: Any, batch: Any) -> tuple[Any, Any]:
        gradients = jax.grad(_squared)(params, batch, 1.0)
        return jax.tree.map(lambda value, g: value - 1e-3 * g, params, gradients), _apply(params, batch)[:, 0]

    for number in range(10**6):
        with run.mark(number):
            chosen = rng.integers(0, 2**14, 2048)
            params, errors = train_step(params, states[chosen])
            errors = np.asarray(errors)
            if run.slow:
                tree.update(chosen.tolist(), errors.tolist())
            else:
                tree.update_at_once(chosen, errors)
        yield


class Config:
    """Settings of a step. It has no equality, so each object is a new static argument."""

    def __init__(self, dropout: float, clip: float) -> None:
        self.dropout, self.clip = dropout, clip


@partial(jax.jit, static_argnums=0)
def _configured_step(config: Config, params: Any, inputs: Any) -> Any:
    gradients = jax.grad(lambda p: jnp.mean(_apply(p, inputs) ** 2) * (1 - config.dropout))(params)
    return jax.tree.map(lambda value, g: value - 1e-3 * jnp.clip(g, -config.clip, config.clip), params, gradients)


@program(
    "recompilation",
    culprits=("_configured_step", "jax_new_config"),
    fix="one Config for all steps",
    lead=1,
)
def jax_new_config(run: Run) -> Iterator[None]:
    """A new settings object, as a static argument, in each step."""
    params, inputs = _init([32, 512, 8]), jax.random.normal(jax.random.key(10), (4096, 32))
    once = Config(0.1, 1.0)
    for number in range(10**6):
        config = Config(0.1, 1.0) if run.slow else once
        with run.mark(number):
            params = _configured_step(config, params, inputs)
            jax.block_until_ready(params)
        yield


@program(
    "redundant_compute",
    culprits=("jax_three_forwards", "evaluate", "accuracy_fn", "loss_fn"),
    fix="return loss and accuracy from the step itself",
)
def jax_three_forwards(run: Run) -> Iterator[None]:
    """Loss, accuracy and gradients each run the model on the same batch; nobody reads the first two."""
    params = _init([256, 512, 512, 10])
    inputs, targets = jax.random.normal(jax.random.key(11), (256, 256)), jnp.zeros((256, 10))
    loss_fn = jax.jit(_squared)
    accuracy_fn = jax.jit(lambda p, x, y: jnp.mean(_apply(p, x).argmax(1) == y.argmax(1)))
    losses: list[Any] = []
    for number in range(10**6):
        with run.mark(number):
            if run.slow:
                before = loss_fn(params, inputs, targets)
                accuracy = accuracy_fn(params, inputs, targets)
                again = loss_fn(params, inputs, targets)
                jax.block_until_ready((before, accuracy, again))
            params, loss = _sgd_step(params, inputs, targets)
            losses = [*losses[-9:], loss.block_until_ready()]
        yield


@program(
    "memory_churn",
    culprits=("jax_copied_memory", "_remember", "scatter", "copy", "dynamic_update"),
    fix="donate the memory to the program that updates it",
)
def jax_copied_memory(run: Run) -> Iterator[None]:
    """A memory of 12 MB, of which each step replaces 64 rows and XLA therefore copies the rest."""
    memory = jnp.zeros((24_000, 128))
    params, inputs = _init([64, 512, 512, 128]), jax.random.normal(jax.random.key(12), (64, 64))
    remember = jax.jit(_remember, donate_argnums=() if run.slow else (0,))
    embed, targets = jax.jit(_apply), jnp.ones((64, 128))
    for number in range(10**6):
        with run.mark(number):
            params, loss = _sgd_step(params, inputs, targets)
            memory = remember(memory, embed(params, inputs), 64 * number % 23_000)
            jax.block_until_ready((memory, loss))
        yield


def _remember(memory: Any, rows: Any, first: Any) -> Any:
    return jax.lax.dynamic_update_slice(memory, rows, (first, 0))


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed")
def jax_healthy_attention(run: Run) -> Iterator[None]:
    """A small block of attention, jitted as a whole, on batches that lie on the device."""
    batches = list(jax.random.normal(jax.random.key(13 + run.slow), (8, 32, 64, 64)))
    keys = jax.random.split(jax.random.key(14), 4)
    params = {name: jax.random.normal(key, (64, 64)) * 0.1 for name, key in zip("qkvo", keys, strict=True)}

    def loss_fn(params: Any, batch: Any) -> Any:
        query, key, value = (batch @ params[name] for name in "qkv")
        weights = jax.nn.softmax(query @ key.swapaxes(1, 2) / 8)
        return jnp.mean((weights @ value @ params["o"] - batch) ** 2)

    @partial(jax.jit, donate_argnums=0)
    def train_step(params: Any, batch: Any) -> tuple[Any, Any]:
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        return jax.tree.map(lambda value, g: value - 1e-2 * g, params, gradients), loss

    for number in range(10**6):
        with run.mark(number):
            params, loss = train_step(params, batches[number % 8])
            loss.block_until_ready()
        yield
