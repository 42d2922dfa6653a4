# modes: run watch prove
"""Context variables in tasks, threads, executors and generators of a loop in NumPy."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

import numpy as np

step = contextvars.ContextVar("step", default=-1)
seen = []


def train(weights):
    step.set(step.get() + 1)
    gradient = weights @ weights.T
    return weights - 1e-4 * np.tanh(gradient), step.get()


def steps(weights):
    for _ in range(3):
        weights, at = train(weights)
        yield at


async def worker(name, weights):
    for _ in range(4):
        weights, at = train(weights)
        seen.append((name, at))
        await asyncio.sleep(0)
    return step.get()


async def main(weights):
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(1)
    step.set(10)
    tasks = [asyncio.create_task(worker(name, weights)) for name in "abc"]
    in_thread = await asyncio.to_thread(lambda: (train(weights)[1], len(contextvars.copy_context())))
    in_pool = await loop.run_in_executor(pool, lambda: (step.get(), len(contextvars.copy_context())))
    pool.shutdown()
    return await asyncio.gather(*tasks), in_thread, in_pool, step.get()


weights = np.eye(32)
for _ in range(20):
    weights, _ = train(weights)
print(step.get(), [variable.name for variable in contextvars.copy_context()])
print(asyncio.run(main(weights)), seen)
context = contextvars.copy_context()
print(context.run(lambda: [*steps(weights)]), context[step], step.get())
made = steps(weights)
print(next(made), context.run(next, made), step.get(), made.gi_frame.f_locals["at"])
