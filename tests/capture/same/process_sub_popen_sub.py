import subprocess
import sys


class Q(subprocess.Popen):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.extra = 1


q = Q([sys.executable, "-c", "print(1)"])
print(q.wait(), q.extra, subprocess.Popen.__init__.__qualname__, Q.__mro__[1] is subprocess.Popen)
