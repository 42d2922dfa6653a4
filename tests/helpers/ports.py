"""Ports for servers that cannot be asked to take any free one."""

from __future__ import annotations

import random
import socket

# Below the ports that systems hand out by themselves (32768 and up on Linux, 49152 elsewhere): between the look and the
# start of the server, no test that asks for any free port gets it.
_RANGE = range(20_000, 32_000)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    for port in random.SystemRandom().sample(_RANGE, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("100 ports were tried, and all are in use")
