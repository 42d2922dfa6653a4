"""asyncio in debug mode, contexts, and a task that fails."""

import asyncio
import contextvars
import logging

logging.basicConfig(format="%(name)s %(levelname)s %(message).40s")
logging.getLogger().handlers[0].setStream(__import__("sys").stdout)
name = contextvars.ContextVar("name", default="none")


async def work(n):
    name.set(str(n))
    await asyncio.sleep(0)
    if n == 2:
        raise ValueError("two")
    return name.get()


async def main():
    results = await asyncio.gather(*(work(n) for n in range(4)), return_exceptions=True)
    print(results, name.get(), len(contextvars.copy_context()))
    print(len(asyncio.all_tasks()), asyncio.get_running_loop().get_debug())


asyncio.run(main(), debug=True)
