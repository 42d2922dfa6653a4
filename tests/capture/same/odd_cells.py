"""Cells of a notebook, run one after the other by exec, by InteractiveConsole and by doctest, train a model."""

import code
import doctest
import linecache
import sys
import traceback
import types
import torch

cells = [
    "model = torch.nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ndef step(x):\n    optimizer.zero_grad(); loss = model(x).sum(); loss.backward(); optimizer.step(); return loss",
    "for n in range(4):\n    loss = step(torch.ones(1, 2))",
    "for n in range(4):\n    loss = step(torch.ones(1, 2))\n_ = loss.shape",
    "step('no tensor')",
    "print(sorted(n for n in globals() if not n.startswith('__')))",
]
space = {"torch": torch, "__name__": "__main__"}
for number, cell in enumerate(cells):
    name = f"<ipython-input-{number}>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
    try:
        exec(compile(cell, name, "exec"), space)
    except Exception as error:
        print(type(error).__name__, [f.name for f in traceback.extract_tb(error.__traceback__)][:3])
console = code.InteractiveConsole({"step": space["step"], "torch": torch})
for line in ["for n in range(4):", "    l = step(torch.ones(1, 2))", "", "l.shape", "1 / 0", "sys"]:
    console.push(line)


def documented():
    """
    >>> for n in range(4): _ = space["step"](torch.ones(1, 2))
    >>> space["step"](torch.ones(1, 2)).dim()
    0
    >>> raise ValueError("x")
    Traceback (most recent call last):
    ValueError: x
    """


print(
    doctest.run_docstring_examples(documented, globals()),
    eval("sum(i for i in range(3))", {}),
    sys.last_value if hasattr(sys, "last_value") else None,
)
space.clear()
