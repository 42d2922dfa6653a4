import sys

n = []


def pr(f, e, a):
    if e == "c_call":
        n.append(a.__name__)


sys.setprofile(pr)
len([])
max(1, 2)
sys.setprofile(None)
print(n)
