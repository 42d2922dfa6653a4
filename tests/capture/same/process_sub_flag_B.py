import subprocess
import sys

r = subprocess.run(
    [
        sys.executable,
        "-B",
        "-c",
        "import sys, os; print(sys.flags, sys.path, sys.warnoptions, sorted(k for k in os.environ))",
    ],
    capture_output=True,
    text=True,
)
print(r.stdout, r.stderr, r.returncode)
