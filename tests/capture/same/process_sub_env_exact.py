import os
import subprocess
import sys

print(
    subprocess.run(
        [sys.executable, "-c", "import os; print(dict(os.environ))"],
        env={"PATH": os.environ["PATH"], "X": "1", "LC_CTYPE": "C.UTF-8"},
        capture_output=True,
        text=True,
    ).stdout
)
