"""The demo with TensorFlow: a compiled training step, fed by a tf.data pipeline."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import tensorflow as tf

from stepscope import capture as profiler
from stepscope.demo import data

HIDDEN = 512


def input_pipeline() -> Any:
    """Shuffled and prepared batches, without end.  It runs one stage at a time, so that there is something to
    improve."""

    def prepare(raw: Any, label: Any) -> tuple[Any, Any]:
        image = tf.cast(raw, tf.float32) + tf.random.normal((data.SIZE,), stddev=16.0)
        return (image - tf.reduce_mean(image)) / tf.math.reduce_std(image), label

    dataset = tf.data.Dataset.from_tensor_slices(data.images())
    return dataset.shuffle(len(dataset)).repeat().map(prepare).batch(data.BATCH)


def new_weights() -> list[Any]:
    """Three dense layers."""
    sizes = (data.SIZE, HIDDEN, HIDDEN, data.CLASSES)
    return [tf.Variable(tf.random.normal(shape, stddev=0.04)) for shape in pairwise(sizes)]


def train(logdir: str | os.PathLike[str]) -> Path | None:
    """Trains for a few steps, the later ones under the profiler."""
    weights, batches = new_weights(), iter(input_pipeline())

    @tf.function  # type: ignore[untyped-decorator]
    def train_step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            for layer in weights[:-1]:
                images = tf.nn.relu(images @ layer)
            scores = images @ weights[-1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        for weight, slope in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * slope)
        return loss

    for _ in range(data.WARM_UP):
        train_step(*next(batches)).numpy()
    with profiler.Profile(logdir) as profile:
        for i in range(data.STEPS):
            with profiler.step(i):
                train_step(*next(batches)).numpy()
    return profile.path
