import os
import sys

if not os.fork():
    os.execv(sys.executable, [sys.executable, "-c", "import os; print(sorted(os.environ))"])
print(os.wait()[1])
