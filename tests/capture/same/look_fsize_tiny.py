"""No file may be written at all: what the program does not write is not its matter."""

import resource
import signal

print(signal.getsignal(signal.SIGXFSZ))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    with open("x", "w") as file:
        file.write("1" * 10)
except OSError as error:
    print(error)
