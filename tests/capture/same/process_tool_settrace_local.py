import sys


def tr(f, e, a):
    if e == "call" and f.f_code.co_name == "g":
        f.f_trace_opcodes = False
        return lambda f, e, a: print(e, f.f_lineno - f.f_code.co_firstlineno)


def g():
    x = 1
    return x


sys.settrace(tr)
g()
sys.settrace(None)
