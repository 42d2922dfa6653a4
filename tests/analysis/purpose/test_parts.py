"""Parts of what is trained that compute no layer."""

from __future__ import annotations

from draw import MS, K
from sampling import sampled_thread

from stepscope.analysis.purpose.excess import excesses_of
from stepscope.analysis.purpose.parts import part_without_layers
from stepscope.model import HostTrace, TraceBuilder

STEPS = 5
NODE = "autograd::engine::evaluate_function: "
MAIN, MODEL, LOSS = "$train.py:1 main", "$train.py:9 forward", "$train.py:20 structure"


def trained(model_ms: int, loss_ms: int) -> HostTrace:
    """Steps of 20 ms: a layer and a loss, each in a function and with a backward pass as long as itself."""
    builder = TraceBuilder("host")
    thread, frames, _, times = sampled_thread(builder)
    for step in range(STEPS):
        begin = 20 * step * MS
        thread.event("train", begin, 20 * MS, K.STEP_MARK, {"step_num": step})
        first, last = ({"Sequence number": 2 * step + at} for at in (0, 1))
        thread.event("aten::linear", begin, model_ms * MS, K.OP, first | {"Input Dims": "[[8,64],[64,64]]"})
        thread.event("aten::stft", begin + model_ms * MS, loss_ms * MS, K.OP, last | {"Input Dims": "[[8,64]]"})
        at = begin + 10 * MS
        thread.event(f"{NODE}StftBackward0", at, loss_ms * MS, K.BACKWARD, last)
        thread.event(f"{NODE}AddmmBackward0", at + loss_ms * MS, model_ms * MS, K.BACKWARD, first)
        at += (model_ms + loss_ms) * MS
        thread.event(f"{NODE}torch::autograd::AccumulateGrad", at, MS // 10, K.BACKWARD)
        thread.event("torch::autograd::AccumulateGrad", at, MS // 20, K.OP)
        for each in range(20):
            times.event("sample", begin + each * MS + MS // 2, 0, K.OTHER)
            frames.event(MAIN, begin + each * MS, MS, K.PYTHON_CALL)
            if each < model_ms + loss_ms:
                frames.event(MODEL if each < model_ms else LOSS, begin + each * MS, MS, K.PYTHON_CALL)
    return builder.build()


def test_a_loss_that_takes_most_of_the_step_is_named_with_its_ops_and_backward_pass() -> None:
    trace = trained(model_ms=2, loss_ms=7)
    part = part_without_layers(trace)

    assert part is not None
    assert (part.frame, part.ops) == (LOSS, "1 aten::stft (14 ms)")
    assert [(each.kind, each.ps / MS) for each in excesses_of(trace)] == [("part_without_layers", STEPS * 14.0)]


def test_a_loss_that_takes_less_and_the_model_itself_are_none() -> None:
    assert part_without_layers(trained(model_ms=5, loss_ms=4)) is None
    assert part_without_layers(trained(model_ms=7, loss_ms=2)) is None
