# options: --seconds .5
import time
import warnings

with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    time.sleep(1.5)
    warnings.warn("x")
    print([str(i.message) for i in w])
