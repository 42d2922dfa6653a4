# modes: run api watch prove
import threading
import time

import torch

results = []


def train():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    until = time.monotonic() + 3
    for step in range(100000):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).pow(2).sum()
        loss.backward()
        optimizer.step()
        if step == 20:
            results.append(round(float(loss), 5))
        if step > 20 and time.monotonic() > until:
            break


thread = threading.Thread(target=train)
thread.start()
thread.join()
print(results, threading.active_count())
