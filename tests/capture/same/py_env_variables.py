# arguments: PYTHONOPTIMIZE PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONSAFEPATH PYTHONWARNINGS PYTHONTRACEMALLOC PYTHONFAULTHANDLER PYTHONMALLOC PYTHONNODEBUGRANGES PYTHONIOENCODING PYTHONUTF8 PYTHONDEVMODE PYTHONINTMAXSTRDIGITS PYTHONHASHSEED PYTHONASYNCIODEBUG PYTHONPROFILEIMPORTTIME PYTHONBREAKPOINT PYTHONPATH PYTHONNOUSERSITE PYTHONSTARTUP PYTHONCOERCECLOCALE
"""A program starts itself again with one variable of the interpreter set, as shells of clusters do."""

import os
import subprocess
import sys

VALUES = {
    "PYTHONWARNINGS": "error::DeprecationWarning",
    "PYTHONMALLOC": "debug",
    "PYTHONIOENCODING": "latin-1:replace",
    "PYTHONINTMAXSTRDIGITS": "700",
    "PYTHONHASHSEED": "7",
    "PYTHONTRACEMALLOC": "3",
    "PYTHONBREAKPOINT": "0",
    "PYTHONPATH": "/nowhere",
    "PYTHONSTARTUP": "/nowhere.py",
}
CODE = """
import faulthandler, hash_of, os, sys, tracemalloc, warnings
name = %r
def fails():
    assert False, "checked"
    return 1
def step(n):
    values = [n * i for i in range(100)]
    return sum(values)
for n in range(8):
    step(n)
print(name, os.environ[name], tuple(sys.flags), sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering)
print(faulthandler.is_enabled(), tracemalloc.is_tracing(), tracemalloc.get_traceback_limit(), sys.get_int_max_str_digits())
print(hash_of.text, len(sys.path[0]) > 1, "/nowhere" in sys.path, warnings.filters[:1], sys.dont_write_bytecode)
print("\\xe9".encode(sys.stdout.encoding, sys.stdout.errors), sys.getfilesystemencoding())
breakpoint if name != "PYTHONBREAKPOINT" else breakpoint()
print(fails(), flush=True)
"""
name = sys.argv[1]
with open("hash_of.py", "w") as file:
    file.write("text = hash('text') % 1000 if __import__('os').environ.get('PYTHONHASHSEED', '0') != 'random' else 0\n")
with open("again.py", "w") as file:
    file.write(CODE % name)
done = subprocess.run(
    [sys.executable, "again.py"], env={**os.environ, name: VALUES.get(name, "1")}, capture_output=True, check=False
)
print(done.returncode, done.stdout.decode("latin-1"))
lines = done.stderr.decode("latin-1").splitlines()
print([line.split("/")[-1] for line in lines if not line.startswith(("stepscope", "import time"))])
print(os.path.exists("__pycache__"))
