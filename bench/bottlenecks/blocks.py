"""Runs both variants of a program in one process, in alternating blocks: ABBA, up to six times.

A machine that is busy with other work slows both variants down alike, so their ratio has an interval that means
something. After the first four blocks the profiler records a window of each variant. `result.json` gets it all.

    python -m bench.bottlenecks.blocks NAME [--folder DIR]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.bottlenecks.loops import Fit, Loop, scratch
from bench.bottlenecks.series import Program, Run, list_programs

VARIANTS = ("slow", "fixed")
ORDER = ("slow", "fixed", "fixed", "slow")
GROUPS, FEWEST_GROUPS = 6, 2
BLOCK_S, BUDGET_S = 0.25, 24.0
WARMUP, RECORDED, MOST_STEPS = 6, 10, 100_000
OWN = "STEPSCOPE_BENCH_OWN"  # set for the capture of Stepscope in place of the framework's profiler
Recorder = Callable[[str], AbstractContextManager[Any]]


@dataclass
class Block:
    """One block: which variant, elapsed and CPU time per step (of all threads), and the median of its steps."""

    variant: str
    step_ms: float
    cpu_ms: float
    median_ms: float
    steps: int


class CpuClock(AbstractContextManager[None]):
    """Measures the CPU time of this process, which the load of the machine does not stretch."""

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.elapsed_ms = 1e3 * (time.process_time() - self._start)


def measure(
    declared: Program, variants: dict[str, Loop | Fit], recorder: Recorder, agree: Callable[[int], int]
) -> dict[str, Any]:
    """The blocks and the recorded steps. `agree` makes all ranks run the same number of steps."""
    started = time.perf_counter()
    counts = {name: agree(_choose_count(variant.run(2, WARMUP, nullcontext()))) for name, variant in variants.items()}
    blocks: list[Block] = []
    recorded: dict[str, float] = {}
    for group in range(GROUPS):
        if agree(int(group >= FEWEST_GROUPS and time.perf_counter() - started > BUDGET_S)):
            break
        blocks += [_run_block(name, variants[name], declared.lead, counts[name]) for name in ORDER]
        if group == 0:
            times = {name: each.run(declared.lead, RECORDED, recorder(name)) for name, each in variants.items()}
            recorded = {name: statistics.fmean(steps) for name, steps in times.items()}
    return {"blocks": [asdict(block) for block in blocks], "recorded_step_ms": recorded}


def _choose_count(times: list[float]) -> int:
    """How many steps make a block; a multiple of 4, since some programs save every second or fourth step."""
    steps = 1e3 * BLOCK_S / max(statistics.median(times), 1e-3)
    return 4 * round(min(max(steps, 4), 60) / 4)


def _run_block(name: str, variant: Loop | Fit, lead: int, count: int) -> Block:
    clock = CpuClock()
    times = variant.run(lead, count, clock)
    return Block(name, statistics.fmean(times), clock.elapsed_ms / count, statistics.median(times), count)


def main() -> None:
    """Measures one program, in as many processes as it has ranks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--folder", type=Path, help="measure both variants, with the captures and the result here")
    options = parser.parse_args()
    declared = next(found for found in list_programs() if found.name == options.program)
    _set_environment()
    if options.folder is None:  # the slow variant alone, for a proof that ends it
        build(declared, "slow").run(0, MOST_STEPS, nullcontext())
        return
    place = options.folder / declared.name
    if declared.ranks == 1:
        _measure_alone(declared, place)
    else:
        import torch.multiprocessing

        meeting = f"file://{scratch()}/meet"
        torch.multiprocessing.spawn(_measure_rank, (declared, place, meeting), nprocs=declared.ranks)


def _set_environment() -> None:
    """No GPU, and as many threads as a shared machine has to give."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    os.environ |= {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "PJRT_NPROC": "1"}


def _measure_alone(declared: Program, place: Path) -> None:
    result = measure(
        declared,
        {name: build(declared, name) for name in VARIANTS},
        _choose_recorder(declared, place),
        lambda count: count,
    )
    _write(declared, place, result)


def _measure_rank(rank: int, declared: Program, place: Path, meeting: str) -> None:
    import torch.distributed as dist

    _set_environment()
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=declared.ranks)

    def agree(count: int) -> int:
        counts = [count]
        dist.broadcast_object_list(counts, src=0)
        return counts[0]

    result = measure(
        declared, {name: build(declared, name) for name in VARIANTS}, _choose_recorder(declared, place), agree
    )
    if rank == 0:
        _write(declared, place, result)
    dist.barrier()
    dist.destroy_process_group()


def build(declared: Program, variant: str) -> Loop | Fit:
    """One variant of a program, in the environment of this process."""
    function = getattr(importlib.import_module(f"bench.bottlenecks.{declared.module}"), declared.name)
    found = function(Run(variant == "slow", choose_mark(declared.framework)))
    return found if isinstance(found, Fit) else Loop(found)


def _write(declared: Program, place: Path, result: dict[str, Any]) -> None:
    result = {
        "name": declared.name,
        "expected": declared.expected,
        "python": declared.has_python,
        "lines": declared.lines,
        **result,
    }
    (place / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")


def choose_mark(framework: str) -> Callable[[int], AbstractContextManager[Any]]:
    """The framework's mark around a step."""
    if framework == "tf":
        import tensorflow as tf

        return lambda number: tf.profiler.experimental.Trace("train", step_num=number, _r=1)
    if framework == "jax":
        import jax

        return lambda number: jax.profiler.StepTraceAnnotation("train", step_num=number)
    if OWN in os.environ:
        import stepscope

        return lambda number: stepscope.Trace("train", step_num=number, _r=1)
    return lambda number: nullcontext()  # torch.profiler marks steps itself, in `step()`


def _choose_recorder(declared: Program, place: Path) -> Recorder:
    for name in VARIANTS:
        (place / name).mkdir(parents=True, exist_ok=True)
    if OWN in os.environ:
        return lambda name: _record_own(place / name, declared.has_python)
    recorders = {"tf": _record_tf, "jax": _record_jax, "torch": _record_torch}
    return lambda name: recorders[declared.framework](str(place / name), declared.has_python)


@contextmanager
def _record_own(logdir: Path, python: bool) -> Iterator[None]:
    """Stepscope's own capture, which also records for how long the loop's thread had no processor."""
    import stepscope

    with stepscope.Profile(str(logdir), options={"python_tracer_level": int(python)}):
        yield


@contextmanager
def _record_tf(logdir: str, python: bool) -> Iterator[None]:
    import tensorflow as tf

    options = tf.profiler.experimental.ProfilerOptions(python_tracer_level=int(python))
    tf.profiler.experimental.start(logdir, options)
    yield
    tf.profiler.experimental.stop()


@contextmanager
def _record_jax(logdir: str, python: bool) -> Iterator[None]:
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = int(python)
    with jax.profiler.trace(logdir, profiler_options=options):
        yield


@contextmanager
def _record_torch(logdir: str, python: bool) -> Iterator[Callable[[], None]]:
    import torch

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=0, active=RECORDED, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(logdir, use_gzip=True),
        record_shapes=True,
        profile_memory=True,
        with_stack=python,
    ) as profiler:
        yield profiler.step


if __name__ == "__main__":
    main()
