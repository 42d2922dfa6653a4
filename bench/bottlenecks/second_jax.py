"""Later programs of JAX, written without knowledge of the rules of the advice or of its results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import flax.linen as nn
import grain
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax.training.train_state import TrainState

from bench.bottlenecks.loops import scratch
from bench.bottlenecks.series import Run, program


class StoredSeries:
    """Windows of measurements in an object store; one request brings a batch and takes ten milliseconds."""

    def __init__(self, batches: int = 64) -> None:
        self.windows = np.random.default_rng(0).normal(size=(batches, 64, 96)).astype("float32")

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, index: int) -> np.ndarray:
        time.sleep(0.01)
        return self.windows[index]


class Forecaster(nn.Module):
    """Predicts the last third of a window from the rest."""

    width: int = 768

    @nn.compact
    def __call__(self, window: Any) -> Any:
        """The next 32 measurements."""
        hidden = nn.LayerNorm()(nn.gelu(nn.Dense(self.width)(window)))
        hidden += nn.gelu(nn.Dense(self.width)(hidden))
        return nn.Dense(32)(hidden)


@program(
    "input_no_prefetch",
    culprits=("StoredSeries.__getitem__", "jax_stored_series", "__next__"),
    also=("input_file_read",),
    fix="grain.ReadOptions(num_threads=4, prefetch_buffer_size=8): requests overlap with each other and the steps",
    lead=12,
    python=True,
)
def jax_stored_series(run: Run) -> Iterator[None]:
    """A Grain pipeline whose threads and buffer are set to zero, in front of a slow object store."""
    reading = (
        {"num_threads": 0, "prefetch_buffer_size": 0} if run.slow else {"num_threads": 4, "prefetch_buffer_size": 8}
    )
    data = grain.MapDataset.source(StoredSeries()).shuffle(seed=0).repeat()
    windows = iter(data.to_iter_dataset(grain.ReadOptions(**reading)))
    model, optimizer = Forecaster(), optax.adamw(1e-3)
    params = model.init(jax.random.key(0), jnp.zeros((1, 64)))
    state = optimizer.init(params)

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_step(params: Any, state: Any, window: Any) -> tuple[Any, Any, Any]:
        def loss_fn(params: Any) -> Any:
            return jnp.mean((model.apply(params, window[:, :64]) - window[:, 64:]) ** 2)

        loss, gradients = jax.value_and_grad(loss_fn)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    for number in range(10**6):
        with run.mark(number):
            params, state, loss = train_step(params, state, next(windows))
            loss.block_until_ready()
        yield


class Tiles(nn.Module):
    """A small convolutional network."""

    @nn.compact
    def __call__(self, tiles: Any) -> Any:
        """Logits per tile."""
        for width in (24, 48, 64):
            tiles = nn.relu(nn.GroupNorm(8)(nn.Conv(width, (3, 3), strides=2)(tiles)))
        return nn.Dense(9)(nn.relu(nn.Dense(256)(tiles.reshape(len(tiles), -1))))


@jax.jit
def _train_tiles(state: TrainState, tiles: Any, labels: Any) -> tuple[TrainState, Any]:
    def loss_fn(params: Any) -> Any:
        logits = state.apply_fn(params, tiles)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=gradients), loss


def _save_state(manager: ocp.CheckpointManager, number: int, state: TrainState) -> None:
    manager.save(number, args=ocp.args.StandardSave(state))
    manager.wait_until_finished()


@program(
    "checkpoint_stall",
    culprits=("_save_state", "CheckpointManager", "wait_until_finished"),
    fix="save every 2000 steps",
)
def jax_orbax_every_fourth(run: Run) -> Iterator[None]:
    """Land cover from satellite tiles; Orbax saves the state every fourth step, and the loop waits for it."""
    model = Tiles()
    tiles, labels = list(jax.random.normal(jax.random.key(1), (6, 48, 32, 32, 4))), jnp.arange(48) % 9
    params = model.init(jax.random.key(2), tiles[0])
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
    manager = ocp.CheckpointManager(scratch(), options=ocp.CheckpointManagerOptions(max_to_keep=2))
    for number in range(10**6):
        with run.mark(number):
            state, loss = _train_tiles(state, tiles[number % 6], labels)
            loss.block_until_ready()
            if number % (4 if run.slow else 2000) == 3:
                _save_state(manager, number, state)
        yield


def _private_loss(params: Any, record: Any, label: Any) -> Any:
    hidden = jnp.tanh(record @ params["in"])
    hidden = jnp.tanh(hidden @ params["mid"])
    logit = jnp.sum(hidden @ params["out"])
    return jnp.logaddexp(0.0, logit) - label * logit


def _clip(gradients: Any) -> Any:
    share = jnp.minimum(1.0, 1.0 / (optax.global_norm(gradients) + 1e-6))
    return jax.tree.map(lambda gradient: gradient * share, gradients)


@jax.jit
def _add_clipped(total: Any, params: Any, record: Any, label: Any) -> Any:
    gradients = jax.grad(lambda p: jnp.sum(jax.vmap(partial(_private_loss, p))(record, label)))(params)
    return jax.tree.map(jnp.add, total, _clip(gradients))


def _sum_clipped(params: Any, records: np.ndarray, labels: np.ndarray) -> Any:
    total = jax.tree.map(jnp.zeros_like, params)
    for index in range(len(records)):
        total = _add_clipped(total, params, records[index : index + 1], labels[index : index + 1])
    return total


@jax.jit
def _sum_clipped_at_once(params: Any, records: Any, labels: Any) -> Any:
    clipped = jax.vmap(lambda record, label: _clip(jax.grad(_private_loss)(params, record, label)))(records, labels)
    return jax.tree.map(partial(jnp.sum, axis=0), clipped)


@jax.jit
def _apply_noisy(params: Any, total: Any, number: Any) -> Any:
    keys = jax.tree.unflatten(jax.tree.structure(params), list(jax.random.split(jax.random.key(number), 3)))

    def move(value: Any, gradient: Any, key: Any) -> Any:
        return value - 1e-3 * (gradient + 0.5 * jax.random.normal(key, value.shape))

    return jax.tree.map(move, params, total, keys)


@program(
    "small_batch",
    culprits=("_sum_clipped", "_add_clipped"),
    also=("eager_dispatch",),
    fix="vmap over the records of a batch",
    python=True,
)
def jax_private_records(run: Run) -> Iterator[None]:
    """Differentially private training: one call per record, to clip the gradient of each."""
    rng = np.random.default_rng(3)
    records, labels = rng.normal(size=(2048, 48)).astype("float32"), rng.integers(0, 2, 2048).astype("float32")
    shapes = {"in": (48, 96), "mid": (96, 96), "out": (96, 1)}
    params = {name: jnp.asarray(rng.normal(0, 0.1, shape), jnp.float32) for name, shape in shapes.items()}
    sum_clipped = _sum_clipped if run.slow else _sum_clipped_at_once
    for number in range(10**6):
        chosen = rng.integers(0, 2048, 320)
        with run.mark(number):
            total = sum_clipped(params, records[chosen], labels[chosen])
            params = _apply_noisy(params, total, number)
            jax.block_until_ready(params)
        yield


def _load_graph(people: int = 1800) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    links = rng.random((people, people)) < 0.01
    links |= links.T | np.eye(people, dtype=bool)
    share = links.sum(axis=1) ** -0.5
    features = rng.normal(size=(people, 16))
    return {"links": links * share * share[:, None], "features": features, "labels": rng.integers(0, 5, people)}


def _move_to_device(graph: dict[str, np.ndarray]) -> dict[str, Any]:
    return jax.tree.map(jnp.asarray, graph)


@program(
    "input_transfer",
    culprits=("_move_to_device", "asarray", "device_put", "BatchedDevicePut", "convert_element_type"),
    also=("memory_churn",),
    fix="move the graph to the device once, before the loop",
)
def jax_whole_graph(run: Run) -> Iterator[None]:
    """A graph network; its dense matrix of links is converted from float64 and moved in each epoch again."""
    graph, rng = _load_graph(), np.random.default_rng(5)
    kept = _move_to_device(graph)
    weights = [jnp.asarray(rng.normal(0, 0.1, shape), jnp.float32) for shape in ((16, 16), (16, 5))]

    @jax.jit
    def train_epoch(weights: list[Any], graph: dict[str, Any]) -> tuple[Any, Any]:
        def loss_fn(weights: list[Any]) -> Any:
            hidden = jax.nn.relu(graph["links"] @ (graph["features"] @ weights[0]))
            logits = graph["links"] @ (hidden @ weights[1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, graph["labels"]).mean()

        loss, gradients = jax.value_and_grad(loss_fn)(weights)
        return [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)], loss

    for number in range(10**6):
        with run.mark(number):
            weights, loss = train_epoch(weights, _move_to_device(graph) if run.slow else kept)
            loss.block_until_ready()
        yield


class Denoiser(nn.Module):
    """Residual blocks that are told how noisy the points are."""

    blocks: int = 10
    width: int = 128

    @nn.compact
    def __call__(self, points: Any, level: Any) -> Any:
        """The noise in the points."""
        hidden = nn.Dense(self.width)(jnp.concatenate([points, level[:, None]], axis=1))
        for _ in range(self.blocks):
            inner = nn.silu(nn.Dense(self.width)(nn.LayerNorm()(hidden)))
            hidden += nn.Dense(self.width)(inner) * nn.Dense(self.width)(level[:, None])
        return nn.Dense(2)(hidden)


def _average_params(average: Any, params: Any, decay: float = 0.999) -> Any:
    return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, average, params)


@program(
    "eager_dispatch",
    culprits=("_average_params",),
    also=("python_overhead",),
    fix="jit the update of the average",
    python=True,
)
def jax_diffusion_average(run: Run) -> Iterator[None]:
    """Diffusion of points in the plane; the moving average of 84 parameters is updated outside of jit."""
    model, optimizer = Denoiser(), optax.adam(1e-3)
    points = list(jax.random.normal(jax.random.key(6), (8, 96, 2)))
    params = model.init(jax.random.key(7), points[0], jnp.zeros(96))
    state, average = optimizer.init(params), params

    @jax.jit
    def train_step(params: Any, state: Any, clean: Any, number: Any) -> tuple[Any, Any, Any]:
        key = jax.random.key(number)
        level = jax.random.uniform(key, (len(clean),))
        noise = jax.random.normal(jax.random.fold_in(key, 1), clean.shape)
        noisy = jnp.cos(level)[:, None] * clean + jnp.sin(level)[:, None] * noise

        def loss_fn(params: Any) -> Any:
            return jnp.mean((model.apply(params, noisy, level) - noise) ** 2)

        loss, gradients = jax.value_and_grad(loss_fn)(params)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state, loss

    update_average = _average_params if run.slow else jax.jit(_average_params)
    for number in range(10**6):
        with run.mark(number):
            params, state, loss = train_step(params, state, points[number % 8], number)
            average = update_average(average, params)
            jax.block_until_ready((average, loss))
        yield


class Reader(nn.Module):
    """A language model of letters: two blocks of causal attention."""

    width: int = 64

    @nn.compact
    def __call__(self, letters: Any) -> Any:
        """Logits of the next letter."""
        places = self.param("places", nn.initializers.normal(0.02), (letters.shape[1], self.width))
        hidden = nn.Embed(96, self.width)(letters) + places
        for _ in range(2):
            normed = nn.LayerNorm()(hidden)
            hidden += nn.MultiHeadDotProductAttention(4)(normed, mask=nn.make_causal_mask(letters))
            hidden += nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(hidden))))
        return nn.Dense(96)(nn.LayerNorm()(hidden))


@program("none", culprits=(), fix="nothing to fix: the other variant has another seed")
def jax_healthy_letters(run: Run) -> Iterator[None]:
    """A small language model, jitted as a whole with donated state; the loss is read every 50 steps."""
    model, optimizer = Reader(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4))
    letters = list(jax.random.randint(jax.random.key(8 + run.slow), (8, 16, 65), 0, 96))
    params = model.init(jax.random.key(9), letters[0][:, :-1])
    state = optimizer.init(params)

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_step(params: Any, state: Any, text: Any) -> tuple[Any, Any, Any]:
        def loss_fn(params: Any) -> Any:
            logits = model.apply(params, text[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, text[:, 1:]).mean()

        loss, gradients = jax.value_and_grad(loss_fn)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    for number in range(10**6):
        with run.mark(number):
            params, state, loss = train_step(params, state, letters[number % 8])
            jax.block_until_ready((params, loss))
        yield
