"""What `stop()` costs a program with hundreds of threads: each of its Python calls waits for all that compute."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import stepscope

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the profile is made in a process of its own on POSIX")

WAITING = """
import json, sys, threading
import stepscope

ended = threading.Event()
for _ in range(int(sys.argv[2])):
    threading.Thread(target=ended.wait, daemon=True).start()
calls = {}

def count(frame, event, what):
    name = getattr(what, "__name__", "") if event == "c_call" else event
    calls[name] = calls.get(name, 0) + 1

stepscope.start(sys.argv[1], stepscope.ProfilerOptions(strict=True, stack_samples_hz=200))
ended.wait(1.2)
sys.setprofile(count)
stepscope.stop()
sys.setprofile(None)
own = [name for name in ("numpy", "stepscope.formats.spool.reader") if name in sys.modules]
print(json.dumps([calls["call"], calls["write"], own]))
"""

COMPUTING = """
import os, sys, threading
import stepscope

go = threading.Event()

def compute():
    go.wait()
    while True:
        pass

for _ in range(60):
    threading.Thread(target=compute, daemon=True).start()
stepscope.start(sys.argv[1], stepscope.ProfilerOptions(strict=True, stack_samples_hz=200))
threading.Event().wait(1.2)  # each thread is sampled while it waits: beside 60 that compute little else gets a turn
go.set()
print(stepscope.stop(), flush=True)
os._exit(0)
"""


def run(program: str, *words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, timeout=600, check=True
    )
    return done.stdout


def test_each_thread_adds_a_few_calls_to_stop_and_no_write(tmp_path):
    few, many = (json.loads(run(WAITING, tmp_path / str(count), count)) for count in (30, 330))

    assert (many[0] - few[0]) / 300 < 75
    assert many[1] < few[1] + 30  # some more where the capture took longer, none for each thread
    assert few[2] == many[2] == []  # the profile is made elsewhere
    assert len(stepscope.load(tmp_path / "330").trace().lines) > 330


def test_stop_ends_beside_60_threads_that_compute(tmp_path):
    """Beside 300 it took minutes: a conversion of a tenth of a second got one part in 300 of the interpreter.  Of so
    many, some machines let a few run and starve the rest, whatever `stop()` does."""
    profile = run(COMPUTING, tmp_path).strip()

    assert profile.endswith(".xplane.pb")
    assert len(stepscope.load(profile).trace().lines) > 60
