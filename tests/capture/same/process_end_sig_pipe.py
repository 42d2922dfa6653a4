import signal

signal.signal(signal.SIGPIPE, signal.SIG_DFL)
import os

r, w = os.pipe()
os.close(r)
os.write(w, b"x")
