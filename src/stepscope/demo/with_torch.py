"""The demo with PyTorch: a small network fed by a DataLoader."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from stepscope import capture as profiler
from stepscope.demo import data

HIDDEN = 512


class Images(torch.utils.data.Dataset):  # type: ignore[misc]
    """The images, each prepared when it is requested."""

    def __init__(self) -> None:
        self._raw, self._labels = data.images((data.WARM_UP + data.STEPS) * data.BATCH)
        self._random = np.random.default_rng(1)

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, row: int) -> tuple[Any, int]:
        return data.prepare(self._raw[row : row + 1], self._random)[0], int(self._labels[row])


def train(logdir: str | os.PathLike[str]) -> Path | None:
    """Trains for a few steps, the later ones under the profiler."""
    model = nn.Sequential(
        nn.Linear(data.SIZE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, data.CLASSES)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(torch.utils.data.DataLoader(Images(), batch_size=data.BATCH, shuffle=True))

    def step() -> None:
        images, labels = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    for _ in range(data.WARM_UP):
        step()
    with profiler.Profile(logdir) as profile:
        for i in range(data.STEPS):
            with profiler.step(i):
                step()
    return profile.path
