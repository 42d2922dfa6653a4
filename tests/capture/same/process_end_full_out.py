import os

f = os.open("/dev/full", os.O_WRONLY)
os.dup2(f, 1)
print("x")
