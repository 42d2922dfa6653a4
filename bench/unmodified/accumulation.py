"""PyTorch: the gradients of four batches make one update."""

import torch
from clock import CLOCK

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = [(torch.randn(64, 256), torch.randint(10, (64,))) for _ in range(8)]

for number in range(4 * 60):
    x, y = data[number % 8]
    loss = torch.nn.functional.cross_entropy(model(x), y) / 4
    loss.backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
        CLOCK.tick()
        if number % 80 == 79:
            print(f"update {number // 4}: loss {loss.item():.3f}")
