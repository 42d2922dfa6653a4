import os

if not os.fork():
    os._exit(9)
print(os.waitstatus_to_exitcode(os.wait()[1]))
