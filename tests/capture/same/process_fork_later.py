# options: --seconds 1
import os
import time

time.sleep(1.5)
if not os.fork():
    print("c", flush=True)
    time.sleep(1)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.wait()[1]))
