import subprocess
import sys

print(
    subprocess.run(
        [
            sys.executable,
            "-c",
            'import subprocess, sys; print(subprocess.run([sys.executable, "-c", "import os; print(sorted(os.environ))"], capture_output=True, text=True).stdout)',
        ],
        capture_output=True,
        text=True,
    ).stdout
)
