# modes: run api watch prove
import asyncio
import contextvars

request = contextvars.ContextVar("request", default="none")


async def work(name, seconds, fails):
    request.set(name)
    await asyncio.sleep(seconds)
    if fails:
        raise ValueError(name)
    return request.get()


async def stream(n):
    try:
        for i in range(n):
            yield i
            await asyncio.sleep(0)
    finally:
        print("stream closed")


async def main():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(f"t{i}", 0.01 * (3 - i), False), name=f"n{i}") for i in range(3)]
    print([(task.get_name(), task.result()) for task in tasks], request.get())
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(work("bad", 0.0, True))
            slow = group.create_task(work("slow", 5, False))
    except* ValueError as errors:
        print(repr(errors.exceptions), slow.cancelled())
    try:
        async with asyncio.timeout(0.05):
            await asyncio.to_thread(__import__("time").sleep, 0.2)
    except TimeoutError:
        print("timed out")
    async for i in stream(5):
        if i == 2:
            break
    print(len(asyncio.all_tasks()), asyncio.current_task().get_name())
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: print("handler:", context["message"]))
    loop.call_soon(lambda: 1 / 0)
    await asyncio.sleep(0.01)


asyncio.run(main())
