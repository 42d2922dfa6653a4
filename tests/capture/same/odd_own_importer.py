"""A program's own importers: source in memory, before and behind the rest; invalidate_caches; a hook of paths."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import linecache
import sys
import traceback

SOURCE = {
    "train_mem": "import torch\nmodel = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ndef step(n):\n    optimizer.zero_grad()\n    loss = model(torch.ones(1, 2)).sum()\n    loss.backward()\n    optimizer.step()\n    if n == 9: raise KeyError(n)\n    return n\n"
}
asked = []


class Importer(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path, target=None):
        if name in SOURCE or name in ("missing",):
            asked.append((name, path, target))
        return importlib.machinery.ModuleSpec(name, self, origin="memory") if name in SOURCE else None

    def get_source(self, name):
        return SOURCE[name]

    def is_package(self, name):
        return False

    def invalidate_caches(self):
        asked.append("invalidated")


finder = Importer()
sys.meta_path.insert(0, finder)
import train_mem

for n in range(9):
    train_mem.step(n)
try:
    train_mem.step(9)
except KeyError:
    print(traceback.format_exc().replace(__file__, "file"))
try:
    import missing
except ImportError as error:
    print(error, error.name)
importlib.invalidate_caches()
before = train_mem.step
importlib.reload(train_mem)
print(train_mem.step is before, train_mem.step(3), asked, inspect.getsource(train_mem).count("\n"), train_mem.__spec__)
sys.meta_path.remove(finder)
print(finder in sys.meta_path, importlib.util.find_spec("train_mem").name)
del sys.modules["train_mem"]
try:
    import train_mem
except ImportError as error:
    print(type(error).__name__, error)
