# runpy, zipimport, exec'd code and importlib.reload around training
import runpy
import sys
import os
import zipfile
import importlib
import textwrap
import inspect
import traceback
import types
import linecache
import torch

src = textwrap.dedent("""
    import torch, inspect
    def train(n, m, opt):
        for i in range(n):
            opt.zero_grad(); m(torch.ones(2, 4)).sum().backward(); opt.step()
        return len(inspect.stack()), inspect.stack()[1].function, __name__, __file__.rpartition("/")[2]
""")
os.makedirs("pk", exist_ok=True)
open("pk/mod.py", "w").write(src)
with zipfile.ZipFile("z.zip", "w") as z:
    z.writestr("zmod.py", src)
sys.path[:0] = ["pk", "z.zip"]
m = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(m.parameters(), lr=0.01)
import mod
import zmod

print(mod.train(4, m, opt), zmod.train(4, m, opt), importlib.reload(mod).train(2, m, opt))
print(runpy.run_path("pk/mod.py")["train"](3, m, opt))
ns = {"__name__": "dyn", "__file__": "<dyn>"}
exec(compile(src, "<dyn>", "exec"), ns)
print(ns["train"](3, m, opt))


class Evil(dict):
    def __missing__(self, k):
        raise KeyError(k)


ns = Evil(__name__="evil", __file__="e", __builtins__=__builtins__)
exec(compile(src, "<evil>", "exec"), ns)
print(ns["train"](3, m, opt))


def bad():
    for i in range(6):
        opt.zero_grad()
        m(torch.ones(2, 4)).sum().backward()
        opt.step()
    m(torch.ones(2, 5))


try:
    bad()
except RuntimeError:
    print([(f.name, f.lineno, f.line) for f in traceback.extract_tb(sys.exc_info()[2])][:2])
print(
    inspect.getsource(bad).count("\n"),
    len(inspect.getmembers(torch.optim.SGD)),
    inspect.signature(torch.optim.SGD.step),
    inspect.getsourcefile(torch.optim.Optimizer._optimizer_step_code)[-12:],
)
