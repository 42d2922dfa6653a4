"""Plain Python: a chain of generators feeds a loop, without any framework."""

import math
import random

from clock import CLOCK


def read(count):
    """Lines of numbers."""
    for _ in range(count):
        yield " ".join(str(random.random()) for _ in range(400))


def parse(lines):
    """The numbers of each line."""
    for line in lines:
        yield [float(word) for word in line.split()]


def batches(rows, size):
    """So many rows at a time."""
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []


def update(weights, batch):
    """The weights after a step of gradient descent."""
    for row in batch:
        error = math.tanh(sum(w * x for w, x in zip(weights, row, strict=True))) - 0.5
        weights = [w - 0.001 * error * x for w, x in zip(weights, row, strict=True)]
    return weights


random.seed(0)
weights = [0.0] * 400
for number, batch in enumerate(batches(parse(read(8 * 800)), 8)):
    weights = update(weights, batch)
    CLOCK.tick()
    if number % 200 == 199:
        print(f"step {number}: {sum(weights):.3f}")
