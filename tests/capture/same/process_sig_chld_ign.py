import signal
import subprocess

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(subprocess.call(["true"]))
