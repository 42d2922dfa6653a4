import os
import subprocess
import sys

os.environ["PYTHONPATH"] = ""
print(
    subprocess.run(
        [sys.executable, "-c", 'import os, sys; print(sys.path, repr(os.environ["PYTHONPATH"]))'],
        capture_output=True,
        text=True,
    ).stdout
)
