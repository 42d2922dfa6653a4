"""Five small programs with one bottleneck each, drawn: what a step of each spends its time on, and where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from draw import Sort, draw

from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind as K

_SORTS = {
    "G": Sort(K.COLLECTIVE_CALL, "gloo:all_reduce"),
    "I": Sort(K.INPUT_WAIT, "IteratorGetNext:IteratorGetNext"),
    "F": Sort(K.TRACED_FUNCTION, "PjitFunction(train_step)"),
    "X": Sort(K.COMPILE, "backend_compile"),
    "a": Sort(K.OP, "aten::mm"),
    "p": Sort(K.PYTHON_CALL, "$metrics.py:12 confusion_matrix"),
    "s": Sort(K.PYTHON_CALL, "$utils.py:3 save_weights"),
}

PROGRAMS: dict[str, tuple[str, str, str]] = {
    # name: class of the bottleneck, part of the step that it takes, a picture of four steps
    "slow_input": ("input_preprocessing", "input", "I------a----"),
    "slow_metrics": ("python_overhead", "python", "a----p------"),
    "new_shapes": ("recompilation", "compile", "X------a----"),
    "slow_network": ("communication_bound", "communication", "a----G------"),
    "frequent_saves": ("checkpoint_stall", "checkpoint", "a----s------"),
}
_STEPS = 4


def write_programs(folder: Path) -> Iterator[str]:
    """Writes a session for each program below a logdir; yields its run."""
    for name, (_, _, step) in PROGRAMS.items():
        session = folder / "plugins" / "profile" / name
        session.mkdir(parents=True)
        marks = "".join(f"M{number}".ljust(len(step), "-") for number in range(_STEPS))
        calls = "F".ljust(len(step), "-") * _STEPS if "X" in step else ""
        picture = "".join(f"host main | {row}\n" for row in (marks, calls, step * _STEPS) if row)
        (session / "host.xplane.pb").write_bytes(write(draw(picture, _SORTS)))
        yield name
