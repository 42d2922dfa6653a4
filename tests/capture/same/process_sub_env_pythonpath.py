import os
import subprocess
import sys

e = dict(os.environ, PYTHONPATH="/a:/b")
print(
    subprocess.run(
        [sys.executable, "-c", 'import os, sys; print(sys.path, os.environ["PYTHONPATH"])'],
        env=e,
        capture_output=True,
        text=True,
    ).stdout
)
