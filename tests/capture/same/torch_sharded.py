# modes: run watch
# timeout: 300
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
calls = []
ddp = DistributedDataParallel(model)
ddp.register_comm_hook(
    None, lambda state, bucket: calls.append(bucket.index()) or default_hooks.allreduce_hook(state, bucket)
)
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
for step in range(8):
    optimizer.zero_grad()
    with ddp.no_sync() if step % 2 else torch.enable_grad():
        loss = ddp(torch.ones(2, 4)).pow(2).sum()
        loss.backward()
    optimizer.step()
print(calls, round(float(loss), 5))
sharded = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
for layer in (sharded[0], sharded[2], sharded):
    fully_shard(layer, mesh=mesh)
optimizer = torch.optim.SGD(sharded.parameters(), lr=0.01)
for _ in range(8):
    optimizer.zero_grad()
    loss = sharded(torch.ones(2, 4)).pow(2).sum()
    loss.backward()
    optimizer.step()
print(type(sharded).__name__, type(sharded).__mro__[1].__name__, [type(each).__name__ for each in sharded.parameters()])
whole = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)])
print((whole * 2).full_tensor(), whole.placements, round(float(loss), 5))
folder = tempfile.mkdtemp()
dcp.save({"model": sharded.state_dict()}, checkpoint_id=folder)
print(sorted(os.listdir(folder)))
dist.destroy_process_group()
