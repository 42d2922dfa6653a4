def f():
    a = 1
    b = 2
    d = locals()
    del d["a"]
    return sorted(locals())


print(f())
