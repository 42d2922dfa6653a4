# modes: run watch prove api
"""Objects of a manager's process, shared with processes of all ways to start, and a barrier between them."""

import multiprocessing as mp
import os


def work(shared, lock, barrier, at):
    barrier.wait(60)
    with lock:
        shared[at] = (mp.current_process().name.split("-")[0], os.getppid() > 0, os.environ.get("STEPSCOPE_LOGDIR"))


if __name__ == "__main__":
    with mp.Manager() as manager:
        shared, lock, barrier = manager.dict(), manager.Lock(), manager.Barrier(3)
        processes = [
            mp.get_context(how).Process(target=work, args=(shared, lock, barrier, how))
            for how in ("fork", "spawn", "forkserver")
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        print(sorted(shared.items()), [process.exitcode for process in processes])
        names = manager.Namespace()
        names.value = [1, 2]
        print(names, len(mp.active_children()))
    print(mp.active_children())
