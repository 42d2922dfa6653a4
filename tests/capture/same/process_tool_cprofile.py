import cProfile
import io
import pstats


def f():
    return sum(range(1000))


q = cProfile.Profile()
q.enable()
f()
q.disable()
s = io.StringIO()
pstats.Stats(q, stream=s)
print(sorted(k[2] for k in pstats.Stats(q).stats))
