import asyncio


async def m():
    await asyncio.sleep(0.1)
    return await asyncio.to_thread(lambda: 4)


print(asyncio.run(m()))
