import os
import subprocess
import sys

r, w = os.pipe()
q = subprocess.Popen([sys.executable, "-c", f'import os; os.write({w}, b"hi")'], pass_fds=[w])
q.wait()
os.close(w)
print(os.read(r, 9), r, w)
