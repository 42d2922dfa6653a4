import faulthandler
import sys
import time

time.sleep(0.3)
faulthandler.dump_traceback(file=sys.stderr)
