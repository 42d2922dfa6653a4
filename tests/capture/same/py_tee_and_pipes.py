# modes: run watch prove
"""Streams that are replaced, duplicated and piped: a tee, a pseudo progress bar, children with pipes of their own."""

import contextlib
import io
import logging
import os
import subprocess
import sys
import tempfile

import numpy as np


class Tee(io.TextIOBase):
    def __init__(self, *files):
        self.files, self.writes = files, 0

    def write(self, text):
        self.writes += 1
        return sum(each.write(text) for each in self.files) // len(self.files)

    def flush(self):
        for each in self.files:
            each.flush()

    def fileno(self):
        return self.files[0].fileno()


def train(weights, count):
    for at in range(count):
        weights = np.tanh(weights @ weights) + 0.1
        sys.stderr.write(f"\r{at + 1}/{count}")
    sys.stderr.write("\n")
    return weights


kept = io.StringIO()
sys.stdout, sys.stderr = Tee(sys.__stdout__, kept), Tee(sys.__stderr__, kept)
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s %(message)s", level=logging.DEBUG)
logging.captureWarnings(True)
weights = train(np.eye(64), 30)
logging.getLogger("train").info("sum %.3f", weights.sum())
with contextlib.redirect_stdout(io.StringIO()) as inner, contextlib.redirect_stderr(inner):
    train(weights, 5)
    print("inside")
print(repr(inner.getvalue()[-30:]), sys.stdout.writes, len(kept.getvalue()))
sys.stdout.flush()
with tempfile.TemporaryFile() as file:
    saved = os.dup(1)
    os.dup2(file.fileno(), 1)
    train(weights, 3)
    print("into the file", flush=True)
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    os.dup2(saved, 1)
    os.close(saved)
    file.seek(0)
    print(file.read())
first = subprocess.Popen([sys.executable, "-c", "for i in range(5): print(i)"], stdout=subprocess.PIPE)
second = subprocess.Popen(
    [sys.executable, "-c", "import sys; print(sum(map(int, sys.stdin)))"], stdin=first.stdout, stdout=subprocess.PIPE
)
first.stdout.close()
print(second.communicate()[0], first.wait(), second.args[1:2])
try:
    subprocess.run(
        [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"], timeout=1, capture_output=True
    )
except subprocess.TimeoutExpired as error:
    print(error.timeout, error.stdout)
os.set_inheritable(w := os.pipe()[1], True)
print(
    subprocess.run([sys.executable, "-c", f"import os; os.fstat({w})"], close_fds=False).returncode, sys.stdout.writes
)
sys.stdout = sys.__stdout__
print(kept.getvalue().count("\n"))
