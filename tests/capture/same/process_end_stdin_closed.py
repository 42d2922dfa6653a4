import sys

sys.stdin.close()
print("o")
