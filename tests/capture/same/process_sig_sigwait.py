# options: --seconds .5
import os
import signal
import threading

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
print(signal.sigwait([signal.SIGUSR1]))
