import trace

t = trace.Trace(count=1, trace=0)


def f():
    a = 1
    return a


t.runfunc(f)
print(sorted(v for k, v in t.results().counts.items() if k[0].endswith("tool_trace.py")))
