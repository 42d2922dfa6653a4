import subprocess
import sys

try:
    subprocess.run([sys.executable, "-c", "import sys; sys.exit(3)"], check=True)
except subprocess.CalledProcessError as e:
    print(str(e).replace(sys.executable, "PY"), e.cmd[1:])
