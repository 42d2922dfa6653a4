import os
import subprocess
import sys

e = os.environ.copy()
e["Y"] = "2"
print(
    subprocess.run(
        [sys.executable, "-c", "import os; print(sorted(os.environ.items()))"], env=e, capture_output=True, text=True
    ).stdout
)
