"""Python started by a shell: it sees its own command and environment."""

import subprocess
import sys

with open("child.py", "w") as file:
    file.write(
        "import os, sys\n"
        "print(sys.argv, sorted(k for k in os.environ if 'STEP' in k or k.startswith('PYTHON')), os.environ.get('A'))\n"
        "print(sys.orig_argv[1:], os.path.basename(__file__), sys.path[0] == os.getcwd())\n"
    )
for text in (
    f"{sys.executable} child.py a",
    f"A=1 {sys.executable} child.py 'b c'",
    f"exec {sys.executable} -u child.py",
    f"cd . && {sys.executable} child.py > out.txt; cat out.txt",
    f"{sys.executable} child.py | cat",
    f"echo $PYTHONPATH; {sys.executable} child.py",
    f"for i in 1 2; do {sys.executable} child.py $i; done",
    f"{sys.executable} -c 'print(1)' && env | grep -c STEPSCOPE",
):
    done = subprocess.run(text, shell=True, capture_output=True, text=True)
    print(done.args == text, done.returncode, done.stdout, done.stderr)
