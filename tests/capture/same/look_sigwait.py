"""A thread waits for signals that all others block."""

import os
import signal
import threading

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
got = []
thread = threading.Thread(target=lambda: got.append(signal.sigwait({signal.SIGUSR1, signal.SIGTERM})))
thread.start()
os.kill(os.getpid(), signal.SIGUSR1)
thread.join()
os.kill(os.getpid(), signal.SIGTERM)
print(got, signal.sigwait({signal.SIGTERM}), sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
