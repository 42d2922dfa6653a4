# modes: run watch prove
"""Code that is executed, reloaded, run as modules and typed into a console, around a loop in NumPy."""

import builtins
import code
import contextlib
import importlib
import io
import linecache
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

folder = tempfile.TemporaryDirectory()
sys.path.insert(0, folder.name)
sys.dont_write_bytecode = True
module = Path(folder.name, "trained.py")
module.write_text(
    "import numpy as np\ncount = globals().get('count', 0) + 1\ndef step(w):\n    return np.tanh(w @ w) + count\n"
)
import trained

weights = np.eye(32)
for at in range(24):
    weights = trained.step(weights) / 9
    if at % 8 == 7:
        importlib.reload(trained)
print(round(float(weights.sum()), 4), trained.count, trained.__spec__.name, sys.modules["trained"] is trained)
Path(folder.name, "package").mkdir()
Path(folder.name, "package", "__init__.py").write_text("")
Path(folder.name, "package", "__main__.py").write_text(
    "import sys\nprint(__name__, __package__, sys.argv[1:], __spec__.name)\nfor i in range(20): x = sum(range(99))\n"
)
print(sorted(runpy.run_module("package", run_name="other"))[:3], __name__)
print(runpy.run_path(str(module))["count"], sys.modules["__main__"].__dict__ is globals())
out = io.StringIO()
with contextlib.redirect_stderr(out), contextlib.redirect_stdout(out):
    console = code.InteractiveConsole({"np": np})
    for line in ("w = np.eye(3)", "for i in range(9):", "    w = w @ w", "", "w.sum()", "1 / 0", "_"):
        console.push(line)
print(out.getvalue())
made = {}
exec(
    compile("def train():\n    for _ in range(9): pass\n    raise LookupError(sorted(globals()))\n", "<made>", "exec"),
    made,
)
linecache.cache["<made>"] = (1, None, ["def train():\n", "    for _ in range(9): pass\n", "    raise made\n"], "<made>")
try:
    made["train"]()
except LookupError as error:
    print(traceback.format_exception(error)[-2], error.args[0])
print(eval("[step for step in range(3)]"), sorted(set(dir(builtins)) - {"_"})[:3], "_" in dir(builtins))
print(sys.flags.interactive, sys.displayhook.__name__, sorted(globals())[:6])
