import asyncio


async def m():
    await asyncio.sleep(0)
    print("d")


asyncio.run(m(), debug=True)
