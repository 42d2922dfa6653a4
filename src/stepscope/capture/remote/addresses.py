"""Addresses of profiler servers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepscope.errors import UsageError

_FORM = re.compile(r"(?:(?:grpc|http)://)?(?P<host>[\w.-]+|\[[\da-fA-F:.%\w]+\]):(?P<port>\d{1,5})/?")


@dataclass(frozen=True, order=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse(text: str) -> tuple[Address, ...]:
    """The addresses in a list such as `grpc://10.0.0.2:8466,10.0.0.3:8466`, or `tpu://NAME` for all of a TPU's workers.

    Raises:
        UsageError: an address is invalid, or is in the list twice.
    """
    found = [parse_one(address) for part in text.split(",") for address in workers_of(part.strip())]
    for address in found:
        if found.count(address) > 1:
            raise UsageError(f"{address} is named twice", hint="name each worker once")
    return tuple(found)


def workers_of(text: str) -> list[str]:
    """The address, or those of all workers of a TPU that is named.  Raises UsageError if nobody knows the TPU."""
    if not text.startswith("tpu://"):
        return [text]
    from stepscope.capture.remote import tpu_names

    return tpu_names.resolve(text)


def parse_one(text: str) -> Address:
    """One address, with or without `grpc://` or `http://` before it.  Raises UsageError."""
    form = _FORM.fullmatch(text)
    if form is None or not 0 < int(form["port"]) < 65536:
        raise UsageError(
            f"{text!r} is not a worker address",
            hint="write host:port, such as localhost:6009, or tpu://NAME; separate several by commas",
        )
    return Address(form["host"], int(form["port"]))
