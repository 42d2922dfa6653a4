"""Finds out which worker of which job this process is, from the environment variables that launchers set.

**The worker's name** is the host's, with `_rank<N>` where the process has a rank: `RANK` (torchrun, Accelerate,
DeepSpeed), `OMPI_COMM_WORLD_RANK` (Open MPI), `PMI_RANK` (MPICH), `SLURM_PROCID` (srun), `JAX_PROCESS_ID`, the index in
`TF_CONFIG`, or the process id of `jax.distributed.initialize`, or the rank in `torch.distributed`'s group.

**The run's name** is `STEPSCOPE_RUN` if it is set.  Otherwise the workers of one job agree on one: the n-th captures of
all workers belong to one run, and the first worker names it.  They agree through small files in
LOGDIR/plugins/.stepscope/<job>, so they have to share the logdir; the next job removes files that are a day old.  A job
is identified by `TORCHELASTIC_RUN_ID` (with its restart count), `SLURM_JOB_ID` and `SLURM_STEP_ID`,
`OMPI_MCA_ess_base_jobid`, `MASTER_ADDR` and `MASTER_PORT`, JAX's coordinator, the cluster in `TF_CONFIG`, or the
`stepscope run` that started it.  A worker
that starts its capture more than ten minutes after the first gets a run of its own.

A process without a rank has a run of its own as well, but for those that one process of a `stepscope run` has started
with the same command, as by `multiprocessing`: these are workers of one job while they live together.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from stepscope.capture.publish import claim_name, draft_in
from stepscope.records import dataclass

RUN_VARIABLE = "STEPSCOPE_RUN"
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "JAX_PROCESS_ID")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "JAX_NUM_PROCESSES")
_JOBS = (
    ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("OMPI_MCA_ess_base_jobid",),
    ("MASTER_ADDR", "MASTER_PORT"),
    ("JAX_COORDINATOR_ADDRESS",),
)
_TOGETHER_S = 600
_SIBLING = "process"
_FORGOTTEN_S = 24 * 3600


@dataclass(frozen=True)
class Worker:
    """This process among the workers of its job.

    Attributes:
        rank: its number in the job; None for a single process.
        job: a text that all workers of the job have in common; empty if it is unknown.
    """

    rank: int | None = None
    job: str = ""


class OuterRun:
    """The `stepscope run` that this process belongs to.

    Attributes:
        name: the same in all processes that it has started; empty if there is none.
        folder: where those of them that have no rank agree on a run; it is removed when the program has ended.  None in
            the first process, and if there is no such folder.
    """

    name = ""
    folder: Path | None = None


LAUNCH = OuterRun()


def this_worker() -> Worker:
    """This process as a worker.  A launcher's rank counts only if it started more than one process."""
    rank, size = _read_number(_RANKS), _read_number(_SIZES)
    if rank is not None and size != 1:
        return Worker(rank, _find_job())
    return _find_jax_worker() or _find_tensorflow_worker() or _find_torch_worker() or Worker()


def _read_number(names: tuple[str, ...]) -> int | None:
    return next((int(text) for name in names if (text := os.environ.get(name, "")).isdecimal()), None)


def _find_job() -> str:
    for names in _JOBS:
        if os.environ.get(names[0]):
            return " ".join(f"{name}={os.environ.get(name, '')}" for name in names)
    return _find_jax_coordinator() or LAUNCH.name


def _find_jax_worker() -> Worker | None:
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None or (getattr(state, "num_processes", None) or 1) < 2:
        return None
    return Worker(int(state.process_id), _find_jax_coordinator())  # type: ignore[union-attr]


def _find_jax_coordinator() -> str:
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    address = getattr(state, "coordinator_address", None)
    return f"jax {address}" if address else ""


def _find_torch_worker() -> Worker | None:
    """This process in a group whose members were given their ranks as arguments."""
    groups: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if not hasattr(groups, "is_initialized") or not groups.is_initialized() or groups.get_world_size() < 2:
        return None
    return Worker(int(groups.get_rank()), _find_job())


def _find_tensorflow_worker() -> Worker | None:
    try:
        config: Any = json.loads(os.environ.get("TF_CONFIG", ""))
        cluster, task = config["cluster"], config["task"]
        order = [f"{kind}:{index}" for kind in sorted(cluster) for index in range(len(cluster[kind]))]
        rank = order.index(f"{task['type']}:{int(task['index'])}")
    except (KeyError, TypeError, ValueError):
        return None
    return Worker(rank, json.dumps(cluster, sort_keys=True)) if len(order) > 1 else None


def agree_on_run(plugins: Path, worker: Worker, name: Callable[[], str]) -> str:
    """Agrees with the other workers on a run for this worker's next capture; returns its name.

    Args:
        plugins: LOGDIR/plugins.
        worker: this process.
        name: makes the name of a new run.

    Raises:
        OSError: the folder cannot be written.
    """
    siblings = worker.rank is None and LAUNCH.folder is not None
    if siblings:
        assert LAUNCH.folder is not None
        mark, shared, jobs = f"{_SIBLING}{os.getpid()}", f"{os.getppid()} {getattr(sys, 'argv', '')}", LAUNCH.folder
    elif worker.rank is not None and worker.job:
        mark, shared, jobs = f"rank{worker.rank}", worker.job, plugins / ".stepscope"
    else:
        return name()
    job = jobs / hashlib.sha256(shared.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    if not siblings and not job.exists():
        _forget_old_jobs(jobs)
    for turn in count():
        folder = job / str(turn)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            (folder / mark).touch(exist_ok=False)
        except FileExistsError:
            continue
        if siblings and not _has_company(folder, mark):
            (folder / mark).unlink()
            continue
        agreed = _write_or_read_name(folder / "run", name)
        if agreed is not None:
            return agreed
    raise AssertionError("there is always another turn")


def _has_company(folder: Path, mark: str) -> bool:
    """Whether a process may join the run of a folder: it is the first, or another of the run is alive.  What a program
    starts one after the other, such as training and then an evaluation, are different jobs."""
    others = [int(path.name.removeprefix(_SIBLING)) for path in folder.glob(f"{_SIBLING}*") if path.name != mark]
    return not others or any(map(is_alive, others))


def is_alive(pid: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def _forget_old_jobs(jobs: Path) -> None:
    """Removes the files of jobs that have not started a capture for a day.

    A folder is renamed first, so that a job which captures again at this moment finds it complete or not at all.
    """
    with suppress(OSError):
        for job in list(jobs.iterdir()):
            if time.time() - job.stat().st_mtime > _FORGOTTEN_S:
                removed = job.with_name(f".{os.getpid()}-{os.urandom(4).hex()}")
                with suppress(OSError):
                    shutil.rmtree(job.rename(removed))


def _write_or_read_name(path: Path, name: Callable[[], str]) -> str | None:
    """Writes a name to a file, or reads the name that another worker has written; None if that was too long ago."""
    with draft_in(path.parent) as draft, suppress(FileExistsError):
        draft.write_text(name())
        claim_name(draft, path)
    is_fresh = time.time() - path.stat().st_mtime < _TOGETHER_S
    return path.read_text() or None if is_fresh else None
