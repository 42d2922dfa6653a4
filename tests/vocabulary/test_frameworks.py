"""Which framework wrote a trace, by the names in it."""

from __future__ import annotations

import pytest

from stepscope.model import TraceBuilder
from stepscope.vocabulary.frameworks import framework_of


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        (["/x/torch/_jit_internal.py(46): <module>", "/x/torch/nn/modules/linear.py(9): Linear.forward"], "pytorch"),
        (["/x/jax/_src/api.py(9): jit", "/x/torch/_jit_internal.py(46): <module>", "/x/jax/_src/core.py(1): f"], "jax"),
        (["jit_step", "/x/torch/nn/modules/linear.py(9): Linear.forward"], "jax"),
        (["/x/tensorflow/python/eager/context.py(1): f"], "tensorflow"),
        (["/x/train.py(3): main"], ""),
    ],
    ids=["torch", "more of jax", "a program of jax", "tensorflow", "none"],
)
def test_samples_of_stacks_name_the_framework_whose_python_they_show(names: list[str], framework: str) -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU"), "main")
    for name in names:
        line.event(name, 0, 1)

    assert framework_of(builder.build().strings) == framework
