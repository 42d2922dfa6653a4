# modes: run api watch prove
import importlib
import importlib.abc
import importlib.util
import sys
import tempfile
from pathlib import Path

asked = []


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        asked.append(name)
        if name.startswith("made_"):
            return importlib.util.spec_from_loader(name, Loader())
        return None


class Loader(importlib.abc.Loader):
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(f"name = {module.__name__!r}\nimport colorsys", vars(module))


before = list(sys.meta_path)
sys.meta_path.insert(0, Finder())
import made_up

print(made_up.name, made_up.__loader__.__class__.__name__, [name for name in asked if name in ("made_up", "colorsys")])
print(sys.meta_path[1:] == before, isinstance(sys.meta_path[0], Finder))
folder = Path(tempfile.mkdtemp())
(folder / "own.py").write_text("count = globals().get('count', 0) + 1\n")
for part in ("a", "b"):
    (folder / part / "space").mkdir(parents=True)
    (folder / part / "space" / f"{part}.py").write_text(f"value = {part!r}\n")
sys.path[:0] = [str(folder), str(folder / "a"), str(folder / "b")]
import own
import space.a
import space.b

print(importlib.reload(own).count, own.count, own.__spec__.origin.endswith("own.py"))
print(space.a.value, space.b.value, len(space.__path__), space.__file__ if hasattr(space, "__file__") else None)
for wrong in ("space.c", "no_such_module", "own.part"):
    try:
        importlib.import_module(wrong)
    except ImportError as error:
        print(type(error).__name__, error, error.name)
print(importlib.util.find_spec("json").name, importlib.util.find_spec("nothing_here"))
sys.meta_path.remove(sys.meta_path[0])
del sys.modules["made_up"]
try:
    import made_up
except ModuleNotFoundError as error:
    print(error)
lazy = importlib.util.find_spec("wave")
loader = importlib.util.LazyLoader(lazy.loader)
lazy.loader = loader
module = importlib.util.module_from_spec(lazy)
loader.exec_module(module)
print(type(module).__name__, hasattr(module, "open"), type(module).__name__)
