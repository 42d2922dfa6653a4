import subprocess
import sys

print(
    subprocess.run(
        [sys.executable, "-c", 'import os; print(sorted(int(f) for f in os.listdir("/proc/self/fd") if int(f) < 300))'],
        capture_output=True,
        text=True,
    ).stdout
)
