# options: --seconds .5
import time
import warnings

warnings.simplefilter("error")
time.sleep(1.5)
print("fine")
