"""The profiling snippets of the guides that people learn from, with `import stepscope as profiler` in place of theirs.

    python guide_programs.py FRAMEWORK FOLDER

runs each snippet in FOLDER/<its name> and prints one JSON line: snippet -> `steps`, the numbers of its marked steps, a
list for each profile that it left, and `said`, what Stepscope logged meanwhile.  What a snippet only assumes (a model,
an environment, a data set) is a small one here; the calls of the profiler are as in the text.
"""

# The snippets are other people's, in their own style.
# ruff: noqa: B007, F841, PTH103
from __future__ import annotations

import datetime
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from program_runs import profiles_below, step_numbers

import stepscope as profiler


class Dense:
    """A model of one layer, in plain TensorFlow."""

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf = tf
        self.weights = tf.Variable(tf.random.normal((4, 2)))

    def train(self, data):
        with self.tf.GradientTape() as tape:
            loss = self.tf.reduce_mean(self.tf.square(data @ self.weights))
        self.weights.assign_sub(0.1 * tape.gradient(loss, self.weights))
        return loss


# -- "How can TensorBoard be used to profile TensorFlow Agents' GPU usage?"


def agents_basic_trace() -> None:
    import tensorflow as tf

    agent, replay_buffer = Dense(), []
    log_dir = "logs/profile"
    os.makedirs(log_dir, exist_ok=True)
    summary_writer = tf.summary.create_file_writer(log_dir)

    num_iterations = 1
    for i in range(num_iterations):
        with summary_writer.as_default():
            profiler.start(logdir=log_dir)
            for j in range(2):
                for k in range(2):
                    replay_buffer.append(tf.random.uniform((1, 4)))
            trajectories = tf.concat(replay_buffer, 0)
            train_loss = agent.train(trajectories)
            profiler.stop()
            tf.summary.scalar("loss", train_loss, step=i)


def agents_selective_trace() -> None:
    import tensorflow as tf

    agent = Dense()
    log_dir = "logs/profile_selective"
    summary_writer = tf.summary.create_file_writer(log_dir)
    for i in range(1):
        with summary_writer.as_default():
            trajectories = tf.random.uniform((8, 4))
            profiler.start(logdir=log_dir)
            train_loss = agent.train(trajectories)
            profiler.stop()
            tf.summary.scalar("loss", train_loss, step=i)


# -- "How can TensorFlow Profiler identify and reduce performance bottlenecks?"


def keras_model():
    import tensorflow as tf

    model = tf.keras.models.Sequential(
        [tf.keras.Input((784,)), tf.keras.layers.Dense(10, activation="relu"), tf.keras.layers.Dense(10)]
    )
    model.compile(optimizer="adam", loss="mse")
    return model, tf.random.normal((1000, 784)), tf.random.normal((1000, 10))


def bottlenecks_callback() -> None:
    model, x_train, y_train = keras_model()
    log_dir = "logs/fit/" + datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    profiler_callback = profiler.keras.ProfilerCallback(log_dir, profile_batch="100,102")

    # The text trains two epochs of 32 batches, in which there is no batch 100.
    model.fit(x_train, y_train, epochs=4, verbose=0, callbacks=[profiler_callback])
    assert profiler_callback.path is not None  # it is written in the background; asking for it waits


def bottlenecks_function() -> None:
    import tensorflow as tf

    @tf.function
    def my_function(data):
        a = tf.linalg.matmul(data, data, transpose_a=True)
        b = tf.nn.softmax(a)
        return b

    data = tf.random.normal(shape=(1000, 100))
    profiler.start("logdir")
    for _ in range(100):
        my_function(data)
    profiler.stop()


def bottlenecks_graph() -> None:
    model, x_train, y_train = keras_model()
    profiler.start("logdir")
    model.train_on_batch(x_train[:1], y_train[:1])
    profiler.stop()


def bottlenecks_graph_statistics() -> None:
    """The third example once more, in the loop that the text asks for, with a layer whose output nobody uses."""
    import tensorflow as tf

    weights, auxiliary = (tf.Variable(tf.random.normal((16, 16))) for _ in range(2))

    @tf.function
    def train_step(data):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(data @ weights)
            with tf.name_scope("auxiliary"):
                tf.matmul(hidden, auxiliary)
            loss = tf.reduce_mean(hidden)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    train_step(tf.ones((8, 16)))
    with profiler.Profile("logdir"):
        for step in range(4):
            with profiler.Trace("train", step_num=step, _r=1):
                train_step(tf.ones((8, 16)))


# -- "Why isn't TensorBoard Profiler working and displaying the profiling tab during training?"


def tab_profiler_object() -> None:
    import tensorflow as tf

    model = Dense()
    train_dataset = tf.data.Dataset.from_tensor_slices(tf.random.uniform((8, 4))).batch(4)
    log_dir = "logs/profile/" + datetime.datetime.now().strftime("%Y%m%d-%H%M%S")

    @tf.function
    def train(epochs):
        prof = profiler.Profiler(log_dir)
        prof.start()
        for epoch in range(epochs):
            for images in train_dataset:
                loss = model.train(images)
        prof.stop()

    train(2)


def tab_torch() -> None:
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    train_loader = [(torch.ones(8, 4), torch.zeros(8, dtype=torch.long)) for _ in range(3)]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    log_dir = "logs/profile/" + datetime.datetime.now().strftime("%Y%m%d-%H%M%S")

    # What the text asks of PyTorch's profiler with record_shapes and profile_memory is level 3 here.
    with profiler.Profile(log_dir, profiler.ProfilerOptions(host_tracer_level=3)) as prof:
        for epoch in range(2):
            for images, labels in train_loader:
                with profiler.annotate("train_step"):
                    optimizer.zero_grad()
                    predictions = model(images)
                    loss = nn.CrossEntropyLoss()(predictions, labels)
                    with profiler.annotate("backward_pass"):
                        loss.backward()
                    optimizer.step()
    assert prof.path is not None


def tab_workers() -> None:
    def train_distributed(worker_index):
        log_dir = f"logs/profile_worker_{worker_index}/" + datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        prof = profiler.Profiler(log_dir)
        prof.start()
        sum(range(1000))
        prof.stop()

    workers = 2
    for i in range(workers):
        train_distributed(i)


# -- "Optimize TensorFlow performance using the Profiler"


def guide_callback() -> None:
    import tensorflow as tf

    model, x, y = keras_model()
    train_data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat()
    log_dir = "logs"
    # Profile from batches 10 to 15
    tb_callback = profiler.keras.ProfilerCallback(log_dir, profile_batch="10, 15")
    model.fit(train_data, steps_per_epoch=20, epochs=5, verbose=0, callbacks=[tb_callback])
    assert tb_callback.path is not None


def guide_function_api() -> None:
    model = Dense()
    profiler.start("logdir")
    model.train(model.tf.ones((8, 4)))
    profiler.stop()


def guide_context_manager() -> None:
    model = Dense()
    with profiler.Profile("logdir"):
        model.train(model.tf.ones((8, 4)))


def guide_python_tracing() -> None:
    model = Dense()
    options = profiler.ProfilerOptions(host_tracer_level=2, python_tracer_level=1, device_tracer_level=1)
    profiler.start("logdir", options=options)
    model.train(model.tf.ones((8, 4)))
    profiler.stop()


def guide_sampling() -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = Dense()
    profiler.server.start(PORT)
    with ThreadPoolExecutor() as pool:
        trace = pool.submit(profiler.client.trace, f"grpc://localhost:{PORT}", "your_tb_logdir", 200)
        while not trace.done():
            model.train(model.tf.ones((8, 4)))
    trace.result()
    profiler.server.stop()


WORKER = """
import stepscope as profiler
print(profiler.server.start(0), flush=True)
while True:
    with profiler.annotate("work"): sum(range(10000))
"""


def guide_many_workers() -> None:
    workers = [subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        addresses = [f"grpc://localhost:{worker.stdout.readline().strip()}" for worker in workers]
        profiler.client.trace(
            ",".join(addresses),
            "your_tb_logdir",
            200)  # fmt: skip
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def guide_custom_loop() -> None:
    model = Dense()
    dataset = iter(model.tf.data.Dataset.from_tensors(model.tf.ones((8, 4))).repeat())
    with profiler.Profile("logdir"):
        for step in range(4):
            with profiler.Trace("train", step_num=step, _r=1):
                train_data = next(dataset)
                model.train(train_data)


def guide_custom_loop_anti_pattern() -> None:
    model = Dense()
    dataset = model.tf.data.Dataset.from_tensors(model.tf.ones((8, 4))).repeat(3)
    next(iter(dataset))
    with profiler.Profile("logdir"):
        for step, train_data in enumerate(dataset):
            with profiler.Trace("train", step_num=step, _r=1):
                model.train(train_data)


def guide_long_names() -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(10).map(lambda x: x).repeat(2).batch(5)
    with profiler.Profile("logdir"):
        for _ in dataset:
            pass


def guide_keras_own_callback() -> None:
    import tensorflow as tf

    model, x, y = keras_model()
    train_data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat()
    # Profile from batches 10 to 15
    tb_callback = tf.keras.callbacks.TensorBoard(log_dir="logs", profile_batch="10, 15")
    model.fit(train_data, steps_per_epoch=20, epochs=1, verbose=0, callbacks=[tb_callback])


# -- what people do wrong with these snippets


def wrong_batches_that_never_come() -> None:
    model, x_train, y_train = keras_model()
    callback = profiler.keras.ProfilerCallback(log_dir="logs", profile_batch="100,102")
    model.fit(x_train, y_train, epochs=2, verbose=0, callbacks=[callback])


def wrong_batch_range() -> None:
    profiler.keras.ProfilerCallback("logs", profile_batch="15, 10")


def wrong_two_callbacks() -> None:
    model, x_train, y_train = keras_model()
    both = [profiler.keras.ProfilerCallback("logs", profile_batch=(3, 5)) for _ in range(2)]
    model.fit(x_train, y_train, epochs=1, verbose=0, callbacks=both)
    assert both[0].path is not None


def wrong_eager_callback() -> None:
    model, x_train, y_train = keras_model()
    model.compile(optimizer="adam", loss="mse", run_eagerly=True)
    callback = profiler.keras.ProfilerCallback("logs", profile_batch=(3, 5))
    model.fit(x_train[:320], y_train[:320], epochs=1, verbose=0, callbacks=[callback])
    assert callback.path is not None


def wrong_start_inside_a_function() -> None:
    import tensorflow as tf

    @tf.function
    def train():
        profiler.start("logdir")
        x = tf.ones((4, 4)) @ tf.ones((4, 4))
        profiler.stop()
        return x

    train()


def wrong_window_without_steps() -> None:
    for step in range(5):
        with profiler.Trace("train", step_num=step, _r=1):
            sum(range(1000))
    with profiler.Profile("logdir"):
        sum(range(1000))


def wrong_stop_before_start() -> None:
    profiler.stop()


def wrong_second_start() -> None:
    profiler.start("logdir")
    profiler.start("logdir")
    profiler.stop()


def wrong_logdir() -> None:
    Path("logs").write_text("a file")
    profiler.start("logs")


def wrong_port() -> None:
    with socket.create_server(("", 0)) as taken:
        profiler.server.start(taken.getsockname()[1])


# -- "Tensorflow Profiler with Custom Training Loop"


def post_function_api() -> None:
    model = Dense()
    profiler.start("logdir")
    # Train the model here
    model.train(model.tf.ones((8, 4)))
    profiler.stop()


def post_context_manager() -> None:
    model = Dense()
    with profiler.Profile("logdir"):
        # Train the model here
        model.train(model.tf.ones((8, 4)))


def post_warmup() -> None:
    model = Dense()
    profiler.warmup()
    profiler.start(logdir="logdir")
    model.train(model.tf.ones((8, 4)))
    profiler.stop()


SNIPPETS: dict[str, list[Callable[[], None]]] = {
    "tensorflow": [
        agents_basic_trace,
        agents_selective_trace,
        bottlenecks_callback,
        bottlenecks_function,
        bottlenecks_graph,
        bottlenecks_graph_statistics,
        tab_profiler_object,
        guide_callback,
        guide_function_api,
        guide_context_manager,
        guide_python_tracing,
        guide_sampling,
        guide_custom_loop,
        guide_custom_loop_anti_pattern,
        guide_long_names,
        guide_keras_own_callback,
        wrong_batches_that_never_come,
        wrong_batch_range,
        wrong_two_callbacks,
        wrong_eager_callback,
        wrong_start_inside_a_function,
        post_function_api,
        post_context_manager,
        post_warmup,
    ],
    "torch": [tab_torch],
    "python": [
        tab_workers,
        guide_many_workers,
        wrong_window_without_steps,
        wrong_stop_before_start,
        wrong_second_start,
        wrong_logdir,
        wrong_port,
    ],
}
PORT = int(os.environ.get("GUIDE_PORT", "0"))


class Heard(logging.Handler):
    """Keeps what Stepscope logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def take(self) -> list[str]:
        """The lines since the last call."""
        taken, self.lines = self.lines, []
        return taken


def main(framework: str, folder: str) -> None:
    said, heard = {}, Heard()
    logging.getLogger("stepscope").addHandler(heard)
    for snippet in SNIPPETS[framework]:
        place = Path(folder, snippet.__name__)
        place.mkdir()
        os.chdir(place)
        snippet()
        found = sorted(path for logdir in place.rglob("plugins") for path in profiles_below(logdir.parent))
        said[snippet.__name__] = {"steps": [step_numbers(path) for path in found], "said": heard.take()}
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
