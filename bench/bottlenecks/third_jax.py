"""Programs of JAX by a third author, written without knowledge of the rules of the advice or of its results."""

from __future__ import annotations

import gc
import itertools
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from bench.bottlenecks.loops import scratch
from bench.bottlenecks.series import Run, program

Params = Any  # a tree of arrays


def _make_layers(rng: np.random.Generator, *sizes: int) -> list[dict[str, jax.Array]]:
    return [
        {"matrix": jnp.asarray(rng.normal(0, before**-0.5, (before, after)), jnp.float32), "bias": jnp.zeros(after)}
        for before, after in itertools.pairwise(sizes)
    ]


def _apply(layers: list[dict[str, jax.Array]], rows: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        rows = jax.nn.silu(rows @ layer["matrix"] + layer["bias"])
    return rows @ layers[-1]["matrix"] + layers[-1]["bias"]


def _convolve(rows: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(rows, kernel, (stride, stride), "SAME", dimension_numbers=names)


def _make_step(
    measure: Callable[..., jax.Array], optimizer: optax.GradientTransformation
) -> Callable[..., tuple[Params, Params, jax.Array, Params]]:
    """A compiled step: new parameters, state, the loss and the gradients."""

    @jax.jit
    def step(params: Params, state: Params, *batch: jax.Array) -> tuple[Params, Params, jax.Array, Params]:
        loss, gradients = jax.value_and_grad(measure)(params, *batch)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss, gradients

    return step


class Replay:
    """What an agent saw, as bytes, with what it did; each state is four frames."""

    def __init__(self, count: int = 2000) -> None:
        rng = np.random.default_rng(0)
        self.frames = rng.integers(0, 256, (count + 5, 36, 36), dtype=np.uint8)
        self.actions = rng.integers(0, 6, count)

    def gather_one_by_one(self, chosen: np.ndarray) -> jax.Array:
        """The states of shape (n, 36, 36, 4), between 0 and 1."""
        states = []
        for index in chosen:
            frames = [jnp.asarray(frame, jnp.float32) / 255 for frame in self.frames[index : index + 4]]
            states.append(jnp.stack(frames, axis=2))
        return jnp.stack(states)

    def gather(self, chosen: np.ndarray) -> jax.Array:
        """The same, of which bytes are handed over in one piece."""
        return _scale_frames(self.frames[chosen[:, None] + np.arange(4)])


@jax.jit
def _scale_frames(frames: jax.Array) -> jax.Array:
    return frames.transpose(0, 2, 3, 1).astype(jnp.float32) / 255


def _measure_values(params: Params, states: jax.Array, actions: jax.Array) -> jax.Array:
    rows = states
    for kernel in params["kernels"]:
        rows = jax.nn.relu(_convolve(rows, kernel, stride=2))
    values = _apply(params["head"], rows.reshape(len(rows), -1))
    return jnp.mean((jnp.take_along_axis(values, actions[:, None], axis=1) - 1) ** 2)


@program(
    "input_transfer",
    culprits=("Replay.gather_one_by_one",),
    also=("eager_dispatch", "input_preprocessing", "input_python"),
    fix="gather bytes in NumPy, hand them over at once and scale them in a compiled function",
    ablate="Replay.gather_one_by_one",
    python=True,
)
def jax_replay_frames(run: Run) -> Iterator[None]:
    """Q-learning whose batch goes to the device frame by frame, as floats."""
    rng, replay, optimizer = np.random.default_rng(1), Replay(), optax.adam(1e-4)
    kernels = [jnp.asarray(rng.normal(0, 0.1, (3, 3, *size)), jnp.float32) for size in ((4, 32), (32, 48), (48, 48))]
    params: Params = {"kernels": kernels, "head": _make_layers(rng, 25 * 48, 256, 6)}
    state, step = optimizer.init(params), _make_step(_measure_values, optimizer)
    gather = replay.gather_one_by_one if run.slow else replay.gather
    for number in itertools.count():
        with run.mark(number):
            chosen = rng.integers(0, len(replay.actions), 64)
            params, state, loss, _ = step(params, state, gather(chosen), replay.actions[chosen])
            jax.block_until_ready(loss)
        yield


def _measure_all(params: Params, rows: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(_apply(params, rows), labels)


@jax.jit
def _learn_examples(params: Params, rows: jax.Array, labels: jax.Array, weights: jax.Array) -> Params:
    def measure(params: Params) -> jax.Array:
        return (weights * _measure_all(params, rows, labels)).sum() / weights.sum()

    return jax.tree.map(lambda value, slope: value - 0.01 * slope, params, jax.grad(measure)(params))


@program(
    "recompilation",
    culprits=("_learn_examples", "jax_hard_examples"),
    fix="give the easy examples a weight of zero instead of leaving them out",
    python=True,
)
def jax_hard_examples(run: Run) -> Iterator[None]:
    """A classifier that learns the hard examples alone in every fourth batch; their number is never the same."""
    rng = np.random.default_rng(0)
    params, judge = _make_layers(rng, 128, 768, 50), jax.jit(_measure_all)
    rows, labels = rng.normal(size=(6, 6144, 128)).astype(np.float32), rng.integers(0, 50, (6, 6144))
    for number in itertools.count():
        with run.mark(number):
            batch, truths = rows[number % 6], labels[number % 6]
            hard = np.ones(len(batch), bool)
            if number % 4 == 3:
                losses = np.asarray(judge(params, batch, truths))
                hard = losses > np.quantile(losses, rng.uniform(0.2, 0.5))
            if run.slow:
                params = _learn_examples(params, batch[hard], truths[hard], np.ones(hard.sum(), np.float32))
            else:
                params = _learn_examples(params, batch, truths, hard.astype(np.float32))
            jax.block_until_ready(params)
        yield


def _log_norms(history: list[dict[str, float]], **trees: Params) -> None:
    norms = {}
    for name, tree in trees.items():
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            norms[name + jax.tree_util.keystr(path)] = float(jnp.linalg.norm(leaf))
        norms[name] = sum(norm**2 for key, norm in norms.items() if key.startswith(name)) ** 0.5
    history.append(norms)


def _measure_fit(params: Params, rows: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.mean((_apply(params, rows) - targets) ** 2)


@program(
    "host_sync",
    culprits=("_log_norms",),
    also=("eager_dispatch", "python_overhead"),
    fix="log the norms every 200 steps",
    ablate="_log_norms",
)
def jax_logged_norms(run: Run) -> Iterator[None]:
    """A deep regression that reads the norms of all gradients, parameters and moments one by one, in each step."""
    rng, optimizer = np.random.default_rng(0), optax.adamw(1e-3)
    params = _make_layers(rng, *([160] * 30))
    state, step = optimizer.init(params), _make_step(_measure_fit, optimizer)
    rows = rng.normal(size=(4, 192, 160)).astype(np.float32)
    history: list[dict[str, float]] = []
    for number in itertools.count(1):
        with run.mark(number):
            params, state, loss, gradients = step(params, state, rows[number % 4], np.sin(rows[number % 4]))
            if run.slow or number % 200 == 0:
                _log_norms(history, params=params, gradients=gradients, state=state)
            jax.block_until_ready(loss)
        yield


def _save_state(place: Path, **trees: Params) -> None:
    with place.with_suffix(".new").open("wb") as file:
        pickle.dump(jax.tree.map(np.asarray, trees), file)
    place.with_suffix(".new").replace(place)


@program(
    "checkpoint_stall",
    culprits=("_save_state",),
    also=("host_sync",),
    fix="save every 200 steps",
    ablate="_save_state",
)
def jax_pickled_state(run: Run) -> Iterator[None]:
    """Training on a machine that may go away at any time, so everything is pickled after each step."""
    rng, optimizer, place = np.random.default_rng(0), optax.adam(1e-3), Path(scratch()) / "state.pickle"
    params = _make_layers(rng, 512, 1024, 1024, 256)
    state, step = optimizer.init(params), _make_step(_measure_fit, optimizer)
    rows = rng.normal(size=(4, 96, 512)).astype(np.float32)
    for number in itertools.count(1):
        with run.mark(number):
            batch = rows[number % 4]
            params, state, loss, _ = step(params, state, batch, batch[:, :256])
            jax.block_until_ready(loss)
            if run.slow or number % 200 == 0:
                _save_state(place, params=params, state=state)
        yield


def _draw_heatmaps(joints: np.ndarray, size: int = 48) -> np.ndarray:
    """A bump around each joint; from (pictures, joints, 2) to (pictures, joints, size, size)."""
    maps = np.zeros((*joints.shape[:2], size, size), np.float32)
    for picture, own in enumerate(joints):
        for joint, (row, column) in enumerate(own):
            rows, columns = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
            maps[picture, joint] = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / 8)
    return maps


def _draw_heatmaps_at_once(joints: np.ndarray, size: int = 48) -> np.ndarray:
    bumps = np.exp(-((np.arange(size) - joints[..., None]) ** 2) / 8).astype(np.float32)
    return bumps[:, :, 0, :, None] * bumps[:, :, 1, None, :]


def _measure_pose(params: Params, pictures: jax.Array, maps: jax.Array) -> jax.Array:
    rows = pictures
    for kernel in params:
        rows = _convolve(jax.nn.silu(rows), kernel, stride=1)
    return jnp.mean((rows.transpose(0, 3, 1, 2) - maps) ** 2)


@program(
    "input_python",
    culprits=("_draw_heatmaps",),
    also=("python_overhead", "input_preprocessing"),
    fix="all bumps at once, as products of two lines",
    ablate="_draw_heatmaps",
)
def jax_heatmaps(run: Run) -> Iterator[None]:
    """Pose estimation that draws the heatmap of each joint in a loop, before each step."""
    rng, optimizer = np.random.default_rng(0), optax.sgd(1e-3)
    params: Params = [jnp.asarray(rng.normal(0, 0.1, (3, 3, *size)), jnp.float32) for size in ((3, 8), (8, 8), (8, 17))]
    state, step = optimizer.init(params), _make_step(_measure_pose, optimizer)
    pictures = rng.normal(size=(4, 16, 48, 48, 3)).astype(np.float32)
    draw = _draw_heatmaps if run.slow else _draw_heatmaps_at_once
    for number in itertools.count():
        with run.mark(number):
            maps = draw(rng.uniform(0, 48, (16, 17, 2)))
            params, state, loss, _ = step(params, state, pictures[number % 4], maps)
            jax.block_until_ready(loss)
        yield


def _free_memory() -> None:
    gc.collect()


@program(
    "python_overhead",
    culprits=("_free_memory", "gc.collect"),
    also=("memory_churn",),
    fix="leave garbage to Python",
    ablate="_free_memory",
)
def jax_collected_garbage(run: Run) -> Iterator[None]:
    """A program that once ran out of memory, and since then collects garbage after each step."""
    rng, optimizer = np.random.default_rng(0), optax.adam(1e-3)
    params = _make_layers(rng, 256, 1024, 1024, 256)
    state, step = optimizer.init(params), _make_step(_measure_fit, optimizer)
    rows = rng.normal(size=(4, 384, 256)).astype(np.float32)
    for number in itertools.count():
        with run.mark(number):
            batch = rows[number % 4]
            params, state, loss, _ = step(params, state, batch, np.tanh(batch))
            jax.block_until_ready(loss)
            if run.slow:
                _free_memory()
        yield


@partial(jax.jit, donate_argnums=0)
def _learn_ratings(params: Params, users: jax.Array, films: jax.Array, stars: jax.Array) -> tuple[Params, jax.Array]:
    def measure(params: Params) -> jax.Array:
        pairs = jnp.concatenate([params["users"][users], params["films"][films]], axis=1)
        return jnp.mean((_apply(params["layers"], pairs)[:, 0] - stars) ** 2)

    loss, slopes = jax.value_and_grad(measure)(params)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, params, slopes), loss


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed", python=True)
def jax_healthy_films(run: Run) -> Iterator[None]:
    """Ratings of films from tables in memory; all is compiled, and the loss is read now and then."""
    rng = np.random.default_rng(int(run.slow))
    tables = {name: jnp.asarray(rng.normal(size=(3000, 64)), jnp.float32) for name in ("users", "films")}
    params: Params = tables | {"layers": _make_layers(rng, 128, 512, 512, 1)}
    users, films = rng.integers(0, 3000, (2, 200_000))
    stars, losses = rng.normal(size=200_000).astype(np.float32), []
    for number in itertools.count():
        with run.mark(number):
            part = slice(number % 90 * 2048, number % 90 * 2048 + 2048)
            params, loss = _learn_ratings(params, users[part], films[part], stars[part])
            jax.block_until_ready(params)
            if number % 50 == 49:
                losses.append(float(loss))
        yield
