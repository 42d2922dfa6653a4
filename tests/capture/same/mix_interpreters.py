# modes: run watch prove api
"""Another interpreter in the same process, on another thread, beside a loop; then the limit of open files is reached."""

import os
import resource
import socket
import sys
import threading

if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters

read, write = os.pipe()
code = f"import os, sys; os.write({write}, repr((sorted(m for m in sys.modules if 'stepscope' in m), sys.argv[:0])).encode())"


def run():
    interpreters.run_string(interpreters.create(), code)


thread = threading.Thread(target=run)
thread.start()
thread.join()
print(os.read(read, 1000))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
sockets = []
try:
    while True:
        sockets.append(socket.socket())
except OSError as error:
    print(error.errno, min(each.fileno() for each in sockets))
for each in sockets:
    each.close()
print(len(os.listdir("/proc/self/fd")) < 64, os.open("/dev/null", os.O_RDONLY))
