# modes: run api watch prove
import ast
import code
import ctypes
import dis
import inspect
import linecache
import sqlite3
import sys
import textwrap
import traceback
import types


def f(a, /, b=2, *, c=3):
    return a + b * c


print(f(1), f.__code__.co_flags, f.__code__.co_stacksize, inspect.signature(f), len(list(dis.get_instructions(f))))
f.__code__ = f.__code__.replace(co_consts=tuple(10 if each == 3 else each for each in f.__code__.co_consts))
f.__defaults__, f.__kwdefaults__ = (5,), {"c": 7}
print(f(1))
made = types.FunctionType(compile("def g(x): return y + x", "made.py", "exec").co_consts[0], {"y": 4})
print(made(3))
source = "def h(x):\n    return x.missing\n"
linecache.cache["<typed>"] = (len(source), None, source.splitlines(True), "<typed>")
space = {}
exec(compile(source, "<typed>", "exec"), space)
try:
    space["h"](1)
except AttributeError:
    print(traceback.format_exc().splitlines()[-3:])
tree = ast.parse(textwrap.dedent(inspect.getsource(f)))
tree.body[0].body[0].value = ast.Constant(42)
exec(compile(ast.fix_missing_locations(tree), "<tree>", "exec"), space)
print(space["f"](1), eval("a + 1", {"a": 1}))
shell = code.InteractiveInterpreter()
print(shell.runsource("x = 1\n"), shell.runsource("if x:"), shell.locals["x"])
shell.runsource("1/0")
base = sqlite3.connect(":memory:")
base.create_function("twice", 1, lambda x: 2 * x)
statements = []
base.set_trace_callback(statements.append)
base.set_progress_handler(lambda: 0, 1)
print(base.execute("select twice(21)").fetchall(), statements)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
depths = []


def order(a, b):
    depths.append(len(inspect.stack()))
    return a[0] - b[0]


numbers = (ctypes.c_int * 5)(3, 1, 2, 5, 4)
ctypes.CDLL(None).qsort(numbers, 5, ctypes.sizeof(ctypes.c_int), compare(order))
print(list(numbers), set(depths) == {len(inspect.stack()) + 1}, sys._getframe().f_back is None)
print(sys._getframe().f_trace, sys._getframe().f_lineno, sys._getframe().f_globals is globals())
