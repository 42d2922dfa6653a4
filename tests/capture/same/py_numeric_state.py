"""Random numbers, hashes, ids of errors, warnings' registry and locale, before and after steps."""

import decimal
import locale
import os
import random
import sys
import time
import warnings

import numpy

random.seed(1)
numpy.random.seed(2)
generator = numpy.random.default_rng(3)


def step(n):
    with numpy.errstate(over="raise"):
        return random.random() + numpy.random.rand() + generator.random()


print([round(step(n), 9) for n in range(8)])
print(random.getstate()[1][-1], numpy.random.get_state()[2], hash("a") == hash("a"), numpy.geterr())
print(locale.getlocale(), locale.setlocale(locale.LC_ALL), time.tzname, decimal.getcontext())
numpy.seterr(divide="raise")
try:
    numpy.float64(1) / 0
except FloatingPointError as error:
    print(error)
numpy.set_printoptions(precision=2)
print(numpy.array([1.23456]), numpy.get_printoptions()["precision"])
for _ in range(3):
    warnings.warn("once")
print(len(globals().get("__warningregistry__", {})), sys.float_repr_style, sys.flags.hash_randomization, os.cpu_count())
print(len(warnings.filters), [each[2].__name__ for each in warnings.filters])
