# modes: run api watch prove
import asyncio
import contextlib
import gc
import sys
import types
import warnings

warnings.simplefilter("always")
hooks = []


async def never():
    return 1


async def agen():
    try:
        yield 1
        yield 2
    finally:
        hooks.append("closed")


never()
gc.collect()
sys.set_coroutine_origin_tracking_depth(2)
coroutine = never()
print([frame[2] for frame in coroutine.cr_origin], coroutine.cr_frame is not None, coroutine.cr_await)
coroutine.close()
sys.set_coroutine_origin_tracking_depth(0)
old = sys.get_asyncgen_hooks()
sys.set_asyncgen_hooks(firstiter=lambda g: hooks.append("first"), finalizer=lambda g: hooks.append("finalizer"))


async def use():
    async for _ in agen():
        break


with contextlib.suppress(StopIteration):
    use().send(None)
gc.collect()
print(hooks, old.firstiter, old.finalizer)
sys.set_asyncgen_hooks(*old)


def generator():
    received = yield from inner()
    print("received", received)
    try:
        yield 3
    except GeneratorExit:
        print("exit")
        raise


def inner():
    x = yield 1
    return x * 2


g = generator()
print(next(g), g.gi_yieldfrom.__name__, g.send(21), g.gi_frame.f_lineno)
g.close()
print(g.gi_frame, types.GeneratorType is type(g))
g = generator()
next(g)
try:
    g.throw(ValueError("thrown"))
except ValueError as error:
    print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name)
print(asyncio.run(never()))
