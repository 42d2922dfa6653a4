import bdb


class B(bdb.Bdb):
    def user_line(self, f):
        print("line", f.f_lineno - f.f_code.co_firstlineno)


def f():
    a = 1
    return a


B().runcall(f)
