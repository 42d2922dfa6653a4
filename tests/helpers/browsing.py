"""The page in a real browser: a server on drawn and real profiles, and a Chromium that reaches nothing else.

    def test_something(page, page_server):
        page.goto(page_server.address + "#/summary?session=" + page_server.session("drawn"))

A test fails on any message of the browser's console that is an error, on any exception in the page, and on any request
that leaves the server.  A test that expects errors looks at them and clears the list: `page_problems.clear()`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from draw import draw
from places import shared_folder

from stepscope.formats.xspace import writer
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder
from stepscope.web import serving
from stepscope.web.auth.gate import Gate, GateOptions
from stepscope.web.auth.proxies import Proxies
from stepscope.web.auth.roles import Rights
from stepscope.web.auth.tokens import make_token
from stepscope.web.catalogue import Root
from stepscope.web.hosts import own_names
from stepscope.web.notes.note_store import NoteStore
from stepscope.web.site import Site, SiteOptions

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_OPTIONS = (
    "--no-sandbox",  # a container's root has no other way
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

# How long a test waits for what it expects: far longer than any page takes, since other tests keep the machine busy.
PATIENCE_MS = 90_000

DRAWN = """
    host main | M0------M1------M2------M3------
    host main | I--a-L1 I--a-L2 I--a-L3 I--a-L4
    host io   |  J-J-    J-J-    J-J-    J-J-
    gpu0 s    |      K1-     K2-     K3-     K4-
"""

HOSTILE = '<img src=x onerror="window.hostile = 1"> \u202e</script><script>window.hostile = 1</script> "\' \\ \x07'


@dataclass(frozen=True)
class PageServer:
    """A running server.

    Attributes:
        address: ends with a slash.
        logdir: what it shows; tests may add sessions of their own.
        site: what it runs on.
    """

    address: str
    logdir: Path
    site: Site

    def get(self, path: str) -> Any:
        """The JSON at an address below the root."""
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE_MS / 1e3) as answer:
            return json.loads(answer.read())

    def session(self, run: str) -> str:
        """The id of a session whose run is `run`, or ends with `/run`, or begins with `run/`."""
        deadline = time.monotonic() + PATIENCE_MS / 1e3
        found: list[str] = []
        while not found and time.monotonic() < deadline:  # the server looks anew when its last list is old enough
            runs = {listed["run"]: listed["id"] for listed in self.get("api/sessions")["sessions"]}
            found = [
                runs[name] for name in runs if name == run or name.endswith(f"/{run}") or name.startswith(f"{run}/")
            ]
        assert len(found) == 1, f"{len(found)} sessions are named {run!r}: {sorted(runs)}"
        return found[0]


def store_profile(logdir: Path, run: str, *traces: HostTrace) -> Path:
    """Writes a session of one or many hosts in TensorBoard's layout; returns its folder."""
    folder = Path(logdir) / "plugins" / "profile" / run
    folder.mkdir(parents=True, exist_ok=True)
    for trace in traces:
        (folder / f"{trace.host}.xplane.pb").write_bytes(writer.write(trace))
    return folder


def hostile_trace() -> HostTrace:
    """A trace whose every name is an attack on the page, one of them ten thousand letters long."""
    builder = TraceBuilder(host="hostile")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    line = builder.line(plane, HOSTILE)
    for step in range(4):
        line.event(HOSTILE, step * 10**10, 9 * 10**9, EventKind.STEP_MARK, {"step_num": step})
        line.event(HOSTILE * 100, step * 10**10, 5 * 10**9, EventKind.OP, {HOSTILE: HOSTILE})
    return builder.build()


def profiled_trace(**cost: float | str) -> HostTrace:
    """Four steps of 100 ms, and what Stepscope measured of the cost of profiling."""
    builder = TraceBuilder(host="vm")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 1)
    for step in range(4):
        line.event("train", step * 10**11, 10**11, EventKind.STEP_MARK, {"step_num": step})
    if cost:
        builder.plane("/stepscope:capture", stats=cost)
    return builder.build()


@pytest.fixture(scope="session")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """A server on a logdir with the sessions `drawn`, `two-hosts`, `hostile`, and the corpus where there is one."""
    logdir = tmp_path_factory.mktemp("pages")
    store_profile(logdir, "drawn", draw(DRAWN))
    store_profile(logdir, "two-hosts", draw(DRAWN, host="one"), draw(DRAWN.replace("K1-", "K1 "), host="two"))
    store_profile(logdir, "hostile", hostile_trace())
    corpus = shared_folder() / "corpus"
    for session in sorted(corpus.iterdir()) if corpus.is_dir() else ():
        if session.is_dir():
            (logdir / session.name).symlink_to(session)
    with running(logdir) as server:
        yield server


@contextmanager
def running(logdir: Path) -> Iterator[PageServer]:
    """A server on a logdir, for as long as the context lasts."""
    with _serving(Site(SiteOptions([Root(str(logdir))], host_names=own_names("127.0.0.1"))), logdir) as server:
        yield server


@contextmanager
def running_team(logdir: Path, tokens: Mapping[Rights, str]) -> Iterator[PageServer]:
    """The same for a team, with a token of each role; what people say lies beside the logdir."""
    options = SiteOptions([Root(str(logdir))], host_names=own_names("127.0.0.1"), is_shared=True)
    known = tuple(make_token(text, role, role.name.title()) for role, text in tokens.items())
    site = Site(options, words=NoteStore(Path(logdir).parent / "words.db"))
    with _serving(site, logdir, Gate(GateOptions(known, Proxies()))) as server:
        yield server


@contextmanager
def _serving(site: Site, logdir: Path, gate: Gate | None = None) -> Iterator[PageServer]:
    bound = serving.bind_socket("127.0.0.1", 0)
    address = serving.page_url(bound)
    server = serving.PageServer(site, bound, gate)
    thread = threading.Thread(target=server.run, name="page server", daemon=True)
    thread.start()
    try:
        yield PageServer(address, logdir, site)
    finally:
        server.stop()
        thread.join(PATIENCE_MS / 1e3)
        assert not thread.is_alive()


# The page shows what its address says, and nothing of it is still being fetched or drawn.  An address that was just
# entered is there before the page has read it, and what the page showed before is there a moment longer.
_SETTLED = """() => {
    const placeOf = text => {
        const [tool, query] = text.replace(/^#[/]?/, '').split('?');
        const params = new URLSearchParams(query);
        params.sort();
        return `${tool || 'summary'}?${params}`;
    };
    const main = document.querySelector('main');
    return main !== null && placeOf(main.dataset.route) === placeOf(location.hash)
        && main.querySelector('.card, .timeline, .state.empty, .state.failed') !== null
        && main.querySelector('.spinner, .chart[data-drawn=false]') === null;
}"""


def settle(page: Any, seconds: float = 180) -> None:
    """Waits until all of the page that the address names is there, or the page says why it is not.

    The first page of a fresh checkout waits for its kernels to be compiled, on a busy machine for minutes.
    """
    page.wait_for_function(_SETTLED, timeout=seconds * 1e3)


def open_all(page: Any) -> None:
    """Opens what the page shows on demand only, and waits until it is there."""
    closed = page.locator("details.more-card:not([open]) > summary")
    while closed.count():
        closed.first.click()
        settle(page)


def objections(page: Any, only: str = "") -> list[str]:
    """What axe finds on the page as it is, by all of its rules or by one."""
    return page.evaluate(  # type: ignore[no-any-return]
        """async only => {
            const rules = { 'label-content-name-mismatch': { enabled: true } };  // else it is left out as experimental
            const { violations } = await axe.run(document,
                { ...(only ? { runOnly: [only] } : { rules }), resultTypes: ['violations'] });
            // The boxes of a graph show names cut to their width, and are read out whole.
            const isCut = (each, node) =>
                each.id === 'label-content-name-mismatch' && /^<g |graph-node/.test(node.html);
            return violations.flatMap(each => each.nodes.filter(node => !isCut(each, node))
                .map(node => `${each.id}: ${node.html.slice(0, 200)}`));
        }""",
        only,
    )


def objections_in_both_themes(page: Any, axe: str) -> list[str]:
    """What axe finds on the page in the light, and in the dark, where colours alone are others."""
    page.evaluate(axe)
    found = objections(page)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    settle(page)
    found += [f"in the dark: {each}" for each in objections(page, "color-contrast")]
    page.emulate_media(color_scheme="light")
    return found


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core."""
    package = pytest.importorskip("axe_playwright_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text("utf-8")


def await_address(page: Any, *parts: str, without: str = "") -> None:
    """Waits until the page's address begins with the first part, holds the others, and lacks `without`."""
    page.wait_for_function(
        """([first, others, without]) => location.hash.startsWith(first)
            && others.every(each => location.hash.includes(each)) && !(without && location.hash.includes(without))""",
        arg=[parts[0] if parts else "", list(parts[1:]), without],
    )


def until(page: Any, holds: Callable[[], bool]) -> None:
    """Waits until something holds that the page itself cannot tell; the browser goes on meanwhile."""
    deadline = time.monotonic() + PATIENCE_MS / 1e3
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        page.wait_for_timeout(50)


# The entry point is what an installed Stepscope has; from a checkout that is not installed it is given by hand.  The
# other plugins of this machine stay out unless they are named: importing them takes longer than the test.
_TENSORBOARD = """
import importlib.metadata
import sys
from tensorboard import default, program
from stepscope.web.tensorboard import StepscopePlugin

others = sys.argv.pop(1).split()
points = importlib.metadata.entry_points(group="tensorboard_plugins")
plugins = [StepscopePlugin, *(point.load() for point in points if point.name in others)]
board = program.TensorBoard(plugins=[*default.get_static_plugins(), *plugins])
board.configure(argv=["tensorboard", *sys.argv[1:]])
print(board.launch(), flush=True)
sys.stdin.read()
"""


@contextmanager
def running_tensorboard(logdir: Path, *options: str, others: str = "") -> Iterator[str]:
    """The address of a real TensorBoard on a logdir, with other plugins by name, for as long as the context lasts."""
    place = ["--logdir", str(logdir), "--port", "0", "--host", "127.0.0.1"]
    command = [sys.executable, "-c", _TENSORBOARD, others, *place, *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as board:  # type: ignore[call-overload]
        address = board.stdout.readline().strip()
        assert address.startswith("http://"), board.communicate()[1]
        try:
            yield address
        finally:
            board.communicate("")


# -- the browser -------------------------------------------------------------------------------------------------------


def chromium() -> str | None:
    """The path of a Chromium, or None; `STEPSCOPE_CHROMIUM` names one that is not on the PATH."""
    named = os.environ.get("STEPSCOPE_CHROMIUM")
    return named or next((path for name in CHROMIUMS if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium.  Skips where there is none, unless `CI` says that there has to be one."""
    path = chromium()
    if path is None:
        reason = f"needs a browser: none of {', '.join(CHROMIUMS)} is on the PATH, and STEPSCOPE_CHROMIUM names none"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    # Of each module its own: while Playwright runs, no other test in this process could start an event loop.
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_OPTIONS))
        yield started
        started.close()


@dataclass
class Watch:
    """Collects what must not happen in a page.

    Attributes:
        origins: what may be asked.
        problems: console errors, exceptions, and requests to anywhere else.
    """

    origins: tuple[str, ...]
    problems: list[str] = field(default_factory=list)

    def over(self, context: Any) -> None:
        """Watches all pages of a browser context; `CHROMIUM_OPTIONS` let nothing out."""
        context.on("request", self._see)
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.problems.append(f"exception: {error.error}"))

    def _see(self, request: Any) -> None:
        if not request.url.startswith(self.origins):
            self.problems.append(f"a request left the server: {request.url}")

    def _hear(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text} ({message.location.get('url', '')})")


@pytest.fixture
def page_problems() -> list[str]:
    """What went wrong in the page so far; a test that expects it clears the list."""
    return []


@pytest.fixture
def page(browser: Any, page_server: PageServer, page_problems: list[str]) -> Iterator[Any]:
    """A page of 1280 x 800 in a context of its own.  Fails the test on anything that `Watch` collects."""
    with watched_page(browser, page_server.address, page_problems) as opened:
        yield opened


@contextmanager
def watched_page(browser: Any, address: str, problems: list[str]) -> Iterator[Any]:
    """A page that may ask nobody but the server at an address; at its end there must be no problems."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    Watch((address,), problems).over(context)
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield context.new_page()
    finally:
        context.close()
    assert problems == []
