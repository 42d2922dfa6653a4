"""Ray: an existing cluster by its address, or one on this machine that ends with this engine."""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stepscope.engines import worker
from stepscope.engines.base import Done, EngineError, Lost, first_line, hear_greeting, not_importable, refused
from stepscope.engines.task import own_versions

AUTO = "auto"
_LONGEST_FOLDER = 40  # characters; Ray puts sockets below it, whose paths may have 107
_ADDRESS_VARIABLE = "RAY_ADDRESS"

_used_addresses: list[str] = []
"""The address by which this process was connected; Ray itself names the cluster by another one."""


class RayEngine:
    """Tasks of Ray, one core each.

    Args:
        address: of the cluster; if empty, that of `RAY_ADDRESS`, else a cluster that runs on this machine, else a new
            one for this engine.
        say: takes sentences about what may take long.
    """

    name = "ray"

    def __init__(self, address: str, say: Callable[[str], None]) -> None:
        self._ray = _import_ray()
        self._say = say
        self._folder = ""
        self._connect(address)
        # Only the schedule tries again: it knows which host was at work.
        self._work = self._ray.remote(num_cpus=1, max_retries=0)(worker.work)

    def _connect(self, address: str) -> None:
        """Connects this process to a cluster, which is started if there is none."""
        if self._ray.is_initialized():
            self._check_connected(address)
            return
        address = address or os.environ.get(_ADDRESS_VARIABLE, "")
        address = "" if address == AUTO else address
        known = address or _remembered_address()
        try:
            if known:
                self._say(f"connecting to Ray at {known}")
                _check_reachable(known)
                self._init(known)
                return
        except EngineError:
            if address:
                raise
            self._say(f"Ray's last cluster of this machine, {known}, does not answer")
        self._say("starting a Ray cluster on this machine")
        self._folder = _make_folder()
        self._init("local", include_dashboard=False, _temp_dir=self._folder)

    def _check_connected(self, address: str) -> None:
        """Raises EngineError if this process is connected to another cluster: Ray allows one for a process."""
        connected = self._ray.get_runtime_context().gcs_address
        if address and address not in (AUTO, connected, *_used_addresses):
            raise EngineError(
                f"this process is connected to the Ray cluster at {connected} and cannot use {address} as well",
                hint="use one cluster for a process, or call ray.shutdown() first",
            )

    def _init(self, address: str, **more: Any) -> None:
        quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
        try:
            self._ray.init(address=address, **quiet, **more)
        except Exception as error:  # each kind of failure has its own exception, without a common root
            raise _no_cluster(address, error) from error
        _used_addresses[:] = [address]

    def slots(self) -> int:
        """The cores of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, content: bytes) -> Any:
        """Starts a task."""
        return self._work.remote(tuple(own_versions()), content)

    def wait(self, tickets: Sequence[Any], seconds: float) -> list[tuple[Any, Done | Lost]]:
        """Those that have ended."""
        done, _ = self._ray.wait([*tickets], num_returns=1, timeout=seconds)
        return [(ticket, self._result(ticket)) for ticket in done]

    def _result(self, ticket: Any) -> Done | Lost:
        try:
            state, content = self._ray.get(ticket)
        except self._ray.exceptions.RayError as error:
            if isinstance(getattr(error, "cause", error), ImportError) or "No module named 'stepscope" in str(error):
                raise not_importable("Ray", getattr(error, "cause", error)) from error
            return Lost(f"its Ray worker is gone ({type(error).__name__}: {first_line(error)})")
        if state == worker.REFUSED:
            raise refused("Ray", str(content), own_versions())
        return Done(content) if state == worker.DONE else Lost(str(content))

    def cancel(self, tickets: Sequence[Any]) -> None:
        """Interrupts the tasks; each ends its child."""
        for ticket in tickets:
            self._ray.cancel(ticket, force=False)

    def close(self) -> None:
        """Ends the cluster if it was started here, and leaves nothing of it."""
        if self._folder:
            self._ray.shutdown()
            shutil.rmtree(self._folder, ignore_errors=True)


def _import_ray() -> Any:
    # Ray asks about a variable at its import and warns when it is not set.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # `ray start` demands a token by default, but its clients send theirs only when told so; an open cluster ignores it.
    if _has_token():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        hint = 'pip install "stepscope[ray]"'
        raise EngineError("the engine ray needs Ray, which is not installed", code="no-engine", hint=hint) from error


def _has_token() -> bool:
    """Whether Ray would find a token of this user: in a variable, in the file that another one names, or at home."""
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    token = Path(named) if named else Path("~/.ray/auth_token").expanduser()
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or token.is_file()


def _remembered_address() -> str:
    """The address of the cluster that was started last on this machine and may be gone; empty if there was none."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    try:
        return Path(folder, "ray", "ray_current_cluster").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _make_folder() -> str:
    """A folder for a cluster of our own: its address in it is found by nobody who looks for a lasting one."""
    is_short = len(tempfile.gettempdir()) <= _LONGEST_FOLDER
    return tempfile.mkdtemp(prefix="ray-", dir=None if is_short else "/tmp")


def _check_reachable(address: str) -> None:
    """Raises EngineError if nothing listens at HOST:PORT.  Ray itself would try for minutes."""
    try:
        hear_greeting(address)
    except OSError as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: BaseException) -> EngineError:
    return EngineError(
        f"there is no Ray cluster at {address} that can be used: {first_line(error)}",
        hint="start one with: ray start --head; or let --engine ray start one for this command; where the cluster "
        "demands a token, it is read from RAY_AUTH_TOKEN or from ~/.ray/auth_token",
    )
