# arguments: sys.exit(0) sys.exit(7) sys.exit(257) sys.exit(-5) sys.exit([1,2]) sys.exit(None) sys.exit("bad_thing")
# arguments: sys.exit(2.5) sys.exit(True) exit() quit(4) sys.exit(Said()) fail(SystemExit(1,2)) os._exit(3)
# arguments: fail(BaseException("b")) fail(Own("k")) fail(KeyboardInterrupt) fail(MemoryError) fail(Mute())
# arguments: fail(ExceptionGroup("g",[ValueError(1),TypeError(2)])) fail(ValueError("\udc80\u00e9")) compile("a+","f","exec")
# arguments: os.getcwdd() prnt(1) open("/nope/x") b"\xff".decode() pickle.loads(b"x") list(failing()) endless()
# arguments: subprocess.run(["no_such_program"]) subprocess.run([sys.executable],cwd="/nope") breakpoint()
# arguments: os.abort() os.closerange(0,3) os.close(1) os.close(1);print("x") os.close(2);print("o") print("x"*1000000)
# arguments: sys.stdout.close() sys.stdin.close();print("o") sys.stderr.close();print("o") sys.stderr.close();fail(ValueError)
# arguments: sys.stdout=None;print("x") print("no_newline",end="") sys.stdout.buffer.write(bytes(range(256)))
# arguments: print(pickle.loads(pickle.dumps(os._exit)).__name__)
# arguments: print("lost");os._exit(3) print("a",flush=True);os.closerange(3,65536) os.execvp("echo",["echo","hi"])
# arguments: os.execve("/usr/bin/env",["env"],{"A":"1"}) signal.raise_signal(signal.SIGKILL)
# arguments: os.kill(os.getpid(),signal.SIGHUP) os.kill(os.getpid(),signal.SIGTERM) signal.alarm(1);time.sleep(3)
# arguments: os.kill(os.getpid(),signal.SIGUSR1);time.sleep(1) os.kill(os.getpid(),signal.SIGINT);time.sleep(1)
"""Ways to end: each argument is what the program does last."""

import os
import pickle
import resource
import signal
import subprocess
import sys
import time


class Said:
    def __str__(self):
        return "A!"


class Own(KeyboardInterrupt):
    pass


class Mute(Exception):
    def __str__(self):
        1 / 0


def fail(error):
    raise error


def failing():
    yield 1
    raise KeyError("k")


def endless():
    endless()


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.breakpointhook = lambda *a: print("bp")
exec(sys.argv[1])
