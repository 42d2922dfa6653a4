"""What is right to say of a recording, and recordings whose right answer was found without Stepscope."""

from __future__ import annotations

import itertools
import json
import statistics
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.mutilation.rows import MARK, Recording, read
from bench.profiles import folder, shared_file


@dataclass(frozen=True)
class Known:
    """A right answer.

    Attributes:
        verdicts: any of these is true.
        first: any of these classes of the first advice is fair.
        step_ms: how long a step is from begin to begin, least and most; None where the rows do not tell.
        gain: by how much steps can become faster by any change that leaves the device's work as it is.
        why: the figures of the file that say so.
    """

    verdicts: tuple[str, ...]
    first: tuple[str, ...]
    step_ms: tuple[float, float] | None = None
    gain: float | None = None
    why: str = ""


PS_PER_MS = 1e9
ENOUGH_MARKS = 6

_INPUT = ("input_preprocessing", "input_python", "input_no_prefetch", "input_file_read")
_COMPUTE = ("none", "low_precision")

# Below STEPSCOPE_SHARED.  The figures were summed from the rows of each file by a script that knows no rule.
SHARED = {
    "torch-control": ("strangers/c00_control/t.pt.trace.json.gz", Known(
        ("compute_bound",), ("none",), (16.24, 16.24), 1.1, "kernels fill 16.00 of 16.24 ms")),
    "torch-loader": ("strangers/t25g_noise_clean/t.pt.trace.json.gz", Known(
        ("input_bound",), _INPUT, (16.24, 16.24), 4.1, "the loader takes 12.00 of 16.24 ms, kernels 4.00")),
    "torch-no-sync": ("strangers/t54_nosync/t.pt.trace.json.gz", Known(
        ("compute_bound",), _COMPUTE, (10.13, 10.13), 1.1, "kernels fill 10.00 of 10.13 ms")),
    "torch-text-links": ("strangers/t60c_corrstr/t.pt.trace.json.gz", Known(
        ("compute_bound",), _COMPUTE, None, 1.2, "kernels fill the step")),
    "torch-fsdp": ("strangers/t18b_fsdp/rank0.pt.trace.json.gz", Known(
        ("communication_bound",), ("communication_bound",), (7.79, 7.79), None, "all_gather is mostly exposed")),
    "jax-float-loss": ("strangers/a1_gpu_float_loss/a1_gpu_float_loss.xplane.pb", Known(
        ("compute_bound",), _COMPUTE, (30.0, 30.0), 1.1, "the kernel takes 28.0 of 30.0 ms")),
    "jax-stray": ("strangers/a2_stray_kernel_60s/a2_stray_kernel_60s.xplane.pb", Known(
        ("compute_bound",), _COMPUTE, (30.0, 30.0), 1.3, "kernels take 24.0 of 30 ms; one lies 60 s later")),
    "jax-cpu-thunks": ("strangers/a4_thunk_wait/a4_thunk_wait.xplane.pb", Known(
        ("compute_bound",), _COMPUTE, None, None, "ops of the program run on other threads while the loop waits")),
    "jax-cpu-marks": ("strangers/a8_every_step_end_after/a8_every_step_end_after.xplane.pb", Known(
        ("compute_bound",), _COMPUTE, None, None, "ops fill the steps")),
    "jax-window-loader": ("strangers/a12_window_loader/a12_window_loader.xplane.pb", Known(
        ("input_bound",), _INPUT, None, None, "the loop waits in queue.get for a thread that prepares batches")),
    "keras-map": ("strangers/a5_keras_slow_map_busy_machine/a5_keras_slow_map_busy_machine.xplane.pb", Known(
        ("input_bound",), _INPUT, None, None, "the map's Python function runs 581.6 of 721.8 ms")),
    "torch-qwen": ("corpus/torch-h100-qwen/qwen.pt.trace.json.gz", Known(
        ("compute_bound",), (*_COMPUTE, "memory_churn"), None, 1.12, "kernels fill 43.3 of 47.2 ms")),
    "torch-resnet-loader": ("corpus/torch-v100-resnet50-workers0/worker0.1623143089861.pt.trace.json.gz", Known(
        ("input_bound", "compute_bound"), _INPUT, (174.8, 174.8), 1.8, "the loader takes 69.3 of 174.8, kernels 98")),
    "torch-nccl": ("corpus/torch-nccl/nccl.pt.trace.json.gz", Known(
        ("launch_bound", "host_bound"), ("eager_dispatch", "small_batch", "none"), (222.4, 222.4), 4.5,
        "kernels fill 52 of 222 ms, ops of the two threads the rest; exposed communication is 10 to 19 ms")),
    "torch-checkpointed": ("corpus/torch-mi300-resnet/resnet_act_checkpoint.pt.trace.json.gz", Known(
        ("communication_bound",), ("communication_bound",), None, None, "of 16 ms 9.0 to 11.7 are all-reduce alone")),
}  # fmt: skip

# Programs of `../shared/bottlenecks`: what was measured to make each slow, as verdicts.
_CAPTURED = {
    "jax_dense": (("compute_bound",), ("none",)),
    "jax_python_report": (("host_bound",), ("python_overhead",)),
    "jax_table_argument": (("input_bound", "host_bound", "launch_bound"), ("input_transfer",)),
    "tf_convnet": (("compute_bound",), ("none",)),
    "tf_save_every_step": (("host_bound",), ("checkpoint_stall",)),
    "torch_memory_bank": (("compute_bound", "host_bound", "launch_bound"), ("memory_churn", "input_transfer")),
    "torch_python_dataset": (("input_bound",), ("input_python", "input_preprocessing")),
    "torch_zero_weight_teacher": (("compute_bound", "launch_bound"), ("redundant_compute",)),
    "torch_transformer": (("compute_bound",), ("none",)),
}


def shared_recordings() -> Iterator[tuple[str, Path, Known]]:
    """Name, file and right answer of each recording that is at hand."""
    for name, (part, known) in SHARED.items():
        path = shared_file(part)
        if path is not None:
            yield name, path, known
    archive = shared_file("bottlenecks/captures.tar.xz")
    if archive is None:
        return
    home = folder() / "bottlenecks"
    if not home.exists():
        with tarfile.open(archive) as content:
            content.extractall(home, filter="data")
    for case, (verdicts, first) in _CAPTURED.items():
        files = sorted(one for one in (home / case / "slow").rglob("*") if one.is_file())
        if len(files) == 1:
            yield f"captured-{case}", files[0], Known(verdicts, first, why=_measured(case))


def _measured(case: str) -> str:
    manifest = shared_file("bottlenecks/manifest.json")
    cases = json.loads(manifest.read_text("utf-8"))["cases"] if manifest else []
    ratio = next((one["measured_ratio"] for one in cases if one["id"] == case), None)
    return f"the fix makes its steps {ratio} times as fast"


def load(path: Path, known: Known) -> tuple[Recording, Known]:
    """The rows of a recording, and its answer with the step time that the marks themselves give."""
    recording = read(path)
    marks = sorted((row.start, row.end) for row in recording.rows if row.what == MARK)
    if known.step_ms is None and len(marks) >= ENOUGH_MARKS:
        starts = [start for start, _ in marks]
        gaps = [later - start for start, later in itertools.pairwise(starts)]
        last = (marks[-1][1] - starts[0]) / len(marks)  # with the last mark, whose successor was not recorded
        figures = (statistics.median(gaps), statistics.mean(gaps), statistics.mean(gaps[1:]), last)
        known = replace(known, step_ms=(min(figures) / PS_PER_MS, max(figures) / PS_PER_MS))
    return recording, known
