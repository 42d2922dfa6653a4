import os

for i in range(20):
    if not os.fork():
        os._exit(i)
print(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(20)))
