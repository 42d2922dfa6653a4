"""Places of the program: which files are its own, and at which of their lines a thread is and what it waits for."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from stepscope.capture.frameworks import find_cuda
from stepscope.kernels.stacks import read_stack
from stepscope.records import dataclass

_OWN = f"{Path(__file__).absolute().parents[1]}{os.sep}"
_SCHEMES = ("stdlib", "platstdlib", "purelib", "platlib")
LIBRARIES = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in _SCHEMES})
"""The folders of Python's own modules and of installed ones."""


@cache
def is_users_file(file: str) -> bool:
    """True for a file that belongs to no library."""
    if file.startswith(("<", _OWN, *LIBRARIES)):
        return False
    return "site-packages" not in file and "dist-packages" not in file


_SAYS_NOTHING = frozenset({"forward", "call", "__call__"})  # every layer and model has one


def called(code: CodeType) -> str:
    """The name of a function as it is shown: with its class where every class has one of that name."""
    if code.co_name not in _SAYS_NOTHING:
        return code.co_name
    return ".".join(code.co_qualname.replace("<locals>.", "").split(".")[-2:])


_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"


def path_shown(file: str) -> str:
    """The path of a library's file below the folder that it is installed in, and the name alone of the program's."""
    _, library, below = file.replace(os.sep, "/").rpartition("-packages/")
    if library:
        return below
    if file.startswith(_STANDARD):
        return file.removeprefix(_STANDARD).replace(os.sep, "/")
    return os.path.basename(file)  # noqa: PTH119 - this is a hot path


# ---- threads ---------------------------------------------------------------------------------------------------------


class ThreadPlace(NamedTuple):
    """Where a thread is.

    Attributes:
        function: the innermost function of the user's own code; of a library if there is none.
        file: where that is.
        line: the line that runs.
        leaf: the innermost function of all, with its module; equal to `function` if that is the innermost.
        activity: what it is known to do, in words; empty if that is not known.
    """

    function: str
    file: str
    line: int
    leaf: str
    activity: str

    @property
    def source(self) -> str:
        """The place for a sentence: `load (train.py:12)`."""
        return f"{self.function} ({Path(self.file).name}:{self.line})"


@dataclass(frozen=True)
class _Rule:
    """Calls that show what a thread does.

    Attributes:
        activity: in words.
        file: what the path of the file contains.
        functions: the names of the functions; any if empty.
    """

    activity: str
    file: str
    functions: frozenset[str] = frozenset()


def _rule(activity: str, file: str, *functions: str) -> _Rule:
    return _Rule(activity, file.replace("/", os.sep), frozenset(functions))


# The first rule that fits any frame counts, from the innermost frame outwards.
_RULES: tuple[_Rule, ...] = (
    _rule("compiling", "jax/_src/compiler"),
    _rule("compiling", "jax/_src/interpreters/mlir"),
    _rule("compiling", "jax/_src/interpreters/partial_eval", "trace_to_jaxpr_dynamic", "trace_to_jaxpr"),
    _rule("compiling", "torch/_inductor"),
    _rule("compiling", "torch/_dynamo", "compile", "_compile", "_compile_inner", "compile_inner"),
    _rule("compiling", "polymorphic_function/tracing_compilation"),
    _rule("saving a checkpoint", "torch/serialization", "save", "_save", "_legacy_save"),
    _rule("saving a checkpoint", "torch/distributed/checkpoint"),
    _rule("saving a checkpoint", "orbax/checkpoint"),
    _rule("saving a checkpoint", "safetensors", "save_file", "save_model"),
    _rule("saving a checkpoint", "keras/src/saving"),
    _rule("saving a checkpoint", "tensorflow/python/checkpoint"),
    _rule("saving a checkpoint", "transformers/modeling_utils", "save_pretrained"),
    _rule("saving arrays", "numpy/lib", "save", "savez", "_savez", "savez_compressed"),
    _rule("waiting for the data loader", "torch/utils/data/dataloader"),
    _rule("waiting for the data pipeline", "tensorflow/python/data"),
    _rule("waiting for the data pipeline", "grain/"),
    _rule("waiting for other ranks", "torch/distributed/distributed_c10d"),
    _rule("waiting for the device", "torch/cuda", "synchronize"),
    _rule("waiting for the device", "jax/_src/array", "_value", "block_until_ready", "__array__"),
    _rule("waiting for the device", "jax/_src/api", "block_until_ready"),
    _rule("writing to the log", "logging" + os.sep + "__init__"),
    _rule("reading from the network", "ssl", "read", "recv", "recv_into"),
    _rule("reading from the network", "socket", "readinto", "create_connection"),
    _rule("waiting for another process", "subprocess", "wait", "communicate", "_wait", "_try_wait"),
    _rule("waiting for another thread", "threading", "wait", "acquire", "join"),
    _rule("waiting for another thread", os.sep + "queue", "get", "put"),
)


@cache
def _activity(file: str, function: str) -> str:
    fitting = (rule for rule in _RULES if rule.file in file and (not rule.functions or function in rule.functions))
    return next((rule.activity for rule in fitting), "")


def find_place(stack: Sequence[tuple[CodeType, int]]) -> ThreadPlace | None:
    """Where a thread is; None without a frame.

    Args:
        stack: its frames, innermost first: each its code, and the line that runs.
    """
    if not stack:
        return None
    users, activity = stack[0], ""
    for code, line in stack:
        activity = activity or _activity(code.co_filename, code.co_name)
        if is_users_file(code.co_filename):
            users = (code, line)
            break
    (code, line), (leaf, _) = users, stack[0]
    module = Path(leaf.co_filename).name.removesuffix(".py")
    return ThreadPlace(code.co_qualname, code.co_filename, line, f"{module}.{leaf.co_qualname}", activity)


# -- where all threads are, and what the devices do: for a job that no longer moves ----------------------------------

_MOST_SHOWN = 60
_MOST_COLLECTIVES = 5


def all_stacks(step_thread: int) -> str:
    """The Python stacks of all threads but Stepscope's own, that of the steps first, as text.

    Args:
        step_thread: the system's number of the thread that runs the steps.
    """
    threads = threading.enumerate()
    threads.sort(key=lambda thread: thread.native_id != step_thread)
    stacks = [(thread, read_stack(thread.ident, _MOST_SHOWN)) for thread in threads]
    return "\n".join(_describe_thread(thread, stack) for thread, stack in stacks if stack)


def _describe_thread(thread: threading.Thread, stack: Sequence[tuple[CodeType, int]]) -> str:
    frames = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in reversed(stack)]
    return f"Thread {thread.name} ({thread.native_id})\n{''.join(traceback.format_list(frames))}"


def place_of_thread(number: int) -> ThreadPlace | None:
    """Where the thread with the system's number is; None if there is none."""
    known = [*threading._active.values()]  # type: ignore[attr-defined]  # `enumerate` may wait for a lock
    ident = next((thread.ident for thread in known if thread.native_id == number), None)
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
    cuda = find_cuda()
    if cuda is None:
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
