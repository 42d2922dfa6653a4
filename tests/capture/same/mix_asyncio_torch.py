# modes: run watch prove
"""An event loop trains in an executor and hears signals; each task has its own context."""

import asyncio
import contextvars
import os
import signal

import torch

who = contextvars.ContextVar("who", default="nobody")
model = torch.nn.Linear(3, 1)
torch.manual_seed(0)
for each in model.parameters():
    torch.nn.init.constant_(each, 0.1)
optimizer = torch.optim.Adam(model.parameters())
heard = []


def step(at):
    optimizer.zero_grad()
    loss = model(torch.full((2, 3), float(at))).pow(2).mean()
    loss.backward()
    optimizer.step()
    return who.get(), round(loss.item(), 6)


async def train(name):
    who.set(name)
    loop = asyncio.get_running_loop()
    said = []
    for at in range(6):
        context = contextvars.copy_context()
        said.append(await loop.run_in_executor(None, context.run, step, at))
        await asyncio.sleep(0)
    return said


async def main():
    loop = asyncio.get_running_loop()
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        loop.add_signal_handler(number, heard.append, number.name)
    said = await train("a")
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)
    print(said, sorted(heard))
    print(await asyncio.gather(*(asyncio.to_thread(who.get) for _ in range(2))), who.get())


asyncio.run(main(), debug=True)
print(signal.getsignal(signal.SIGUSR1))
