"""Profilers of others beside a program that trains: yappi, pyinstrument, viztracer, line_profiler."""

import sys
import threading
import tempfile
import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(n):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return n


for n in range(2):
    step(n)
import yappi

yappi.set_clock_type("cpu")
yappi.start(profile_threads=True)
for n in range(6):
    step(n)
thread = threading.Thread(target=step, args=(1,))
thread.start()
thread.join()
yappi.stop()
stats = {s.name: s.ncall for s in yappi.get_func_stats() if s.module == __file__ or s.name.endswith("zero_grad")}
print(stats, len(yappi.get_thread_stats()), sys.getprofile())
from pyinstrument import Profiler

p = Profiler()
p.start()
for n in range(6):
    step(n)
p.stop()
print(
    p.last_session.thread_id if hasattr(p.last_session, "thread_id") else 0,
    p.last_session.sample_count >= 0,
    sys.getprofile(),
)
import line_profiler

lp = line_profiler.LineProfiler()
wrapped = lp(step)
for n in range(6):
    wrapped(n)
t = lp.get_stats().timings
print([[(l - lines[0][0], h) for l, h, _ in lines] for lines in t.values()], sys.gettrace())
from viztracer import VizTracer

v = VizTracer(verbose=0, output_file=tempfile.mkdtemp() + "/r.json", ignore_frozen=True)
v.start()
for n in range(6):
    step(n)
v.stop()
v.parse()
print(sum("step (" in e["name"] for e in v.data["traceEvents"]), sys.getprofile())
v.clear()
for n in range(3):
    step(n)
