"""Children by subprocess and its kin: their words, environment, files and modules, and what the program sees of them."""

import inspect
import os
import pty
import subprocess
import sys
import tempfile
import time
import zipapp

ENVIRONMENT = "import os, sys; print(sys.path, sorted(os.environ.items()))"
WORDS = "import sys; print(sys.executable, sys.argv, sys.orig_argv)"
SLEEPS = "import time; time.sleep(60)"
PYTHON = os.path.dirname(sys.executable)


def show(*words, python=sys.executable, **more):
    done = subprocess.run([python, *words], capture_output=True, text=True, **more)
    print(done.args[1:], done.stdout, done.stderr, done.returncode)


class Own(subprocess.Popen):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.extra = 1


for flag in ["-B", "-E", "-I", "-O", "-OO", "-P", "-R", "-S", "-Wall", "-Xdev", "-bb", "-q", "-s", "-u"]:
    show(flag, "-c", "import sys, os; print(sys.flags, sys.path, sys.warnoptions, sorted(os.environ))")
process = subprocess.Popen([sys.executable, "-c", "pass"])
print(process.args == [sys.executable, "-c", "pass"], process.wait(), repr(process).replace(sys.executable, "PY"))
with open("_t_child.py", "w") as file:
    file.write("import sys; print(sys.argv, sys.flags.optimize, __name__, sys.orig_argv[1:])")
show("-O", "_t_child.py", "a", "-m")
show("-c", ENVIRONMENT, env={**os.environ, "Y": "2"})
show("-c", ENVIRONMENT, env={"PATH": os.environ["PATH"], "X": "1", "LC_CTYPE": "C.UTF-8"})
show("-c", ENVIRONMENT, env={**os.environ, "PYTHONPATH": "/a:/b"})
for path in ("", "/a"):
    os.environ["PYTHONPATH"] = path
    show("-c", ENVIRONMENT)
del os.environ["PYTHONPATH"]
show("-c", WORDS, python="python", env={**os.environ, "PATH": f"{PYTHON}:{os.environ['PATH']}"})
show("-c", WORDS, python="fake", executable=sys.executable)
opened = os.open("/dev/null", os.O_RDONLY)
for more in ({}, {"close_fds": False}, {"pass_fds": [opened]}):
    show("-c", 'import os; print(sorted(int(f) for f in os.listdir("/proc/self/fd") if int(f) < 300))', **more)
show("-c", "import os; print(os.getsid(0) == os.getpid())", preexec_fn=os.setsid)
show("-m", "json.tool", input='{"a":1}')
show("-", input="print(7)")
show("-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ENVIRONMENT!r}])")
print(subprocess.check_output(f'{sys.executable} -c "import sys; print(sys.argv)"', shell=True, text=True))
try:
    subprocess.run([sys.executable, "-c", "import sys; sys.exit(3)"], check=True)
except subprocess.CalledProcessError as error:
    print(str(error).replace(sys.executable, "PY"), error.cmd[1:])
for end in (subprocess.Popen.kill, subprocess.Popen.terminate):
    process = subprocess.Popen([sys.executable, "-c", SLEEPS])
    time.sleep(0.5)
    end(process)
    print(process.wait())
reader, writer = os.pipe()
subprocess.Popen([sys.executable, "-c", f'import os; os.write({writer}, b"hi")'], pass_fds=[writer]).wait()
os.close(writer)
print(os.read(reader, 9), reader, writer)
own = Own([sys.executable, "-c", "print(1)"])
print(own.wait(), own.extra, subprocess.Popen.__init__.__qualname__, Own.__mro__[1] is subprocess.Popen)
print(inspect.signature(subprocess.Popen.__init__), inspect.getsource(subprocess.Popen.__init__)[:40])
print(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", "import sys; sys.exit(4)"]), flush=True)
child = os.posix_spawn(sys.executable, [sys.executable, "-c", ENVIRONMENT], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print(os.waitstatus_to_exitcode(pty.spawn([sys.executable, "-c", "print(1)"])))
with tempfile.TemporaryDirectory() as folder:
    names = "logging random json socket threading typing select signal tempfile shutil inspect queue numpy utils types_"
    for name in names.split():
        with open(f"{folder}/{name}.py", "w") as file:
            file.write(f'print("own {name}")\n')
    with open(f"{folder}/m.py", "w") as file:
        file.write("import logging, random, socket, queue, select, json, shutil, tempfile")
    for words in (["m.py"], ["-m", "m"], ["-c", "import random, logging"]):
        show(*words, cwd=folder)
os.mkdir("a")
with open("a/__main__.py", "w") as file:
    file.write("import sys; print(__name__, len(sys.argv))")
zipapp.create_archive("a", "a.pyz")
show("a.pyz", "1")
