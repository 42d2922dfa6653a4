import os

if not os.fork():
    raise ValueError("c")
print(os.waitstatus_to_exitcode(os.wait()[1]))
