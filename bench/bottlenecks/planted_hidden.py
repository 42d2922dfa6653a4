"""Programs for `bench.prove` in which work of the host is done in time: a step waits for something else."""

from __future__ import annotations

import collections
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from bench.bottlenecks.planted import Planted, Step, compute_array, torch_training


def torch_two_stages(slow: bool) -> Iterator[None]:
    """One thread fetches, a second one unpacks for longer than the first fetches and the step computes."""
    import torch

    _, train_batch = torch_training()
    fetched: queue.Queue[int] = queue.Queue(2)
    unpacked: queue.Queue[Any] = queue.Queue(2)
    ready = torch.ones(64, 256)

    def fetch_part() -> int:
        time.sleep(0.003)
        return 1

    def unpack_part(part: int) -> Any:
        time.sleep(0.02)
        return ready

    def fetch_parts() -> None:
        while True:
            fetched.put(fetch_part())

    def unpack_parts() -> None:
        while True:
            unpacked.put(unpack_part(fetched.get()))

    for work in (fetch_parts, unpack_parts):
        threading.Thread(target=work, daemon=True).start()
    while True:
        train_batch(unpacked.get())
        yield


def tf_prefetches(slow: bool) -> Iterator[None]:
    """tf.data prefetches from a generator of Python that is quicker than the step."""
    import tensorflow as tf

    ready = np.ones((512, 256), np.float32)

    def read_rows() -> Any:
        time.sleep(0.002)
        return ready

    def generate_rows() -> Iterator[Any]:
        while True:
            yield read_rows()

    weights = [tf.Variable(tf.random.normal((256, 512)) * 0.05), tf.Variable(tf.random.normal((512, 512)) * 0.05)]

    @tf.function
    def train_batch(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.tanh(tf.tanh(batch @ weights[0]) @ weights[1]) ** 2)
        for weight, slope in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.01 * slope)
        return loss

    rows = tf.data.Dataset.from_generator(generate_rows, output_signature=tf.TensorSpec((512, 256), tf.float32))
    for batch in rows.prefetch(4):
        train_batch(batch)
        yield


def plain_asks_ahead(slow: bool) -> Step:
    """A service on another thread answers for the next step while this one computes."""
    service, answers = ThreadPoolExecutor(1), collections.deque[Future[int]]()

    def answer_ahead() -> int:
        time.sleep(0.003)
        return 1

    def compute_step() -> None:
        compute_array(12)

    answers.append(service.submit(answer_ahead))

    def step(number: int) -> None:
        answers.popleft().result()
        answers.append(service.submit(answer_ahead))
        compute_step()

    return step


HIDDEN = {
    each.name: each
    for each in (
        Planted(torch_two_stages, hidden=("fetch_part", "train_batch"), critical=("unpack_part",)),
        Planted(tf_prefetches, hidden=("read_rows",), critical=("train_batch",)),
        Planted(plain_asks_ahead, hidden=("answer_ahead",), critical=("compute_step",)),
    )
}
