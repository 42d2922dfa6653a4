"""What every thread of the program does at this moment, and what the devices do: for a job that no longer moves."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import CodeType
from typing import Any

from stepscope.capture.tracers.ticker import THREAD_PREFIX
from stepscope.capture.watching.places import Place, find_place
from stepscope.kernels.stacks import read_stack

_MOST_SHOWN = 60
_MOST_COLLECTIVES = 5


def all_stacks(step_thread: int) -> str:
    """The Python stacks of all threads but Stepscope's own, that of the steps first, as text.

    Args:
        step_thread: the system's number of the thread that runs the steps.
    """
    threads = [thread for thread in threading.enumerate() if not thread.name.startswith(THREAD_PREFIX)]
    threads.sort(key=lambda thread: thread.native_id != step_thread)
    stacks = [(thread, read_stack(thread.ident, _MOST_SHOWN)) for thread in threads]
    return "\n".join(_describe_thread(thread, stack) for thread, stack in stacks if stack)


def _describe_thread(thread: threading.Thread, stack: Sequence[tuple[CodeType, int]]) -> str:
    frames = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in reversed(stack)]
    return f"Thread {thread.name} ({thread.native_id})\n{''.join(traceback.format_list(frames))}"


def place_of_thread(number: int) -> Place | None:
    """Where the thread with the system's number is; None if there is none."""
    ident = next((thread.ident for thread in threading.enumerate() if thread.native_id == number), None)
    return find_place(read_stack(ident))


def describe_devices() -> list[str]:
    """What the devices wait for, as far as the frameworks say without waiting for them; sentences."""
    found: list[str] = []
    for describe in (_describe_cuda, _describe_collectives):
        with suppress(Exception):  # a device that hangs, or another release of the framework
            found += describe()
    return found


def _describe_cuda() -> list[str]:
    """Which of PyTorch's GPUs still have work in their current stream; the query does not wait."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return []
    lines = []
    for index in range(cuda.device_count()):
        busy = not cuda.current_stream(index).query()
        lines.append(
            f"GPU {index}: {'work that was launched has not finished' if busy else 'all launched work is done'}"
        )
    return lines


def _describe_collectives() -> list[str]:
    """The collectives that have started and not ended, from PyTorch's flight recorder, if it records."""
    native: Any = sys.modules.get("torch._C._distributed_c10d")
    dump = getattr(native, "_dump_fr_trace_json", None) or getattr(native, "_dump_nccl_trace_json", None)
    if dump is None:
        return []
    entries = json.loads(dump()).get("entries", [])
    open_ones = [entry for entry in entries if entry.get("state") != "completed"][:_MOST_COLLECTIVES]
    return [
        f"collective {entry.get('profiling_name', '?')} (number {entry.get('collective_seq_id', '?')}) has been"
        f" {entry.get('state', 'started')} and not completed"
        for entry in open_ones
    ]
