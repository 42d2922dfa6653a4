"""One training program per framework that is captured in every way there is.

    stepscope run --logdir LOGDIR/run --steps 4 --skip 3 matrix_programs.py FRAMEWORK LOGDIR

`run` captures the first loop, which says nothing about profiling; the loops after it capture themselves.  Prints one
JSON line: way -> what the loop's own clock said.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import stepscope as profiler
from stepscope.capture.recorder import RECORDER

STEPS = 9

Report = dict[str, Any]


class Step:
    """A training step in two parts: the work, and the call with which a finder takes it to end."""

    def __init__(self, last: Callable[[], object], work: Callable[[], object] = lambda: None) -> None:
        self.work = work
        self.last = last

    def __call__(self) -> None:
        self.work()
        self.last()


class Clock:
    """The loop's own clock: it is read before and after whatever begins and ends a step, so that a step's true time is
    known to lie between two, however busy the machine is."""

    def __init__(self) -> None:
        self._readings: list[tuple[float, float]] = []

    def around(self, boundary: Callable[[], object]) -> None:
        """What ends a step and begins the next one."""
        before = time.perf_counter()
        boundary()
        self._readings.append((before * 1e3, time.perf_counter() * 1e3))

    def ms(self) -> list[tuple[float, float]]:
        """The least and the most that each step may have taken: one step between two boundaries."""
        pairs = zip(self._readings, self._readings[1:], strict=False)
        return [(end[0] - begin[1], end[1] - begin[0]) for begin, end in pairs]


def pace(i: int) -> None:
    """Waits longer in each step of three than in the one before, so that no step can be taken for its neighbour."""
    time.sleep(0.015 + 0.005 * (i % 3))


def unmarked(step: Step, count: int, after: Callable[[int], object] = lambda i: None) -> list[tuple[float, float]]:
    """A loop as people write it."""
    clock = Clock()
    clock.around(lambda: None)
    for i in range(count):
        pace(i)
        step.work()
        clock.around(step.last)
        after(i)
    return clock.ms()


def marked(step: Step, count: int, until: Callable[[], bool] = lambda: False) -> list[tuple[float, float]]:
    """A loop that marks its steps itself."""
    times = []
    for i in range(count):
        mark = Clock()
        with ExitStack() as stack:
            mark.around(lambda i=i, stack=stack: stack.enter_context(profiler.step(i)))
            pace(i)
            step()
            mark.around(stack.close)
        times += mark.ms()
        if until():
            break
    return times


def expects(times: list[tuple[float, float]], numbers: range | list[int]) -> Report:
    return {"numbers": list(numbers), "ms": [times[i] for i in numbers]}


def run(step: Step, logdir: str, loop: Any) -> Report:
    """What `stepscope run` captures: 4 steps after 3."""
    return expects(loop(step, STEPS), range(3, 7))


def start_stop(step: Step, logdir: str, loop: Any) -> Report:
    profiler.start(logdir)
    times = marked(step, STEPS)
    profiler.stop()
    return expects(times, range(STEPS))


def context(step: Step, logdir: str, loop: Any) -> Report:
    with profiler.Profile(logdir):
        times = marked(step, STEPS)
    return expects(times, range(STEPS))


def schedule(step: Step, logdir: str, loop: Any) -> Report:
    clock = Clock()
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with profiler.Profile(logdir, schedule=plan) as profile:
        clock.around(lambda: None)
        for i in range(STEPS):
            pace(i)
            step()
            clock.around(profile.step)
    return expects(clock.ms(), [2, 3, 6, 7])


def server(step: Step, logdir: str, loop: Any) -> Report:
    """A client of this very process asks its server, while the loop runs."""
    port = profiler.server.start(0, address="localhost")
    assert port, profiler.last_error()
    client = threading.Thread(target=profiler.client.trace, args=(f"grpc://localhost:{port}", logdir, 400))
    client.start()
    times = marked(step, 1000, until=lambda: not client.is_alive())
    profiler.server.stop()
    return {"numbers": None, "ms": times}


def by_signal(step: Step, logdir: str, loop: Any) -> Report:
    """What a SIGUSR2 during step 1 captures: the 4 steps after it."""

    def send(i: int) -> None:
        if i == 0:
            os.kill(os.getpid(), signal.SIGUSR2)

    if loop is marked:
        os.kill(os.getpid(), signal.SIGUSR2)
        return {"numbers": None, "ms": marked(step, STEPS)}
    times = unmarked(step, STEPS, after=send)
    return {"numbers": None, "ms": times, "first": 2}


def keras_callback(step: Step, logdir: str, loop: Any) -> Report:
    """Keras' fit, with this framework as its backend."""
    import keras
    import numpy as np

    clock = Clock()
    clock.around(lambda: None)

    class Pace(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            pace(batch)

    class Profiling(profiler.keras.ProfilerCallback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            clock.around(lambda: super(Profiling, self).on_train_batch_end(batch, logs))

    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback = Profiling(logdir, profile_batch="4,7")
    data = np.ones((STEPS * 4, 8), "float32")
    model.fit(data, data[:, :1], batch_size=4, epochs=1, verbose=0, shuffle=False, callbacks=[Pace(), callback])
    assert callback.path, profiler.last_error()
    return {"numbers": [4, 5, 6, 7], "ms": clock.ms()[3:7]}


def trainer_callback(step: Step, logdir: str, loop: Any) -> Report:
    """A trainer of one's own that calls the hooks of Lightning's callbacks."""
    callback = profiler.lightning.ProfilerCallback(logdir, profile_batch=(4, 7))
    trainer = SimpleNamespace(is_last_batch=False)
    clock = Clock()
    clock.around(lambda: None)
    for batch in range(STEPS):
        callback.on_train_batch_start(trainer, None, None, batch)
        pace(batch)
        step()
        clock.around(functools.partial(callback.on_train_batch_end, trainer, None, None, None, batch))
    callback.on_train_end(trainer, None)
    assert callback.path, profiler.last_error()
    return {"numbers": [4, 5, 6, 7], "ms": clock.ms()[3:7]}


def tensorflow_step() -> Step:
    import tensorflow as tf

    weights = tf.Variable(tf.random.normal((64, 64)))
    compiled = tf.function(lambda: weights.assign(tf.tanh(weights @ weights)))
    return Step(lambda: compiled().numpy())


def jax_step() -> Step:
    import jax
    import jax.numpy as jnp

    compiled = jax.jit(lambda weights: jnp.tanh(weights @ weights))
    weights = jnp.ones((64, 64))
    return Step(lambda: compiled(weights).block_until_ready())


def torch_step() -> Step:
    import torch

    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    data = torch.ones(8, 64)

    def work() -> None:
        optimizer.zero_grad()
        model(data).sum().backward()

    return Step(optimizer.step, work)


def python_step() -> Step:
    return Step(lambda: sum(range(10_000)))


STEP_OF = {"tensorflow": tensorflow_step, "jax": jax_step, "torch": torch_step, "python": python_step}
WAYS = {
    "run": run,
    "signal": by_signal,  # before the loops that are marked: few steps of another kind are an evaluation after those
    "start/stop": start_stop,
    "context": context,
    "schedule": schedule,
    "server and client": server,
    "callback": keras_callback,
}


def settle() -> None:
    """Waits until the profiler of the last capture has stopped: a start waits only a moment for that, and on a busy
    machine it takes longer."""
    for capture in list(RECORDER.exporting):
        capture.released.wait(60)


def main(framework: str, logdir: str) -> None:
    step = STEP_OF[framework]()
    loop = marked if framework == "python" else unmarked  # nothing tells the steps of plain Python
    ways: dict[str, Any] = dict(WAYS)
    if framework == "python":
        ways["callback"] = trainer_callback
    said = {}
    for way, capture in ways.items():
        said[way] = capture(step, str(Path(logdir, way.replace("/", " "))), loop)
        settle()
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
