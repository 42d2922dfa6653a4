"""Small training loops under the frameworks' own profilers, each run as a process of its own.

    python framework_programs.py NAME LOGDIR

writes a profile below LOGDIR and prints one JSON line: what the loop's own clock said of every profiled step, in ms.
`step_ms` is read around its mark, and `least_ms` inside; the mark's own time lies between the two, however busy the
machine is.  The loops are as a framework's guide would write them; nothing of Stepscope is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

STEPS = 10
WARM_UP = 3
MAP_SECONDS = 0.06  # far above a train step, also where other programs make that take ten times as long

Mark = Callable[[int], AbstractContextManager[Any]]
Clock = dict[str, list[float]]


def _clocked(mark: Mark, step: Callable[[], object]) -> Clock:
    """Runs `step` STEPS times inside `mark(i)`."""
    clock: Clock = {"step_ms": [], "least_ms": []}
    for i in range(STEPS):
        around = time.perf_counter()
        with mark(i):
            inside = time.perf_counter()
            step()
            clock["least_ms"].append((time.perf_counter() - inside) * 1e3)
        clock["step_ms"].append((time.perf_counter() - around) * 1e3)
    return clock


def _no_mark(_: int) -> AbstractContextManager[None]:
    return nullcontext()


def _tf_train_step(size: int) -> Callable[[Any], Any]:
    """A tf.function with one weight matrix, a loss, and a gradient step; its cost grows with `size`."""
    import tensorflow as tf

    weights = tf.Variable(tf.random.normal((size, size), stddev=0.01))

    def train_step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(batch @ weights) @ weights))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    compiled: Callable[[Any], Any] = tf.function(train_step)
    return compiled


def _tf_loop(logdir: str, dataset: Any, size: int, mark: Mark) -> Clock:
    import tensorflow as tf

    train_step = _tf_train_step(size)
    batches: Iterator[Any] = iter(dataset)

    def step() -> None:
        train_step(next(batches)).numpy()

    for _ in range(WARM_UP):
        step()
    tf.profiler.experimental.start(logdir)
    clock = _clocked(mark, step)
    tf.profiler.experimental.stop()
    return clock


def _tf_mark(step: int) -> AbstractContextManager[Any]:
    import tensorflow as tf

    trace: AbstractContextManager[Any] = tf.profiler.experimental.Trace("train", step_num=step, _r=1)
    return trace


def tf_slow_map(logdir: str) -> Clock:
    """tf.data with a map that takes 60 ms and nothing that would hide it; the train step takes a few."""
    import numpy as np
    import tensorflow as tf

    def slow(_: Any) -> Any:
        time.sleep(MAP_SECONDS)
        return np.ones((64, 256), np.float32)

    def decode(index: Any) -> Any:
        return tf.ensure_shape(tf.py_function(slow, [index], tf.float32), (64, 256))

    return _tf_loop(logdir, tf.data.Dataset.range(1000).map(decode), 256, _tf_mark)


def tf_healthy(logdir: str) -> Clock:
    """All batches are prefetched before the capture starts, so that even a busy machine makes no step wait for one; the
    step is all matrix products."""
    import tensorflow as tf

    batches = tf.data.Dataset.from_tensors(tf.ones((256, 768))).repeat().prefetch(64)
    return _tf_loop(logdir, batches, 768, _tf_mark)


def tf_unmarked(logdir: str) -> Clock:
    """As `tf_healthy`, and nobody marks the steps."""
    import tensorflow as tf

    return _tf_loop(logdir, tf.data.Dataset.from_tensors(tf.ones((128, 256))).repeat(), 256, _no_mark)


def tf_keras_fit(logdir: str) -> Clock:
    """Model.fit with the marks that Keras 3's TensorBoard callback makes: `Profiled batch`, without `_r`.

    That callback itself needs TensorBoard, which a profile does not.
    """
    import keras
    import numpy as np
    import tensorflow as tf

    class Profiled(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
            if batch == WARM_UP:
                tf.profiler.experimental.start(logdir)
            if WARM_UP <= batch < WARM_UP + STEPS:
                around, self.around = getattr(self, "around", 0.0), time.perf_counter()
                self.mark = tf.profiler.experimental.Trace("Profiled batch", step_num=batch)
                self.mark.__enter__()
                self.inside = time.perf_counter()
                if clock["step_ms"]:  # a step may last until the next one begins, and a busy machine may pause there
                    clock["step_ms"][-1] = (self.inside - around) * 1e3

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            if WARM_UP <= batch < WARM_UP + STEPS:
                clock["least_ms"].append((time.perf_counter() - self.inside) * 1e3)
                self.mark.__exit__(None, None, None)
                clock["step_ms"].append((time.perf_counter() - self.around) * 1e3)
            if batch == WARM_UP + STEPS - 1:
                tf.profiler.experimental.stop()

    clock: Clock = {"step_ms": [], "least_ms": []}
    model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)])
    model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = STEPS + 2 * WARM_UP
    features, labels = np.ones((batches * 64, 128), np.float32), np.zeros(batches * 64, np.int64)
    model.fit(features, labels, batch_size=64, epochs=1, verbose=0, callbacks=[Profiled()])
    return clock


def _jax_loop(logdir: str, mark: Mark) -> Clock:
    import jax
    import jax.numpy as jnp

    def loss(weights: Any, batch: Any) -> Any:
        return jnp.mean(jnp.square(jnp.tanh(batch @ weights) @ weights))

    train_step = jax.jit(lambda weights, batch: weights - 0.01 * jax.grad(loss)(weights, batch))
    state = {"weights": jax.random.normal(jax.random.key(0), (768, 768)) * 0.01}
    batch = jnp.ones((256, 768))  # a step takes far longer than a busy machine keeps a thread waiting

    def step() -> None:
        state["weights"] = train_step(state["weights"], batch).block_until_ready()

    for _ in range(WARM_UP):
        step()
    jax.profiler.start_trace(logdir)
    clock = _clocked(mark, step)
    jax.profiler.stop_trace()
    return clock


def jax_marked(logdir: str) -> Clock:
    """A jitted step inside StepTraceAnnotation."""
    import jax

    return _jax_loop(logdir, lambda step: jax.profiler.StepTraceAnnotation("train", step_num=step))


def jax_unmarked(logdir: str) -> Clock:
    """The same jitted step, and nobody marks it."""
    return _jax_loop(logdir, _no_mark)


def torch_marked(logdir: str) -> Clock:
    """A small network under torch.profiler with a schedule, which marks steps as ProfilerStep#N."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

    torch.set_num_threads(1)  # of two threads on a busy core one waits for the other
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, labels = torch.ones(512, 512), torch.zeros(512, dtype=torch.long)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()

    times = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=WARM_UP - 1, active=STEPS, repeat=1),
        on_trace_ready=tensorboard_trace_handler(logdir, worker_name="worker0"),
    ) as profiler:
        for _ in range(WARM_UP + STEPS):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
            profiler.step()
    return {"step_ms": times[WARM_UP:]}


PROGRAMS: dict[str, Callable[[str], Clock]] = {
    program.__name__: program
    for program in (
        tf_slow_map,
        tf_healthy,
        tf_unmarked,
        tf_keras_fit,
        jax_marked,
        jax_unmarked,
        torch_marked,
    )
}


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Else only processors with AVX512 VNNI, where oneDNN is on by default, get an allocator that records.
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    print(json.dumps(PROGRAMS[sys.argv[1]](sys.argv[2])))
