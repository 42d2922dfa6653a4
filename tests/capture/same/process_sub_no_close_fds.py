import subprocess
import sys

print(subprocess.run([sys.executable, "-c", "print(1)"], close_fds=False, capture_output=True, text=True).stdout)
