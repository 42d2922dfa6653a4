"""The demo without a framework: forward and backward by hand, recorded by Stepscope's own tracer."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from stepscope import capture as profiler
from stepscope.demo import data

HIDDEN = 256
RATE = 0.1


class Classifier:
    """Two dense layers with a ReLU between them and a softmax at the end."""

    def __init__(self) -> None:
        random = np.random.default_rng(2)
        self.first = random.normal(0, 0.03, (data.SIZE, HIDDEN)).astype(np.float32)
        self.second = random.normal(0, 0.06, (HIDDEN, data.CLASSES)).astype(np.float32)

    def forward(self, images: data.Images) -> tuple[data.Images, data.Images]:
        """Activations of the hidden layer and the class probabilities."""
        hidden = np.maximum(images @ self.first, 0)
        scores = hidden @ self.second
        odds = np.exp(scores - scores.max(1, keepdims=True))
        return hidden, odds / odds.sum(1, keepdims=True)

    def backward(
        self, images: data.Images, hidden: data.Images, odds: data.Images, labels: data.Labels
    ) -> tuple[data.Images, data.Images]:
        """Gradients of the mean cross-entropy with respect to both layers."""
        error = odds.copy()
        error[np.arange(len(labels)), labels] -= 1
        error /= len(labels)
        return images.T @ ((error @ self.second.T) * (hidden > 0)), hidden.T @ error

    def update(self, first: data.Images, second: data.Images) -> None:
        """One step of gradient descent."""
        self.first -= RATE * first
        self.second -= RATE * second


def train(logdir: str | os.PathLike[str]) -> Path | None:
    """Trains for a few steps, the later ones under the profiler."""
    model, batches = Classifier(), data.batches()

    def step() -> None:
        # The metadata marks this range as input preparation for viewers, as a framework's own events would.
        with profiler.Trace("load batch", _ipl_stage_name="load batch", _ipl_stage_cat="preprocessing"):
            images, labels = next(batches)
        with profiler.annotate("forward"):
            hidden, odds = model.forward(images)
        with profiler.annotate("backward"):
            gradients = model.backward(images, hidden, odds, labels)
        with profiler.annotate("update"):
            model.update(*gradients)

    for _ in range(data.WARM_UP):
        step()
    with profiler.Profile(logdir) as profile:
        for i in range(data.STEPS):
            with profiler.step(i):
                step()
    return profile.path
