# modes: run api watch prove
import os
import signal
import sys
import time


def tree(depth):
    pids = []
    for i in range(2):
        pid = os.fork()
        if pid == 0:
            code = tree(depth - 1) if depth else 1
            if depth == 1 and i:
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(code)
        pids.append(pid)
    total = 0
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        total += os.waitstatus_to_exitcode(status)
    return total % 100


print(tree(2), flush=True)
reader, writer = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(reader)
    os.dup2(writer, 1)
    print("child", flush=True)
    sys.exit(5)
os.close(writer)
with os.fdopen(reader) as pipe:
    print(pipe.read().strip(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.fork()
if pid == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(0.1)
    sys.exit(0)
os.waitpid(pid, 0)
try:
    os.wait()
except ChildProcessError as error:
    print(error)
pid = os.fork()
if pid == 0:
    raise ValueError("in the child")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
