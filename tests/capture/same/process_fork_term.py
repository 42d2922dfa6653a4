"""A child that waits in C is ended by SIGTERM, and has no handler of anybody."""

import os
import signal
import time

time.sleep(0.5)
for _ in range(5):
    if not (child := os.fork()):
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
        time.sleep(60)
        os._exit(1)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
