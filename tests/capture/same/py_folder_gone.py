"""The folder that the program runs in is removed, then it moves, imports and fails there."""

import importlib
import os
import shutil
import sys
import tempfile

folder = tempfile.mkdtemp()
os.chdir(folder)
os.makedirs("later")
with open("later/part.py", "w") as file:
    file.write("value = 3\n")
sys.path.insert(0, "later")


def step(n):
    return sum(range(n))


for n in range(4):
    step(n)
import part

print(part.value, part.__file__ == os.path.join(folder, "later/part.py"))
shutil.rmtree(folder)
for n in range(8):
    step(n)
try:
    os.getcwd()
except FileNotFoundError as error:
    print(error.errno)
try:
    importlib.import_module("not_there")
except ModuleNotFoundError as error:
    print(error)
print(os.path.exists("."), os.environ.get("PWD") == os.environ.get("PWD"))
open(os.devnull).close()
raise RuntimeError("after the folder has gone")
