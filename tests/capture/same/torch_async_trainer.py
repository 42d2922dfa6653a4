# modes: run watch prove
"""asyncio serves while threads train: timeouts, cancellations, queues, an executor, subprocesses and signals."""

import asyncio
import signal
import sys
import threading

import torch

torch.set_num_threads(1)


def train(count, stop):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    done = 0
    while done < count and not stop.is_set():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).pow(2).sum()
        loss.backward()
        optimizer.step()
        done += 1
    return done, round(float(loss), 8), threading.current_thread().name.partition("_")[0]


async def main():
    loop, never, stop = asyncio.get_running_loop(), threading.Event(), threading.Event()
    said = []
    loop.set_exception_handler(lambda _, context: said.append(context["message"]))
    loop.add_signal_handler(signal.SIGUSR1, lambda: said.append("signal"))
    print(await asyncio.to_thread(train, 30, never))
    forever = asyncio.create_task(asyncio.to_thread(train, 10**9, stop))
    try:
        await asyncio.wait_for(asyncio.shield(forever), 0.2)
    except TimeoutError:
        said.append("timeout")
    signal.raise_signal(signal.SIGUSR1)
    await asyncio.sleep(0.05)
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(input())", stdin=-1, stdout=-1)
    said.append((await child.communicate(b"hello\n"))[0])
    stop.set()
    done, _, name = await forever
    print(done > 0, name, said)
    queue = asyncio.Queue(2)

    async def feed():
        for at in range(6):
            await queue.put(at)
        await queue.put(None)

    async def drain():
        found = []
        while (at := await queue.get()) is not None:
            found.append((at, (await loop.run_in_executor(None, train, 2, never))[0]))
        return found

    async with asyncio.TaskGroup() as group:
        group.create_task(feed())
        drained = group.create_task(drain())
    print(
        drained.result(), len(asyncio.all_tasks()), [each.name.partition("_")[0] for each in threading.enumerate()][:2]
    )

    async def boom():
        raise OSError("boom")

    lost = asyncio.create_task(boom())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del lost
    import gc

    gc.collect()
    print(said[-1:])
    return type(loop).__name__


print(asyncio.run(main()), threading.active_count())
