import asyncio
import sys


async def m():
    p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(3)", stdout=-1)
    print(await p.communicate(), p.returncode)


asyncio.run(m())
