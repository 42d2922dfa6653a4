"""`stepscope mcp`: answers agents by the Model Context Protocol, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import signal
import sys
from contextlib import suppress
from typing import Annotated

from stepscope import __version__
from stepscope.cli.options import MOST_PORT, Address, argument, option
from stepscope.errors import UsageError

TOKEN_VARIABLE = "STEPSCOPE_MCP_TOKEN"
_SHORTEST_TOKEN = 16


def serve(
    logdirs: Annotated[
        list[str] | None,
        argument(value="LOGDIR", help="Agents may read only what is below these folders."),
    ] = None,
    http: Annotated[bool, option("--http", help="Serve over HTTP instead of stdin and stdout.")] = False,
    host: Address = "127.0.0.1",
    port: Annotated[int, option("--port", value="PORT", help="The port to listen on.", least=0, most=MOST_PORT)] = 6011,
    token: Annotated[
        str | None,
        option("--token", variable=TOKEN_VARIABLE, help="The token that clients send over HTTP (default: a new one)."),
    ] = None,
    follow_links: Annotated[bool, option("--follow-links", help="Follow links that lead out of the logdirs.")] = False,
) -> None:
    """Answers agents over the Model Context Protocol.

    They ask for summaries, advice, rows, what-if, comparisons and pictures.
    """
    from stepscope.agents.server import make_server, serve_stdio
    from stepscope.agents.sessions import Sessions

    if http and not logdirs:
        raise UsageError("an HTTP server needs the places that agents may read", hint="stepscope mcp --http LOGDIR")
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise UsageError(
            "the token is too short", hint=f"use at least {_SHORTEST_TOKEN} characters, or none for a new one"
        )
    gc.enable()  # a server makes garbage; see `stepscope.cli.main.main`
    server = make_server(Sessions(logdirs or [], follow_links), __version__)
    if http:
        _serve_http(server, host, port, token or secrets.token_urlsafe(24))
    else:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread that reads stdin would keep an interrupt waiting
        asyncio.run(serve_stdio(server))


def _serve_http(server: object, host: str, port: int, token: str) -> None:
    import uvicorn

    from stepscope.agents.server import PATH, make_http_app
    from stepscope.web import serving

    bound = serving.bind_socket(host, port, tries=1)
    shown = token if TOKEN_VARIABLE not in os.environ else f"${TOKEN_VARIABLE}"
    address = serving.page_url(bound).rstrip("/")
    print(f"{address}{PATH}\nAuthorization: Bearer {shown}", file=sys.stderr, flush=True)
    config = uvicorn.Config(make_http_app(server, token, host), log_level="warning")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):  # either signal comes again once open requests have ended: that is no failure
        uvicorn.Server(config).run(sockets=[bound])
