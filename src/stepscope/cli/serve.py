"""`stepscope open`: serves the page."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

from stepscope.cli.options import LOGDIR_HELP, MOST_PORT, Address, argument, option
from stepscope.errors import AccessError, InputError
from stepscope.report.looks import clean

if TYPE_CHECKING:
    from stepscope.web.site import Site

OPEN_WARNING = (
    "anybody who reaches this address sees these profiles and can record running jobs; "
    "`stepscope serve` asks for a token"
)
_CAPTURE_PATIENCE_S = 30.0  # for workers to hand over what they recorded
_FIRST_OPEN_PORT = 1024  # lower ones are reserved for the administrator on most systems


def open_page(
    logdir: Annotated[str, argument("LOGDIR", LOGDIR_HELP)],
    port: Annotated[
        int | None, option("--port", value="PORT", help="The first port to try.", least=0, most=MOST_PORT)
    ] = None,
    host: Address = "127.0.0.1",
    no_browser: Annotated[bool, option("--no-browser", help="Print the address without opening a browser.")] = False,
    allowed_host: Annotated[
        list[str] | None,
        option("--allowed-host", value="NAME", help="A name that a proxy uses for this server; repeatable."),
    ] = None,
) -> None:
    """Opens the page in the browser: every tool and the timeline."""
    from stepscope.formats import store
    from stepscope.formats.session import find_sessions

    try:
        find_sessions(logdir)
    except InputError as error:
        # A folder may get its first profile while the page is open; anything else will not change by waiting.
        if isinstance(error, AccessError) or store.kind(store.plain(logdir)) != "folder":
            raise
        print(f"stepscope: no profile yet: {clean(error.problem.reason)}", file=sys.stderr, flush=True)
    serve(logdir, host, port, not no_browser, allowed_host or ())


def serve(
    logdir: str,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    allowed_hosts: Sequence[str] = (),
) -> None:
    """Serves a logdir until the process is interrupted."""
    from stepscope.cli.report import render
    from stepscope.web import serving
    from stepscope.web.catalogue import Root
    from stepscope.web.hosts import own_names
    from stepscope.web.memory import share_heap
    from stepscope.web.site import Site, SiteOptions

    share_heap()
    gc.enable()  # a server lives long; see `stepscope.cli.main.main`
    options = SiteOptions([Root(logdir)], host_names=own_names(host, allowed_hosts), opens_newest=True, report=render)
    bound = serving.bind_socket(host, port)
    _report_other_port(port, bound.getsockname()[1])
    address = serving.page_url(bound)
    site = Site(options)
    with _exit_on_ctrl_c(site):
        print(f"{clean(logdir)} is shown at {address}   (Ctrl-C to exit)", flush=True)
        if not serving.is_loopback(host):
            print(f"stepscope: {OPEN_WARNING}", file=sys.stderr, flush=True)
        if browser:
            serving.open_browser(address)
        serving.PageServer(site, bound).run()


@contextmanager
def _exit_on_ctrl_c(site: Site) -> Iterator[None]:
    """Ctrl-C ends the process at once: a normal exit would wait for threads that load a profile or compile.
    A running capture is saved first, unless Ctrl-C comes a second time."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        site.captures.close()
        if site.captures.is_running:
            print(
                "stepscope: saving a running capture; press Ctrl-C again to exit without it",
                file=sys.stderr,
                flush=True,
            )
            site.captures.wait(_CAPTURE_PATIENCE_S)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(0)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _report_other_port(asked: int | None, got: int) -> None:
    """Reports that another port is used: the user may have a tunnel to the requested one."""
    if asked and got != asked:
        why = (
            "is in use by another program" if asked >= _FIRST_OPEN_PORT else "is in use or not permitted for this user"
        )
        print(f"stepscope: port {asked} {why}; serving on {got}", file=sys.stderr, flush=True)
