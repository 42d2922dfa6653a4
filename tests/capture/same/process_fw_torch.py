# arguments: closerange exit fork int join kill nothing os_exit raise
import os
import signal
import sys
import threading

import torch

end = sys.argv[1]
torch.manual_seed(0)
m = torch.nn.Linear(4, 4)
o = torch.optim.SGD(m.parameters(), 0.1)
for i in range(20):
    o.zero_grad()
    l = m(torch.ones(2, 4)).pow(2).sum()
    l.backward()
    o.step()
    if i == 6 and end == "closerange":
        os.closerange(3, 1024)
    if i == 6 and end == "exit":
        sys.exit(5)
    if i == 6 and end == "fork" and not os.fork():
        os._exit(3)
    if i == 6 and end in ("kill", "os_exit"):
        print("x", flush=True)
        os.kill(os.getpid(), signal.SIGTERM) if end == "kill" else os._exit(5)
    if i == 12 and end == "int":
        raise KeyboardInterrupt
    if i == 12 and end == "raise":
        m(torch.ones(3))
for t in threading.enumerate() if end == "join" else ():
    if t is not threading.main_thread():
        t.join()
if end == "fork":
    print(os.waitstatus_to_exitcode(os.wait()[1]))
print(l.item(), threading.active_count())
