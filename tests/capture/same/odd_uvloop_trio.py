"""Training as tasks of uvloop and trio, with context variables and cancelled steps."""

import asyncio
import contextvars
import torch
import uvloop
import trio

rank = contextvars.ContextVar("rank", default=-1)
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = []


def step():
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    log.append(rank.get())


async def train(who):
    rank.set(who)
    for n in range(4):
        step()
        await asyncio.sleep(0)
    return who


async def main():
    print(await asyncio.gather(*(train(n) for n in range(2))))
    task = asyncio.create_task(asyncio.sleep(100))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", rank.get())
    await asyncio.to_thread(step)
    print(type(asyncio.get_running_loop()).__module__, len(asyncio.all_tasks()))


uvloop.run(main())


async def other():
    async with trio.open_nursery() as nursery:

        async def job(who):
            rank.set(who)
            for n in range(4):
                step()
                await trio.sleep(0)

        for n in (5,):
            nursery.start_soon(job, n)
    with trio.move_on_after(0.01) as scope:
        await trio.sleep_forever()
    await trio.to_thread.run_sync(step)
    print(scope.cancelled_caught)


trio.run(other)
print(log)
