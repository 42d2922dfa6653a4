"""`stepscope serve`: the page for a team, behind a token."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stepscope.cli.options import LOGDIR_HELP, MOST_PORT, Address, argument, option
from stepscope.cli.words import ParsedNames
from stepscope.errors import UsageError
from stepscope.report.looks import clean

if TYPE_CHECKING:
    from stepscope.web.auth.tokens import Token
    from stepscope.web.serving import PageServer
    from stepscope.web.site import Site

PATIENCE_S = 20.0
"""For open requests when the server is asked to end; orchestrators wait 30 seconds before they kill."""

PLAIN_TEXT_WARNING = "stepscope: without --tls-cert the token and the profiles cross the network as plain text"

_Logdirs = Annotated[list[str], argument(value="LOGDIR", help=f"{LOGDIR_HELP} NAME=LOGDIR names it.")]
_Host = Address
_Port = Annotated[int, option("--port", value="PORT", least=0, most=MOST_PORT, help="The port; 0 for any free one.")]
_TokenFile = Annotated[
    Path | None,
    option("--token-file", value="FILE", help="The tokens, one per line: TOKEN [see|label|capture [NAME]]."),
]
_AllowedHosts = Annotated[
    list[str] | None,
    option("--allowed-host", value="NAME", help="A name by which people reach this server; repeatable."),
]
_Certificate = Annotated[
    Path | None, option("--tls-cert", value="FILE", help="The TLS certificate with its chain (PEM).")
]
_Key = Annotated[Path | None, option("--tls-key", value="FILE", help="The key of the certificate (PEM).")]
_Proxies = Annotated[
    list[str] | None,
    option(
        "--behind-proxy",
        value="ADDRESS",
        help="The proxy's address or network, whose X-Forwarded headers are trusted; repeatable.",
    ),
]
_Prefix = Annotated[str, option("--prefix", value="PATH", help="The path at which the proxy serves the page.")]
_IdentityHeader = Annotated[
    str, option("--identity-header", value="NAME", help="The header in which the proxy names the user.")
]
_IdentityRole = Annotated[
    str,
    option("--identity-role", value="ROLE", help="What users named by the proxy may do: see, label or capture."),
]
_Links = Annotated[bool, option("--follow-links", help="Follow links that lead out of the logdirs.")]
_Warm = Annotated[
    bool,
    option("--warm", help="Answer your own commands from memory instead of serving the page."),
]
_Log = Annotated[bool, option("--log", off="--no-log", help="Write one line of JSON per request to stderr.")]


def serve_team(
    logdirs: _Logdirs,
    given: ParsedNames,
    host: _Host = "127.0.0.1",
    port: _Port = 8090,
    token_file: _TokenFile = None,
    allowed_host: _AllowedHosts = None,
    tls_cert: _Certificate = None,
    tls_key: _Key = None,
    behind_proxy: _Proxies = None,
    prefix: _Prefix = "",
    identity_header: _IdentityHeader = "",
    identity_role: _IdentityRole = "label",
    follow_links: _Links = False,
    log: _Log = True,
    warm: _Warm = False,
) -> None:
    """Serves the page to a team, behind a token.

    Without --token-file the token is the value of STEPSCOPE_TOKEN, or a new one that is printed once.

    With --warm there is no page: this process answers your own `stepscope summary` and tool commands about profiles
    below these folders from memory, and ends after ten idle minutes.
    """
    if warm:
        _answer_from_memory(logdirs, given)
        return
    from stepscope.web import serving
    from stepscope.web.auth.gate import Gate, GateOptions
    from stepscope.web.auth.log import write_request
    from stepscope.web.auth.proxies import parse_proxies
    from stepscope.web.auth.tokens import parse_role
    from stepscope.web.listener import load_certificate
    from stepscope.web.memory import share_heap

    proxies = parse_proxies(behind_proxy or [], identity_header, prefix)
    tokens, new_text = _choose_tokens(token_file)
    tls = load_certificate(tls_cert, tls_key) if tls_cert is not None else None
    share_heap()
    gc.enable()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="stepscope: %(message)s")
    site = _open_site(logdirs, host, allowed_host or (), follow_links)
    bound = serving.bind_socket(host, port, tries=1)
    gate = Gate(GateOptions(tokens, proxies, parse_role(identity_role), token_file, site.words))
    server = serving.PageServer(site, bound, gate, tls, write_request if log else None)
    _end_gracefully(server)
    address = serving.page_url(bound, "http" if tls is None else "https")
    _announce([root.path for root in site.options.roots], f"{address}{proxies.prefix.lstrip('/')}", new_text)
    if tls is None and not serving.is_loopback(host):
        print(PLAIN_TEXT_WARNING, file=sys.stderr, flush=True)
    server.run()


def _answer_from_memory(logdirs: list[str], given: ParsedNames) -> None:
    if given.fields != {"logdirs", "warm"}:
        raise UsageError("--warm shows no page, so it takes no other option")
    from stepscope.cli.warm import serve_warm

    serve_warm(logdirs)


def _open_site(logdirs: list[str], host: str, others: Sequence[str], follow_links: bool) -> Site:
    """The site of the logdirs that answers to the names of a host and to others."""
    from stepscope.cli.report import render
    from stepscope.web.catalogue import parse_root
    from stepscope.web.hosts import own_names
    from stepscope.web.site import Site, SiteOptions

    roots, names = [parse_root(text) for text in logdirs], own_names(host, others)
    return Site(SiteOptions(roots, host_names=names, is_shared=True, follows_links=follow_links, report=render))


def _choose_tokens(path: Path | None) -> tuple[tuple[Token, ...], str]:
    """The tokens, and the text of the one that was made now; empty if none was."""
    from stepscope.web.auth import tokens

    if path is not None:
        return tokens.read_tokens(path), ""
    given = os.environ.pop(tokens.TOKEN_VARIABLE, "").strip()  # what this process starts need not know it
    text = given or tokens.new_text()
    return (tokens.make_token(text),), "" if given else text


def _announce(logdirs: list[str], address: str, new_text: str) -> None:
    print(f"{clean(', '.join(logdirs))} is shown at {address}   (Ctrl-C to exit)", flush=True)
    if new_text:
        print(f"token, shown only now: {new_text}", flush=True)


def _end_gracefully(server: PageServer) -> None:
    """SIGTERM and Ctrl-C let open requests end; the second one ends at once."""

    def end(number: int, _: object) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        threading.Thread(target=server.finish, args=(PATIENCE_S,), name="end", daemon=True).start()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, end)
