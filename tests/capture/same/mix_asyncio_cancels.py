# asyncio training with tasks, cancellation, contextvars, eager exceptions
import asyncio
import contextvars
import torch
import sys

v = contextvars.ContextVar("v", default=0)
m = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(m.parameters(), lr=0.01)
out = []


async def step(i):
    v.set(i)
    opt.zero_grad()
    m(torch.ones(2, 4)).sum().backward()
    opt.step()
    await asyncio.sleep(0.002)
    out.append(v.get())
    return i


async def forever():
    try:
        while True:
            await step(-1)
    except asyncio.CancelledError:
        out.append("cancelled")
        raise
    finally:
        out.append("finally")


async def agen():
    try:
        for i in range(30):
            yield await step(i)
    finally:
        out.append("agen closed")


async def main():
    t = asyncio.create_task(forever(), name="bg")
    async for i in agen():
        if i == 12:
            break
    t.cancel()
    r = await asyncio.gather(t, *(step(100 + k) for k in range(5)), return_exceptions=True)
    print([type(x).__name__ for x in r], len(asyncio.all_tasks()))
    try:
        async with asyncio.timeout(0.05):
            await forever()
    except TimeoutError:
        print("timeout")
    loop = asyncio.get_running_loop()
    f = loop.run_in_executor(None, lambda: [asyncio.run(step(7)) for _ in range(8)])
    print(await f)
    try:
        async with asyncio.TaskGroup() as g:
            g.create_task(forever())
            g.create_task(asyncio.wait_for(forever(), 0.03))
    except* TimeoutError as e:
        print(len(e.exceptions))


asyncio.run(main())
print(v.get(), [o for o in out if not isinstance(o, int)], sum(o for o in out if isinstance(o, int) and o >= 0))
