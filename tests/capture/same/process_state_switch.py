import sys

print(sys.getswitchinterval())
