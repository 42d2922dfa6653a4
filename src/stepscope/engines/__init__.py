"""Where the hosts of a session are analysed: in this process, in processes of this machine, on Ray, or on Dask.

    host_work.py     one host: read its file, compute its partials, keep them in the cache
    task.py          some hosts as one task, and its answer; all that travels between processes
    child.py         a process that does tasks, and the handle that ends it when it takes too much time or memory
    worker.py        what a worker of a cluster runs: it checks its version and passes the task to a child
    base.py          what an engine is: it takes tasks and says which are done
    local.py, ray_engine.py, dask_engine.py
    choice.py        which engine a text such as `ray=ADDRESS` means
    session_work.py  all hosts of a session: which engine, what the cache has of them
    schedule.py      the one loop for all engines: tasks, retries, progress, Ctrl-C
    folding.py       partials put together while they arrive, so that few are in memory
    budget.py        how much memory there is, and what a file needs

Every engine does the same work in the same child processes, so limits and answers are the same everywhere.  Ray and
Dask are imported when such an engine is opened.
"""
