import inspect
import subprocess

print(inspect.signature(subprocess.Popen.__init__), inspect.getsource(subprocess.Popen.__init__)[:40])
