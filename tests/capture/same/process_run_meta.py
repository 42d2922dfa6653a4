import sys


class F:
    def find_spec(self, n, p=None, t=None):
        if n == "zzz":
            print("asked")


sys.meta_path.insert(0, F())
try:
    import zzz
except ImportError as e:
    print(e)
