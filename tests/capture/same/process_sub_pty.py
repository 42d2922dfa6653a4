import os
import pty
import sys

print(os.waitstatus_to_exitcode(pty.spawn([sys.executable, "-c", "print(1)"])))
