"""cProfile around a training: the functions that it has counted."""

import cProfile
import pstats

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for _ in range(12):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


profile = cProfile.Profile()
profile.runcall(train)
stats = pstats.Stats(profile).stats
print(
    sorted(
        (name, counts[0]) for (file, line, name), counts in stats.items() if "stepscope" in file and name != "find_spec"
    )
)  # on the list
print(
    sorted(
        (name, counts[0])
        for (file, line, name), counts in stats.items()
        if counts[0] in (12, 24) and "observed" not in name
    )[:30]
)  # on the list
