import asyncio
import os
import signal


async def m():
    l = asyncio.get_running_loop()
    f = l.create_future()
    l.add_signal_handler(signal.SIGUSR1, lambda: f.set_result("got"))
    l.call_later(0.2, os.kill, os.getpid(), signal.SIGUSR1)
    print(await f)


asyncio.run(m())
