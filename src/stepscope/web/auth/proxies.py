"""What a proxy in front of the server says, believed from known proxies only."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.records import dataclass

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

_PREFIX = re.compile(r"(?:/[\w.~-]+)+", re.ASCII)
_FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PREFIX")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Proxies:
    """The proxies that are believed, and the path below which they show this server.

    Attributes:
        networks: their addresses.
        identity_header: the header in which they name the person, such as `X-Forwarded-User`; empty for none.
        prefix: a path, such as `/stepscope`; empty for the root.
    """

    networks: tuple[Network, ...] = ()
    identity_header: str = ""
    prefix: str = ""

    def knows(self, address: str) -> bool:
        """Whether an address is one of the proxies'."""
        try:
            found = ipaddress.ip_address(address.partition("%")[0].removeprefix("::ffff:"))
        except ValueError:
            return False
        return any(found in network for network in self.networks if network.version == found.version)

    def apply(self, environ: WSGIEnvironment) -> WSGIEnvironment:
        """The request as the client sent it to the proxy.  What others say in the headers of proxies is dropped."""
        sent = {key: environ[key] for key in _FORWARDED if key in environ}
        clean = {key: value for key, value in environ.items() if key not in _FORWARDED}
        clean = _move_prefix(clean, self.prefix)
        if not self.knows(str(environ.get("REMOTE_ADDR", ""))):
            clean.pop(self.identity_key, None)
            return clean
        hops = [hop.strip() for hop in sent.get("HTTP_X_FORWARDED_FOR", "").split(",") if hop.strip()]
        # The last hops are those that the proxies added; the first that is no proxy is the client.
        client = next((hop for hop in reversed(hops) if not self.knows(hop)), None)
        if client is not None:
            clean["REMOTE_ADDR"] = client[:45]
        if sent.get("HTTP_X_FORWARDED_PROTO") in ("http", "https"):
            clean["wsgi.url_scheme"] = sent["HTTP_X_FORWARDED_PROTO"]
        if "HTTP_X_FORWARDED_HOST" in sent:
            clean["HTTP_HOST"] = sent["HTTP_X_FORWARDED_HOST"]
        prefix = sent.get("HTTP_X_FORWARDED_PREFIX", "").rstrip("/")
        if not self.prefix and len(prefix) <= 200 and _PREFIX.fullmatch(prefix):
            clean["SCRIPT_NAME"] = prefix
        return clean

    @property
    def identity_key(self) -> str:
        """The identity header's key in a request's environment."""
        return f"HTTP_{self.identity_header.upper().replace('-', '_')}" if self.identity_header else "HTTP_"


def _move_prefix(environ: WSGIEnvironment, prefix: str) -> WSGIEnvironment:
    """Moves the path below which the server lies from the path to `SCRIPT_NAME`; a proxy may have removed it."""
    if not prefix:
        return environ
    path = str(environ.get("PATH_INFO", ""))
    inside = path.removeprefix(prefix) if path == prefix or path.startswith(f"{prefix}/") else path
    return {**environ, "SCRIPT_NAME": prefix, "PATH_INFO": inside or "/"}


def parse_proxies(addresses: Sequence[str], identity_header: str = "", prefix: str = "") -> Proxies:
    """The proxies of a command line.  Raises UsageError for what is no address, no header and no path."""
    if identity_header and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,60}", identity_header):
        raise UsageError(f"{identity_header!r} is not the name of a header", hint="such as X-Forwarded-User")
    if identity_header and not addresses:
        reason = "anybody could send the header that names the person"
        raise UsageError(reason, hint="say with --behind-proxy which addresses may")
    path = f"/{prefix.strip('/')}" if prefix.strip("/") else ""
    if path and not _PREFIX.fullmatch(path):
        raise UsageError(f"{prefix!r} is not a path", hint="such as /stepscope")
    return Proxies(tuple(map(_parse_network, addresses)), identity_header, path)


def _parse_network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError as error:
        raise UsageError(f"{text!r} is not an address of a proxy", hint="such as 127.0.0.1 or 10.0.0.0/8") from error
