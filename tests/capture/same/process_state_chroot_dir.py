import os
import tempfile

d = tempfile.mkdtemp()
os.chdir(d)
print(os.listdir("."))
os.chdir("/")
os.rmdir(d)
