"""The folder of the user is unset, and the program's folder cannot be written."""

import os
import subprocess
import sys
import tempfile

CODE = """
import getpass, os, pathlib, tempfile
try:
    print(pathlib.Path("~").expanduser() == pathlib.Path(os.path.expanduser("~")), os.environ.get("HOME"))
    print(tempfile.gettempdir(), os.environ.get("TMPDIR"), os.environ.get("USER"))
    total = 0
    for step in range(10):
        total += sum(i * step for i in range(1000))
    print(total, os.getcwd()[-4:], sorted(os.listdir(".")))
    open("written", "w").write("x")
except OSError as error:
    print(type(error).__name__, error.errno)
"""
folder = os.path.join(tempfile.mkdtemp(), "work")
os.mkdir(folder)
with open(os.path.join(folder, "train.py"), "w") as file:
    file.write(CODE)
os.chmod(folder, 0o500)
for gone in ("HOME", "PATH", "TMPDIR", "USER", "LANG", "HOME USER PATH LANG TMPDIR LOGNAME SHELL"):
    environment = {name: value for name, value in os.environ.items() if name not in gone.split()}
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    print(gone, done.returncode, done.stdout, [x for x in done.stderr.splitlines() if not x.startswith("stepscope")])
done = subprocess.run([sys.executable, "train.py"], cwd=folder, env={}, capture_output=True, text=True, check=False)
print("none", done.returncode, done.stdout, [x for x in done.stderr.splitlines() if not x.startswith("stepscope")])
os.chmod(folder, 0o700)
