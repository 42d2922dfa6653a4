# options: --seconds 60
import faulthandler
import time

faulthandler.dump_traceback_later(1, exit=True)
time.sleep(3)
