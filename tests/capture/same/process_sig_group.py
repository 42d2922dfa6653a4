import os
import signal
import subprocess
import sys
import time

p = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], start_new_session=True)
time.sleep(0.3)
os.killpg(p.pid, signal.SIGTERM)
print(p.wait())
