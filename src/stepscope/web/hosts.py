"""Which names a server answers to.

A web site can point a name of its own at this machine (DNS rebinding), and its scripts may then read whatever this
server answers.  The browser says in the Host header which name it used, so a server that answers to its own names alone
is safe.  A plain IP address is always safe: no name was looked up.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from functools import cache

from stepscope.records import dataclass

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

ALLOWED_VARIABLE = "STEPSCOPE_ALLOWED_HOSTS"
"""More names, separated by commas, for a server whose command line is not ours; `*` for any."""

_HEADER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[\w.-]{1,255})(?::\d{1,5})?", re.ASCII)


@dataclass(frozen=True)
class HostNames:
    """The names that a server answers to.

    Attributes:
        names: host names and addresses in lower case, those of IPv6 in brackets.
        any_address: whether every IP address is accepted too, since the server listens beyond loopback.
        any_name: whether every name is accepted: something else checks it.
    """

    names: frozenset[str]
    any_address: bool = False
    any_name: bool = False

    def accepts(self, header: str) -> bool:
        """Whether a request with this Host header is meant for this server."""
        found = _HEADER.fullmatch(header)
        if found is None:
            return False
        host = found["host"].lower()
        return self.any_name or host in self.names or (self.any_address and is_address(host))


def is_address(host: str) -> bool:
    """Whether a host is an IP address, that of IPv6 in brackets."""
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return host.startswith("[") == (":" in host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(host: str, more: Iterable[str] = ()) -> HostNames:
    """The names of a server that listens on an address.

    Args:
        host: the address or name that it listens on.
        more: names that a proxy uses; `*` for any.
    """
    given = {name.strip().lower() for name in more if name.strip()}
    own = f"[{host}]" if ":" in host else host
    names = LOOPBACK_NAMES | {own.lower()} | given
    if is_loopback(host):
        return HostNames(names, any_name="*" in given)
    return HostNames(names | _machine_names(), any_address=True, any_name="*" in given)


def names_from_environment(host: str) -> HostNames:
    """As `own_names`, for a server that somebody else has started, with the names that a variable adds."""
    return own_names(host, os.environ.get(ALLOWED_VARIABLE, "").split(","))


@cache
def _machine_names() -> frozenset[str]:
    """The names of this machine, without a question to a name server."""
    name = socket.gethostname().lower()
    return frozenset({name, name.partition(".")[0]} - {""})
