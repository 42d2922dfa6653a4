import sys

f = sys._getframe()
n = 0
while f:
    n += 1
    f = f.f_back
print(n)
