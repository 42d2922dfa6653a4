"""PyTorch: a generator and a discriminator, each with an optimizer of its own."""

import torch
from clock import CLOCK

torch.manual_seed(0)
maker = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128))
judge = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.LeakyReLU(), torch.nn.Linear(256, 1))
of_maker, of_judge = torch.optim.Adam(maker.parameters(), 2e-4), torch.optim.Adam(judge.parameters(), 2e-4)
score = torch.nn.functional.binary_cross_entropy_with_logits
yes, no = torch.ones(256, 1), torch.zeros(256, 1)

for number in range(60):
    real, made = torch.randn(256, 128), maker(torch.randn(256, 32))
    of_judge.zero_grad()
    (score(judge(real), yes) + score(judge(made.detach()), no)).backward()
    of_judge.step()
    of_maker.zero_grad()
    loss = score(judge(made), yes)
    loss.backward()
    of_maker.step()
    CLOCK.tick()
    if number % 20 == 19:
        print(f"step {number}: loss {loss.item():.3f}")
