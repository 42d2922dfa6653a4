"""Takes pictures of every page of the browser's page, to be looked at: `python scripts/pictures.py LOGDIR`.

For each page a picture in three sizes (a phone, a laptop, a wide screen) and two themes, below `--output`.  Prints what
a program can see on its own: pages that are wider than their window, and controls on top of each other.
Needs Chromium and Playwright, both of which the browser tests need too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "helpers")]

SIZES = {"phone": (390, 844), "laptop": (1440, 900), "wide": (2560, 1300)}
THEMES = ("light", "dark")

# What is wider than the window, and controls of the frame or a page's head that lie on each other.
_FAULTS = """() => {
    const faults = [];
    const wide = document.documentElement.scrollWidth - window.innerWidth;
    if (wide > 0) faults.push(`the page is ${wide} px wider than the window`);
    const main = document.querySelector('main');
    if (main && main.scrollWidth - main.clientWidth > 0)
        faults.push(`the main part scrolls sideways by ${main.scrollWidth - main.clientWidth} px`);
    const seen = [...document.querySelectorAll('.topbar button, .rail a, .page-head *, .tl-toolbar > *')]
        .filter(each => each.getClientRects().length && !each.closest('[popover], dialog'))
        .map(each => [each, each.getBoundingClientRect()]);
    for (const [one, a] of seen) for (const [other, b] of seen) {
        if (one === other || one.contains(other) || other.contains(one)) continue;
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 2 && one.compareDocumentPosition(other) & 4)
            faults.push(`${one.textContent.trim().slice(0, 30)} lies on ${other.textContent.trim().slice(0, 30)}`);
    }
    return faults;
}"""


def helper() -> Any:
    """What the browser tests share."""
    return importlib.import_module("browsing")


def main() -> None:
    """Takes the pictures that the command line asks for."""
    options = read_options()
    with serving(options.logdir) as address, opened_browser() as browser:
        for name, session in chosen_sessions(address, options.session):
            take_session(browser, address, session, Path(options.output) / name, options)


def read_options() -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logdir")
    parser.add_argument("--output", default="pictures", help="the folder for the pictures")
    parser.add_argument("--session", help="only sessions whose name contains this")
    parser.add_argument("--pages", help="only these pages, with commas between them")
    parser.add_argument("--sizes", default=",".join(SIZES), help="of " + ", ".join(SIZES))
    parser.add_argument("--themes", default=",".join(THEMES))
    parser.add_argument("--whole", action="store_true", help="the whole page, not only what a window shows of it")
    return parser.parse_args()


@contextmanager
def serving(logdir: str) -> Iterator[str]:
    """The address of a server on a logdir."""
    from stepscope.web import serving as server_of
    from stepscope.web.catalogue import Root
    from stepscope.web.hosts import own_names
    from stepscope.web.site import Site, SiteOptions

    bound = server_of.bind_socket("127.0.0.1", 0)
    address = server_of.page_url(bound)
    site = Site(SiteOptions([Root(logdir)], host_names=own_names("127.0.0.1")))
    server = server_of.PageServer(site, bound)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.stop()
        thread.join()


@contextmanager
def opened_browser() -> Iterator[Any]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    browsing = helper()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsing.chromium(), args=list(browsing.CHROMIUM_OPTIONS))
        yield browser
        browser.close()


def chosen_sessions(address: str, part: str | None) -> list[tuple[str, str]]:
    """Folder name and id of each session whose name contains a part."""
    with urllib.request.urlopen(address + "api/sessions") as answer:
        sessions = json.loads(answer.read())["sessions"]
    return [(each["run"].replace("/", "_"), each["id"]) for each in sessions if not part or part in each["run"]]


def take_session(browser: Any, address: str, session: str, folder: Path, options: argparse.Namespace) -> None:
    """Takes all pictures of a session, and prints the faults of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for size in options.sizes.split(","):
        for theme in options.themes.split(","):
            width, height = SIZES[size]
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
            context.set_default_timeout(60_000)
            page = context.new_page()
            for name in page_names(page, address, session, options.pages):
                path = folder / f"{name.replace('/', '-')}-{size}-{theme}.png"
                take_page(page, f"{address}#/{name}", session, path, options)
            context.close()


def page_names(page: Any, address: str, session: str, chosen: str | None) -> list[str]:
    """The addresses of the views of all questions that the rail offers for a session."""
    settle = helper().settle
    if chosen:
        return chosen.split(",")
    page.goto(f"{address}#/summary?session={session}")
    settle(page)
    page.locator(".rail a").first.wait_for(state="attached")
    page.wait_for_timeout(1500)  # for the tools whose data is still computed
    found: dict[str, None] = {}
    for question in links_of(page, ".rail a"):
        page.goto(f"{address}#/{question}?session={session}")
        settle(page)
        found |= dict.fromkeys([question, *links_of(page, ".views a")])
    return list(found)


def links_of(page: Any, selector: str) -> list[str]:
    """The addresses of the page's links that a selector finds, without parameters."""
    links = page.eval_on_selector_all(selector, "links => links.map(each => each.getAttribute('href'))")
    return [link.removeprefix("#/").split("?")[0] for link in links]


def take_page(page: Any, url: str, session: str, path: Path, options: argparse.Namespace) -> None:
    """Takes one picture, and prints the faults that can be seen without eyes."""
    page.goto(f"{url}{'&' if '?' in url else '?'}session={session}")
    try:
        helper().settle(page, 60)
    except Exception as error:  # a page that never settles is a fault to be seen like the others
        print(f"{path.name}: {str(error).splitlines()[0]}", flush=True)
    page.wait_for_timeout(350)
    page.screenshot(path=str(path), full_page=options.whole)
    for fault in page.evaluate(_FAULTS)[:8]:
        print(f"{path.name}: {fault}", flush=True)


if __name__ == "__main__":
    main()
