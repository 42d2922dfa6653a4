# Python 3.12 and later end with an exception that nobody handles, which they write where `threading` is imported or not.
import sys
import threading

print(threading.active_count(), flush=True)
sys.exit(10**30)
