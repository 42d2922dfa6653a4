import doctest


def f():
    """
    >>> f()
    3
    """
    return 3


print(doctest.testmod())
