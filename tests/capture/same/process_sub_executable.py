import subprocess
import sys

print(
    subprocess.run(
        ["fake", "-c", "import sys; print(sys.orig_argv)"], executable=sys.executable, capture_output=True, text=True
    ).stdout
)
