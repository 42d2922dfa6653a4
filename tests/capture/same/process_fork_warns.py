"""Python 3.12 and later warn when a process with a second thread forks: this one has none."""

import os
import random
import warnings

os.register_at_fork(after_in_parent=random.random)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(30):
        if not (child := os.fork()):
            os._exit(len(os.listdir("/proc/self/task")))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ")
print([str(each.message)[:20] for each in caught])
