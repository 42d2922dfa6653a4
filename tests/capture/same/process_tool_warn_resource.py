import warnings

warnings.simplefilter("always")
f = open("/dev/null")
del f
