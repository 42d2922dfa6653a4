"""Context variables, thread locals and copies of contexts, across threads, tasks and callbacks."""

import asyncio
import concurrent.futures
import contextvars
import decimal
import threading

rank = contextvars.ContextVar("rank", default=-1)
local = threading.local()


def step(n):
    token = rank.set(n)
    value = rank.get()
    rank.reset(token)
    return value


for n in range(8):
    step(n)
print(rank.get(), [each.name for each in contextvars.copy_context()])
decimal.getcontext().prec = 5
print(decimal.Decimal(1) / 3, [each.name for each in contextvars.copy_context() if each.name == "rank"])


def work(n):
    local.n = n
    rank.set(n)
    return step(n + 10), local.n, rank.get(), str(decimal.Decimal(1) / 3)


with concurrent.futures.ThreadPoolExecutor(1) as pool:
    print(list(pool.map(work, range(3))), pool.submit(rank.get).result(), hasattr(local, "n"))
context = contextvars.copy_context()
print(context.run(work, 5), rank.get(), context[rank], len(context) - len(contextvars.copy_context()))


async def task(n):
    rank.set(n)
    await asyncio.sleep(0)
    return await asyncio.to_thread(lambda: (rank.get(), threading.current_thread() is threading.main_thread()))


async def main():
    loop = asyncio.get_running_loop()
    called = loop.create_future()
    loop.call_soon(lambda: called.set_result(rank.get()))
    results = await asyncio.gather(*(task(n) for n in range(3)))
    return results, await called, rank.get(), loop.get_debug()


print(asyncio.run(main()))
print(sorted(vars(local)), threading.active_count(), threading.current_thread().name)
