import os
import tempfile

d = tempfile.mkdtemp()
os.chdir(d)
os.rmdir(d)
print("gone")
try:
    os.getcwd()
except FileNotFoundError as e:
    print(e.errno)
