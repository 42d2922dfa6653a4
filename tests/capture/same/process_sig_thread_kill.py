import signal
import threading
import time

signal.signal(signal.SIGUSR1, lambda *a: print("in", threading.current_thread().name))
t = threading.Thread(target=time.sleep, args=(0.5,))
t.start()
signal.pthread_kill(t.ident, signal.SIGUSR1)
t.join()
