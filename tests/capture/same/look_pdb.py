"""pdb runs commands in the program."""

import io
import pdb
import sys


def f(x):
    y = x + 1
    return y * 2


commands = io.StringIO("step\nnext\nnext\nargs\np y\nwhere\ncontinue\n")
debugger = pdb.Pdb(stdin=commands, stdout=sys.stdout, nosigint=True, readrc=False)
debugger.use_rawinput = False
print(debugger.runcall(f, 3))
