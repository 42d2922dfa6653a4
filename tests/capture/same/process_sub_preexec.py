import os
import subprocess
import sys

r = subprocess.run(
    [sys.executable, "-c", "import os; print(os.getsid(0) == os.getpid())"],
    preexec_fn=os.setsid,
    capture_output=True,
    text=True,
)
print(r.stdout)
