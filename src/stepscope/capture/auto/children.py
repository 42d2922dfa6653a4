"""Extends the watch to the Python processes that a program starts.

- A fork inherits everything.  It captures steps but never a time window, so workers that only load data write nothing.
- `multiprocessing` with fresh processes, and any `subprocess` that runs this Python or a script of it: its command
  stays as it is, and `startup/sitecustomize.py` comes before its program.  That is how launchers such as `torchrun`
  start their ranks.
- A process that is started in another way, or by another Python, is captured if it imports stepscope and its
  environment names a logdir.

Nothing is added to the Python installation, and what we add to the environment of a process is gone before its program
begins: neither the program nor what it starts sees it.
"""

from __future__ import annotations

import json
import os

from stepscope.capture import job, workers
from stepscope.capture.auto.ledger import Ledger
from stepscope.capture.auto.settings import Settings
from stepscope.capture.startup.sitecustomize import STARTED, WAITS

_FOLLOW = f"{WAITS}stepscope.capture.auto.autostart:arm_child"  # once it imports a framework


def inherit(settings: Settings, ledger: Ledger) -> None:
    """Captures processes that start from now on as well; they list in the ledger what they captured."""
    job.LAUNCH.name = job.LAUNCH.name or ledger.to_text()
    folder = workers.shared_folder()
    payload = json.dumps(
        {
            "settings": settings.to_environment(),
            "ledger": ledger.to_text(),
            "job": job.LAUNCH.name,
            "workers": str(folder) if folder else "",
        }
    )
    STARTED.follow(f"{_FOLLOW}\n{payload}")


def disinherit() -> None:
    """Starts processes as before."""
    STARTED.forget()


def read_payload(payload: str) -> tuple[Settings | None, Ledger]:
    """What `inherit` of the process that started this one left for it."""
    said = json.loads(payload)
    job.LAUNCH.name = said["job"]
    workers.share_folder(said["workers"])
    ledger = Ledger.from_text(said["ledger"])
    job.LAUNCH.folder = ledger.folder
    settings = Settings.from_environment({**os.environ, **said["settings"]})
    return settings and settings.derive_for_child(), ledger
