import subprocess
import sys

print(
    subprocess.run(
        [sys.executable, "-c", "import os; print(sorted(os.environ.items()))"], capture_output=True, text=True
    ).stdout
)
