import subprocess
import sys

r = subprocess.run(f'{sys.executable} -c "import sys; print(sys.argv)"', shell=True, capture_output=True, text=True)
print(r.stdout, r.stderr, r.returncode)
