"""Programs that watch themselves; tests run them as separate processes."""

KILLED = """
import os, sys, time
import stepscope
stepscope.watch(sys.argv[1], ring="20s", window_every=0, slow_factor=1e6)
start = time.perf_counter()
number = 0
while time.perf_counter() - start < 3:
    with stepscope.step(number):
        time.sleep(0.005)
    number += 1
print(number, flush=True)
os.kill(os.getpid(), 9)
"""

KILLED_AFTER_FLUSH = """
import os, sys
import stepscope
handle = stepscope.watch(sys.argv[1], window_every=0, slow_factor=1e6, samples_hz=0)
for number in range(100):
    with stepscope.step(number), stepscope.annotate(f"compute {number}"):
        pass
handle.watch.ring.flush()
for number in range(100, 110):
    stepscope.step(number)
os.kill(os.getpid(), 9)
"""

CRASHED = """
import sys, time
import stepscope
stepscope.watch(sys.argv[1], window_every=0, slow_factor=1e6)
for number in range(30):
    with stepscope.step(number):
        time.sleep(0.002)
raise RuntimeError("CUDA error: out of memory" if sys.argv[2] == "memory" else "the loss is not finite")
"""

SCRIPT = """
import time
def load_batch(number):
    time.sleep(1.5 if number == 60 else 0.01)
import stepscope
for number in range(80):
    with stepscope.step(number):
        load_batch(number)
"""

RANK = """
import socket, sys, time
import stepscope
handle = stepscope.watch(sys.argv[1], min_interval=0, window_every=0, window_steps=2, slow_factor=1000)
rank, other = int(sys.argv[2]), socket.socket(fileno=int(sys.argv[3]))
number, asked, together = 0, False, True
end = time.monotonic() + 60
while time.monotonic() < end and not (handle.watch.budget.windows and handle.watch.marks):
    with stepscope.step(number):
        time.sleep(0.01)
        try:
            if together:
                other.send(b".")
                together = bool(other.recv(1))  # a step ends when both ranks are done with it
        except OSError:
            together = False
    number += 1
    if rank == 0 and not asked and number > 100:
        asked = stepscope.trigger("the loss looks odd")
handle.stop()
"""
