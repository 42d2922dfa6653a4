# modes: run watch api
# arguments: functions
"""A training loop in a process that does what few do: counts children, replaces clocks, forks, takes all tools."""

import builtins
import os
import signal
import sys
import threading
import time
import warnings

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def steps(count: int) -> float:
    for _ in range(count):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().sum()
        loss.backward()
        optimizer.step()
    return round(loss.item(), 5)


def waits_for_children():
    ended, found, until = [], set(), time.monotonic() + 3
    signal.signal(signal.SIGCHLD, lambda *_: ended.append(1))
    while time.monotonic() < until:
        steps(1)
        time.sleep(0.02)
        try:
            found.add(os.waitpid(-1, os.WNOHANG))
        except ChildProcessError as error:
            found.add(str(error))
    print(found, ended)


def replaces_clocks():
    kept = time.time, time.monotonic, time.perf_counter

    def fail():
        raise AssertionError

    steps(2)
    time.time = time.monotonic = time.perf_counter = fail
    steps(6)
    time.time, time.monotonic, time.perf_counter = kept
    print(steps(2))


def forks():
    warnings.simplefilter("always")
    for exit_status in range(5):
        steps(3)
        sys.stdout.flush()
        if not (child := os.fork()):
            os._exit(exit_status + len(os.listdir("/proc/self/task")))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), threading.active_count())
        time.sleep(0.1)


def takes_all_tools():
    monitoring = getattr(sys, "monitoring", None)
    steps(2)
    if monitoring is not None:
        seen = dict.fromkeys(range(6), 0)

        def count(tool, code):
            seen[tool] += code.co_name == "steps"

        for tool in seen:
            monitoring.use_tool_id(tool, f"tool {tool}")
            event = monitoring.events.PY_START
            monitoring.register_callback(tool, event, lambda code, _, tool=tool: count(tool, code))
            monitoring.set_events(tool, event)
        steps(3)
        for tool in seen:
            monitoring.free_tool_id(tool)
        print(seen)
    print(steps(4))


def deletes_builtins():
    kept = dict(vars(builtins))
    for name in ("input", "exit", "quit", "license", "help"):
        if hasattr(builtins, name):
            delattr(builtins, name)
    steps(6)
    scope = {"__builtins__": {"range": range}, "steps": steps}
    exec("for _ in range(4): steps(1)", scope)
    print(sorted(scope["__builtins__"]), sorted(set(kept) - set(vars(builtins))))


globals()[sys.argv[1]]()
