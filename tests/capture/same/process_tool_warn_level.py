import warnings


def f():
    warnings.warn("w", stacklevel=2)


f()
