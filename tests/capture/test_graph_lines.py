"""The lines of the program that TensorFlow keeps of its graphs."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.graph_lines import GraphLines

TRAIN, KERAS = "/home/me/train.py", "/x/site-packages/keras/layer.py"
# step(x) in line 20 traces `step`, whose line 8 calls a layer and whose line 9 multiplies
FRAMES = {
    1: (TRAIN, 20, "<module>"), 2: (TRAIN, 8, "tf__step"), 3: (KERAS, 5, "call"), 4: (TRAIN, 9, "tf__step"),
}  # fmt: skip
STACKS = {"x": [1], "dense/MatMul": [1, 2, 3], "matmul": [1, 4]}


class Context:
    """TensorFlow's context with one traced function, and one of a single op."""

    def list_function_names(self) -> list[bytes]:
        return [b"__wrapped__Cast_device_CPU:0", b"__inference_step_3"]

    def get_graph_debug_info(self, name: str) -> SimpleNamespace:
        assert name == "__inference_step_3"
        files = sorted({file for file, _, _ in FRAMES.values()})
        return SimpleNamespace(
            files=files,
            name_to_trace_id={node: node for node in STACKS},
            traces_by_id={node: SimpleNamespace(frame_id=frames) for node, frames in STACKS.items()},
            frames_by_id={
                number: SimpleNamespace(file_index=files.index(file), line=line, func=function)
                for number, (file, line, function) in FRAMES.items()
            },
        )


def lines_told(monkeypatch, context: object) -> list[str]:
    module = ModuleType("tensorflow.python.eager.context")
    module._context = context  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    probe = GraphLines()
    probe.start(ProfilerOptions(), lambda: 7)
    assert probe.drain() == []  # nothing is asked for while the program trains
    probe.stop()
    return [name for chunk in probe.drain() for name in chunk.names]


def test_a_node_has_the_innermost_line_of_the_program_below_the_call_that_all_share(monkeypatch):
    assert lines_told(monkeypatch, Context()) == ["dense/MatMul train.py:8 step", "matmul train.py:9 step"]


def test_another_release_that_tells_no_lines_is_no_failure(monkeypatch):
    assert lines_told(monkeypatch, object()) == []
    assert lines_told(monkeypatch, None) == []
