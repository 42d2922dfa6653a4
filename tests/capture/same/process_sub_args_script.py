import os
import subprocess
import sys

open("_t_child.py", "w").write("import sys; print(sys.argv, sys.flags.optimize, __name__, sys.orig_argv[1:])")
q = subprocess.run([sys.executable, "-O", "_t_child.py", "a", "-m"], capture_output=True, text=True)
print(q.args[1:], q.stdout, q.stderr)
os.remove("_t_child.py")
