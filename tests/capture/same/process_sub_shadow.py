import subprocess
import sys
import tempfile

d = tempfile.mkdtemp()
for n in (
    "logging",
    "random",
    "json",
    "socket",
    "threading",
    "typing",
    "select",
    "signal",
    "tempfile",
    "shutil",
    "inspect",
    "queue",
    "numpy",
    "utils",
    "types_",
):
    open(f"{d}/{n}.py", "w").write(f'print("own {n}")\n')
open(f"{d}/m.py", "w").write("import logging, random, socket, queue, select, json, shutil, tempfile")
r = subprocess.run([sys.executable, "m.py"], cwd=d, capture_output=True, text=True)
print(r.stdout, r.stderr, r.returncode)
r = subprocess.run([sys.executable, "-m", "m"], cwd=d, capture_output=True, text=True)
print(r.stdout, r.stderr, r.returncode)
r = subprocess.run([sys.executable, "-c", "import random, logging"], cwd=d, capture_output=True, text=True)
print(r.stdout, r.stderr, r.returncode)
import shutil

shutil.rmtree(d)
