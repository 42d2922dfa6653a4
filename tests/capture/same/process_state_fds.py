import os

r = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
print(r)
print([n for n in os.listdir("/proc/self/fd") if int(n) < 256])
