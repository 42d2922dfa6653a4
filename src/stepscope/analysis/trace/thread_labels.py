"""Names of threads for people, where the recorder wrote none.

JAX and TensorFlow name a thread as the system does, which for every thread that Python starts is `python` or nothing.
With Python calls recorded, the thread's function says more: the first one that the `threading` module calls.

    $threading.py:988 _bootstrap            the thread has been started by Python
        $threading.py:1028 _bootstrap_inner
            $threading.py:971 run
                $train.py:8 load            -> load (train.py:8)
"""

from __future__ import annotations

from stepscope.model import EventKind, HostTrace, LineKind
from stepscope.model.arrays import distinct
from stepscope.vocabulary.lines import is_unnamed_thread
from stepscope.vocabulary.python import place_of, starts_threads

_LOOK_AT = 16  # the first calls of a line: deeper ones say nothing about the thread


def thread_label(trace: HostTrace, line: int) -> str:
    """The name by which people know a line's thread; empty if nothing says it."""
    name = trace.line_label(line)
    if not is_unnamed_thread(name) or trace.lines.kind[line] != LineKind.THREAD:
        return name
    return _labels(trace).get(line, name)


def _labels(trace: HostTrace) -> dict[int, str]:
    """Line -> label of the threads that their Python calls name."""
    found: dict[int, str] = trace.derived("thread labels", _find_labels)
    return found


def _find_labels(trace: HostTrace) -> dict[int, str]:
    called = distinct(trace.events.line[trace.events.kind == EventKind.PYTHON_CALL]).tolist()
    unnamed = [line for line in called if is_unnamed_thread(trace.line_label(line))]
    labels = {line: _label_of_calls(trace, line) for line in unnamed}
    first = [line for line, label in labels.items() if label is None]
    named = {line: label for line, label in labels.items() if label}
    return named | ({first[0]: "main thread"} if len(first) == 1 else {})


def _label_of_calls(trace: HostTrace, line: int) -> str | None:
    """The function of a thread; None if Python's `threading` did not start it, empty if it called nothing."""
    begin, end = int(trace.lines.event_begin[line]), int(trace.lines.event_end[line])
    names = [trace.name_of(row) for row in range(begin, min(end, begin + _LOOK_AT))]
    if not any(map(starts_threads, names)):
        return None
    own = next((name for name in names if name.startswith("$") and not starts_threads(name)), None)
    if own is None:
        return ""
    function, file, number = place_of(own)
    return f"{function} ({file}:{number})" if file and number else function
