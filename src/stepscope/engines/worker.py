"""What a worker of a cluster runs: it checks its version and passes the task to a child process of its own."""

from __future__ import annotations

import os
import threading

from stepscope.children import ChildLostError
from stepscope.engines.child import HostChild

_children: dict[int, HostChild] = {}
"""One for each thread of this process that does tasks."""

DONE, LOST, REFUSED = "done", "lost", "refused"

Reply = tuple[str, bytes | str]
"""Plain values, which every version can unpack: DONE with the packed answer, LOST with the reason why the child is
gone, or REFUSED with the versions of the worker."""


def work(versions: tuple[str, str], content: bytes) -> Reply:
    """Does a packed task in the child of this thread.

    Args:
        versions: those of the process that asks, see `task.Versions`.
        content: the packed task.
    """
    from stepscope.engines.task import own_versions

    own = own_versions()
    if tuple(versions) != tuple(own):
        return REFUSED, f"{own} at {os.uname().nodename}"
    child = _children.setdefault(threading.get_ident(), HostChild())
    try:
        return DONE, child.do(content)
    except ChildLostError as error:
        return LOST, str(error)


def stop_children() -> None:
    """Ends all children of this process, in the middle of their tasks."""
    for child in list(_children.values()):
        child.kill()


def release_children() -> None:
    """Ends all children of this process when no thread does tasks any more."""
    stop_children()
    while _children:
        _children.popitem()[1].release()
