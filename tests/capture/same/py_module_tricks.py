"""Modules that are replaced, lazily found, reloaded, hidden, or have a `__getattr__`."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pkgutil
import sys
import types

sys.modules["json"] = None
try:
    import json
except ImportError as error:
    print(error)
del sys.modules["json"]
fake = types.ModuleType("grpc")
fake.version = "mine"
real = sys.modules.get("grpc")
sys.modules["grpc"] = fake
import grpc

print(grpc.version, grpc is fake)
lazy = types.ModuleType("lazy")
lazy.__getattr__ = lambda name: f"lazily {name}"
sys.modules["lazy"] = lazy
from lazy import anything

print(anything)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self):
        self.asked = []

    def find_spec(self, name, path, target=None):
        self.asked.append(name)
        return importlib.machinery.ModuleSpec(name, self) if name.startswith("virtual") else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.value = len(module.__name__)


finder = Finder()
sys.meta_path.insert(0, finder)


def step(n):
    return importlib.import_module(f"virtual{n}").value


for n in range(8):
    step(n)
try:
    import nothing_there
except ModuleNotFoundError as error:
    print(error.name)
print([name for name in finder.asked if name.startswith(("virtual", "nothing"))], sys.meta_path[0] is finder)
sys.meta_path.remove(finder)
spec = importlib.util.find_spec("statistics")
loaded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loaded)
print(loaded.mean([1, 3]), spec.origin.rpartition("/")[2], importlib.util.find_spec("no_module"))
import colorsys

colorsys.changed = 1
print(importlib.reload(colorsys) is colorsys, colorsys.changed)
print(
    "colorsys" in {each.name for each in pkgutil.iter_modules()},
    __name__,
    sys.modules["__main__"].__dict__ is globals(),
)
import __main__

print(__main__.step is step, __main__.__spec__, __main__.__loader__.__class__.__name__, __builtins__.__name__)
