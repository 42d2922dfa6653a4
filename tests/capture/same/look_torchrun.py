# timeout: 300
"""torchrun starts two ranks."""

import os
import subprocess
import sys

with open("train.py", "w") as file:
    file.write(
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "m = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))\n"
        "o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "for _ in range(10):\n"
        "    m(torch.ones(1, 1)).sum().backward(); o.step()\n"
        "print(dist.get_rank(), sys.argv[1:], sorted(k for k in os.environ if 'STEP' in k), flush=True)\n"
        "dist.destroy_process_group()\n"
    )
words = [
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--nproc-per-node",
    "2",
    "--master-port",
    "0",
    "train.py",
    "--lr",
    "1",
]
words[7:9] = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"][:0] + words[7:9]
done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
print(done.returncode, sorted(done.stdout.splitlines()))
