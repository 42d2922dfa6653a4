# arguments: interactive inspect verbose dev optimised errors isolated nosite piped closed quiet frozen unraisable
"""Ways to start the interpreter that change how it behaves to its end."""

import os
import subprocess
import sys

CODE = """
import sys, warnings
class Leaves:
    def __del__(self):
        print("left", __debug__, flush=True)
def step(n):
    assert n >= 0
    return sum(i for i in range(n))
kept = Leaves()
kept.me = kept
for n in range(8):
    step(n)
try:
    warnings.warn("said", DeprecationWarning)
    open("again.py").read()
    print("no error")
except Warning as error:
    print("error", error)
print(tuple(sys.flags), sys.argv[1:], sys.stdin and sys.stdin.readline())
"""
with open("again.py", "w") as file:
    file.write(CODE)
WAYS = {
    "interactive": (["-i"], "print('typed', step(3))\nkept.me = None\n"),
    "inspect": (["-i", "again.py"], "print('typed', len(sys.argv))\n1/0\nexit(4)\n"),
    "verbose": (["-q", "-b", "again.py", "x"], "text\n"),
    "dev": (["-X", "dev", "again.py"], "text\n"),
    "optimised": (["-OO", "again.py"], "text\n"),
    "errors": (["-W", "error", "again.py"], "text\n"),
    "isolated": (["-I", "again.py"], "text\n"),
    "nosite": (["-S", "-E", "-c", "import sys; print(len(sys.path) > 0, 'site' in sys.modules)"], ""),
    "piped": (["-", "x"], CODE),
    "closed": (["again.py"], None),
    "quiet": (["-u", "again.py"], "text\n"),
    "frozen": (["-X", "frozen_modules=off", "again.py"], "text\n"),
    "unraisable": (
        [
            "-c",
            "import sys\nsys.unraisablehook = lambda a: print('hook', a.exc_value)\nclass A:\n    def __del__(self): 1/0\nA()\nfor i in range(9): len('x')",
        ],
        "",
    ),
}
words, text = WAYS[sys.argv[1]]
done = subprocess.run(
    [sys.executable, *words], input=text, capture_output=True, text=True, check=False,
    stdin=None if text is not None else subprocess.DEVNULL,
) if text is not None else subprocess.run(
    [sys.executable, *words], capture_output=True, text=True, check=False, preexec_fn=lambda: os.close(0)
)  # fmt: skip
print(done.returncode, done.stdout)
print([line.split("/")[-1] for line in done.stderr.splitlines() if not line.startswith("stepscope")])
