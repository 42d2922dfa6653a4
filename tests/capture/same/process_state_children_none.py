import os

try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError as e:
    print(e)
