import os
import sys

pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "import os; print(sorted(os.environ))"], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
