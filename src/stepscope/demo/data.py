"""Synthetic images of ten classes, hard enough that a model has to learn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SIZE = 784
CLASSES = 10
BATCH = 512
WARM_UP = 5
STEPS = 10

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


def images(count: int = 8192) -> tuple[NDArray[np.uint8], Labels]:
    """`count` images, uint8 of shape (count, SIZE), and their classes, int64 of shape (count,)."""
    random = np.random.default_rng(0)
    patterns = random.integers(0, 256, (CLASSES, SIZE))
    labels = random.integers(0, CLASSES, count)
    noise = random.integers(-120, 121, (count, SIZE))
    return np.clip(patterns[labels] + noise, 0, 255).astype(np.uint8), labels


def prepare(raw: NDArray[np.uint8], random: np.random.Generator) -> Images:
    """A batch for the model: with some noise, zero mean and unit variance; float32 of the same shape."""
    batch = raw.astype(np.float32) + random.normal(0, 16, raw.shape).astype(np.float32)
    scaled: Images = (batch - batch.mean(1, keepdims=True)) / batch.std(1, keepdims=True)
    return scaled


def batches() -> Iterator[tuple[Images, Labels]]:
    """Batches of BATCH shuffled and prepared images, without end."""
    random = np.random.default_rng(1)
    raw, labels = images()
    while True:
        chosen = random.integers(0, len(raw), BATCH)
        yield prepare(raw[chosen], random), labels[chosen]
