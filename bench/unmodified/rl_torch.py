"""PyTorch: episodes are played with the policy, then the policy is updated."""

import numpy as np
import torch
from clock import CLOCK

torch.manual_seed(0)
random = np.random.default_rng(0)
policy = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam(policy.parameters(), 1e-3)


def move(state, action):
    """The pole's next state."""
    push = 10.0 if action else -10.0
    x, speed, angle, turn = state
    swing = (push + 0.05 * turn**2 * np.sin(angle)) / 1.1
    bend = (9.8 * np.sin(angle) - np.cos(angle) * swing) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    return np.array([x + 0.02 * speed, speed + 0.02 * swing, angle + 0.02 * turn, turn + 0.02 * bend])


def rollout():
    """States, actions and rewards of 64 moves."""
    state, states, actions, rewards = random.normal(size=4) * 0.05, [], [], []
    for _ in range(64):
        with torch.no_grad():
            action = torch.distributions.Categorical(logits=policy(torch.tensor(state, dtype=torch.float32))).sample()
        states.append(state)
        actions.append(int(action))
        rewards.append(1.0 if abs(state[2]) < 0.2 else 0.0)
        state = move(state, actions[-1])
        if abs(state[2]) > 0.2:
            state = random.normal(size=4) * 0.05
    return np.array(states, np.float32), np.array(actions), np.cumsum(rewards[::-1])[::-1].astype(np.float32)


for number in range(40):
    states, actions, returns = rollout()
    chances = torch.log_softmax(policy(torch.from_numpy(states)), -1)[range(64), actions]
    loss = -(chances * torch.from_numpy(returns.copy())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    CLOCK.tick()
    if number % 10 == 9:
        print(f"update {number}: return {returns[0]:.0f}")
