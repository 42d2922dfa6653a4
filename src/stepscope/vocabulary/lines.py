"""Names of lines and planes: threads, streams, and lines that a profiler derives from streams."""

from __future__ import annotations

import re

from stepscope.vocabulary.patterns import Pattern

_POOL = Pattern(r"(?P<stem>.*?\S)[/ _]+(?P<number>-?\d+)")
_STREAM = Pattern(r"Stream #?(?P<number>-?\d+)\s*\((?P<work>[^()]*)\)")
_LOOP = Pattern(r"python|main", re.IGNORECASE)
_OPS = Pattern(r"(?i)xla ops|tensorflow ops|framework ops")
_DEVICE = "/device:"
# What samples find a thread at: running Python, in a call, or in a call within a loop, which may be either.
RUNS_PYTHON, IN_CALL, EITHER = "python", "call", "either"
# Where samples of a tool that stops threads in compiled code stand, in the form of ours.
NATIVE_STACKS = "/device:CUSTOM:CPU stack samples"
NATIVE_SAMPLES = "/device:CUSTOM:Times of stack samples"
NATIVE_CODE = "/device:CUSTOM:Interpreter samples"
FOREIGN_THREAD = "thread "  # how samples of stacks begin the name of a thread that Python did not start
_PROFILER = Pattern(r"(?i)stepscope\b|pytorch profiler\b|profiler(?: |$)")


def split_pool(thread: str) -> tuple[str, str]:
    """The name that threads of a pool share, and the thread's number; empty outside of a pool.

    >>> split_pool("tf_data_private_threadpool/17"), split_pool("main")
    (('tf_data_private_threadpool', '17'), ('main', ''))
    """
    parts = _POOL.fullmatch(thread)
    return (parts["stem"], parts["number"]) if parts else (thread, "")


def stream_parts(line: str) -> tuple[str, str] | None:
    """The number of a stream and its work, if the name holds both; otherwise None.

    >>> stream_parts("Stream #7(Kernel,MemcpyH2D)")
    ('7', 'Kernel,MemcpyH2D')
    """
    parts = _STREAM.fullmatch(line)
    return (parts["number"], parts["work"]) if parts else None


def may_run_loop(thread: str) -> bool:
    """True for a Python thread, which may run the training loop."""
    return _LOOP.search(thread) is not None


def is_of_profiler(thread: str) -> bool:
    """True for a thread or a line of a profiler itself.

    >>> is_of_profiler("PyTorch Profiler"), is_of_profiler("stepscope-memory"), is_of_profiler("train")
    (True, True, False)
    """
    return _PROFILER.match(thread) is not None


def holds_ops(line: str) -> bool:
    """True for a derived line that holds ops."""
    return _OPS.search(line) is not None


def holds_scopes(line: str) -> bool:
    """True for a derived line that holds name scopes."""
    return "scope" in line.lower()


def holds_annotations(line: str) -> bool:
    """True for a derived line on which the profiler itself laid the annotations of a stream."""
    return line.startswith("Stream #") and line.endswith(" annotations")


def device_label(plane: str) -> str:
    """`GPU:0` for `/device:GPU:0`, `System` for `/device:CUSTOM:System (Stepscope)`; other planes keep their names."""
    name = plane.removeprefix(_DEVICE).removeprefix("CUSTOM:").removesuffix(" (Stepscope)")
    return name if plane.startswith(_DEVICE) else plane


def holds_stack_samples(plane: str) -> bool:
    """True for the plane with the stacks that Stepscope samples, or another tool of all code."""
    return plane.startswith(("/device:CUSTOM:Python stack samples", NATIVE_STACKS))


def holds_sample_times(plane: str) -> bool:
    """True for the plane that says when the stacks were sampled."""
    return plane.startswith("/device:CUSTOM:Times of stack samples")


def holds_interpreter_samples(plane: str) -> bool:
    """True for the plane that says whether sampled threads ran Python or compiled code."""
    return plane.startswith("/device:CUSTOM:Interpreter samples")


def holds_graph_lines(plane: str) -> bool:
    """True for the plane that says from which lines of the program the ops of graphs come."""
    return plane.startswith("/device:CUSTOM:Lines of graphs")


def holds_statements(plane: str) -> bool:
    """True for the plane that says in which lines of the program's functions sampled threads were."""
    return plane.startswith("/device:CUSTOM:Statement samples")


def is_unnamed_thread(line: str) -> bool:
    """True for what the system calls every thread that Python starts, in releases before 3.14."""
    return line in ("", "python", "python3")


def is_main_thread(line: str) -> bool:
    """True for the name that Python gives to a program's first thread."""
    return line.startswith("MainThread")


def holds_worker_processes(plane: str) -> bool:
    """True for the plane with the batches and tasks of worker processes that Stepscope recorded."""
    return plane.startswith("/device:CUSTOM:Worker processes")


def holds_thread_usage(plane: str) -> bool:
    """True for the plane that says how long threads ran, and waited for a processor."""
    return plane.startswith("/device:CUSTOM:Processor time of threads")


def holds_compilations(plane: str) -> bool:
    """True for the plane with what TensorFlow traced and PyTorch compiled, as Stepscope noted it."""
    return plane.startswith("/device:CUSTOM:Compilations (Stepscope)")


_ANY_DEVICE = Pattern(r"/device:((?!CUSTOM:|CPU:)[A-Z]+:\d+)")


def device_of_plane(plane: str) -> str:
    """`NPU:0` for the plane of a device of any make; empty for others.

    >>> device_of_plane("/device:NPU:0"), device_of_plane("/device:CUSTOM:System (Stepscope)")
    ('NPU:0', '')
    """
    found = _ANY_DEVICE.match(plane)
    return found[1] if found else ""


def is_any_device(plane: str) -> bool:
    """Whether a plane is named like that of a device of any make; those of tools are called CUSTOM."""
    return _ANY_DEVICE.match(plane) is not None
