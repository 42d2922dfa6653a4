"""What every program of this folder shares: its switches, its training loop, and the framework's own profiler.

The loop prints one JSON line: the median step time without the profiler, and under it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WARMUP, STEPS, PROFILED = 4, 12, 10


def switches() -> argparse.Namespace:
    """The command line of a program: its name, the variant, and where to put the profile."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--variant", choices=("slow", "fixed"), default="slow")
    parser.add_argument("--logdir", required=True)
    args = parser.parse_args()
    args.slow = args.variant == "slow"
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    os.environ |= {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "PJRT_NPROC": "1"}
    return args


def scratch() -> str:
    """A folder for the program's own files."""
    return tempfile.mkdtemp(prefix="stepscope-bottleneck-")


def _timed(step: Callable[[int], None], numbers: range) -> list[float]:
    times = []
    for number in numbers:
        begin = time.perf_counter()
        step(number)
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def _train(step: Callable[[int], None], profiler: Any) -> None:
    _timed(step, range(WARMUP))
    plain = _timed(step, range(WARMUP, WARMUP + STEPS))
    with profiler:
        under = _timed(step, range(WARMUP + STEPS, WARMUP + STEPS + PROFILED))
    print(json.dumps({"step_ms": statistics.median(plain), "profiled_step_ms": statistics.median(under)}), flush=True)


def train_tf(args: argparse.Namespace, step: Callable[[int], None]) -> None:
    """Runs steps, each inside a trace annotation with its number."""
    import tensorflow as tf

    def marked(number: int) -> None:
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            step(number)

    _train(marked, tf.profiler.experimental.Profile(args.logdir))


def train_jax(
    args: argparse.Namespace, step: Callable[[int], Any], between: Callable[[int], None] | None = None
) -> None:
    """Runs steps, each inside a step annotation; the loop waits for what `step` returns."""
    import jax

    def marked(number: int) -> None:
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            jax.block_until_ready(step(number))
        if between:
            between(number)

    _train(marked, jax.profiler.trace(args.logdir))


def train_on(loss: Any, optimizer: Any) -> None:
    """An ordinary step of PyTorch: gradients of the loss, then the update."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def train_torch(args: argparse.Namespace, step: Callable[[int], None]) -> None:
    """Runs steps under torch.profiler, whose `step()` marks them."""
    import torch

    torch.set_num_threads(1)

    @contextmanager
    def recording() -> Iterator[None]:
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=torch.profiler.schedule(wait=0, warmup=0, active=PROFILED, repeat=1),
            on_trace_ready=torch.profiler.tensorboard_trace_handler(args.logdir, use_gzip=True),
            record_shapes=True,
            profile_memory=True,
        ) as profiler:
            args.profiler = profiler
            yield

    def marked(number: int) -> None:
        step(number)
        if number >= WARMUP + STEPS:
            args.profiler.step()

    _train(marked, recording())


def two_ranks(args: argparse.Namespace, work: Callable[[int, argparse.Namespace], None]) -> None:
    """Runs `work` in two processes of one gloo group."""
    import torch.multiprocessing

    meeting = f"file://{scratch()}/meet"
    torch.multiprocessing.spawn(_rank, (work, args, meeting), nprocs=2)


def _rank(rank: int, work: Callable[[int, argparse.Namespace], None], args: argparse.Namespace, meeting: str) -> None:
    import torch.distributed

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    work(rank, args)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
