import os
import subprocess
import sys

os.environ["PYTHONPATH"] = "/a"
print(
    subprocess.run(
        [sys.executable, "-c", 'import os, sys; print(sys.path, os.environ["PYTHONPATH"])'],
        capture_output=True,
        text=True,
    ).stdout
)
