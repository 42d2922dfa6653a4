"""gevent takes the place of threads, sockets and clocks before a program trains."""

from gevent import monkey

monkey.patch_all()
import gevent
import threading
import time
import socket
import queue
import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = []


def step(who):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    log.append(who)


def train(who):
    for n in range(6):
        step(who)
        gevent.sleep(0)


jobs = [gevent.spawn(train, who) for who in "ab"]
gevent.joinall(jobs)
print("".join(log), [job.successful() for job in jobs])
box = queue.Queue()
thread = threading.Thread(target=lambda: [box.put(n) or time.sleep(0.001) for n in range(5)])
thread.start()
print([box.get(timeout=5) for _ in range(5)], type(threading.current_thread()).__name__, threading.active_count())
thread.join()
one, other = socket.socketpair()
one.sendall(b"x")
print(other.recv(1))
for n in range(4):
    step("m")
print(monkey.is_module_patched("threading"), len(threading.enumerate()))
