# options: --seconds .5
import logging
import sys
import time

logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(name)s %(message)s")
time.sleep(1.5)
logging.info("mine")
