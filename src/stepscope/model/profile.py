"""Profile: one session, recorded by one or many hosts."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.model.trace import HostTrace


@dataclass(frozen=True)
class Profile:
    """The traces of the hosts of one session.

    Attributes:
        run: the session's name.
        hosts: one trace a host, in the order of their names.
    """

    run: str
    hosts: tuple[HostTrace, ...]
