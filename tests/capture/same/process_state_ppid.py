import os
import subprocess
import sys

print(
    subprocess.run(
        [sys.executable, "-c", "import os; print(os.getppid())"], capture_output=True, text=True
    ).stdout.strip()
    == str(os.getpid())
)
