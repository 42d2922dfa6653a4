"""The environment of children, by several ways to start them."""

import os
import subprocess
import sys

code = "import os; print(sorted(k for k in os.environ if 'STEP' in k or 'PYTHON' in k))"
print(sorted(k for k in os.environ if "STEP" in k or "PYTHON" in k))
for flags in ([], ["-E"], ["-I"], ["-S"], ["-s"]):
    print(flags, subprocess.check_output([sys.executable, *flags, "-c", code], text=True).strip())
print(subprocess.check_output(f'{sys.executable} -c "{code}"', shell=True, text=True).strip())
print(subprocess.check_output("env | grep -c -e STEPSCOPE -e PYTHONPATH || true", shell=True, text=True).strip())
with os.popen("env | grep -c STEPSCOPE") as out:
    print(out.read().strip())
print(subprocess.check_output(["cat", "/proc/self/environ"]).count(b"STEPSCOPE_FOLLOW"))
print(open("/proc/self/environ", "rb").read().count(b"PYTHONHASHSEED"))
