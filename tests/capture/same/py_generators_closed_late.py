"""Generators and asynchronous ones that nobody ends before the interpreter does."""

import asyncio
import contextlib
import sys


def batches(name):
    try:
        yield from range(100)
    except GeneratorExit:
        print(name, "closed", sys._getframe().f_back is None)
        raise
    finally:
        print(name, "ended", sys.exc_info()[0])


async def stream(name):
    try:
        for n in range(100):
            yield n
            await asyncio.sleep(0)
    finally:
        print(name, "stream ended")


@contextlib.contextmanager
def scope(name):
    print("enter", name)
    try:
        yield name
    finally:
        print("leave", name)


def step(n):
    return sum(range(n))


async def main():
    firsts = []
    s = stream("kept")
    async for n in s:
        firsts.append(step(n))
        if n == 5:
            break
    async with contextlib.aclosing(stream("closed")) as other:
        async for n in other:
            if n == 3:
                break
    async for n in stream("left"):
        if n == 2:
            break
    return firsts, s


loader = batches("module's")
for _ in range(8):
    step(next(loader))
inner = batches("inner")
next(inner)
del inner
print(asyncio.run(main(), debug=True)[0])
held = scope("held")
held.__enter__()
thrown = batches("thrown")
next(thrown)
try:
    thrown.throw(ValueError("in"))
except ValueError as error:
    print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name)
print([loader.gi_frame is not None, loader.gi_running, loader.gi_suspended])
