"""Open files of children: only what the program gives them."""

import os
import subprocess
import sys

show = "import os; print([n for n in map(int, os.listdir('/proc/self/fd')) if n > 2 and os.path.exists(f'/proc/self/fd/{n}')])"
print(subprocess.check_output([sys.executable, "-c", show], text=True))
print(subprocess.check_output([sys.executable, "-c", show], text=True, close_fds=False))
file = open("/dev/null")
print(subprocess.check_output([sys.executable, "-c", show], text=True, pass_fds=[file.fileno()]))
print(file.fileno())
