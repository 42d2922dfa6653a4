import fcntl
import subprocess
import sys
import time
import torch
from torch import nn

lock = open(__file__, "r+")
fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
model = nn.Linear(64, 64)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(60):
    opt.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    opt.step()
    time.sleep(0.01)
time.sleep(0.7)
code = "import fcntl,sys\nf=open(sys.argv[1],'r+')\ntry: fcntl.lockf(f, fcntl.LOCK_EX|fcntl.LOCK_NB); print('lock was lost')\nexcept OSError: print('locked')"
print(subprocess.run([sys.executable, "-c", code, __file__], capture_output=True, text=True).stdout)
