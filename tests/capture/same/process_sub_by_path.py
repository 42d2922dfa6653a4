import os
import subprocess
import sys

os.environ["PATH"] = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
print(
    subprocess.run(
        ["python", "-c", "import sys; print(sys.executable, sys.argv)"], capture_output=True, text=True
    ).stdout
)
