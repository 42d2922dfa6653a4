"""Measures how smooth the timeline is: `python -m bench.frames ADDRESS`, with the address of a `stepscope open`.

A browser (Debian's Chromium, headless, through Playwright) zooms and drags as a person does.  Two things are counted:
the time from one frame to the next, and the processor time that the page's main thread spends on one task.  The second
does not depend on other load; a task above 16.7 ms costs a frame.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

BROWSER = "/usr/bin/chromium"
FRAME_MS = 1000 / 60
_TASKS = ("RunTask", "ThreadControllerImpl::RunTask")
_WATCH = """() => {
    window.frames_ = [];
    let last = 0;
    const tick = now => {
        if (last) window.frames_.push(now - last);
        last = now;
        if (window.frames_) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
}"""
_END = "() => { const found = window.frames_; window.frames_ = null; return found; }"


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="what `stepscope open` printed, such as http://127.0.0.1:6010/")
    parser.add_argument("--width", type=int, default=1280, help="of the window in pixels")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": options.width, "height": 900})
        page.goto(f"{options.address}#/timeline")
        page.wait_for_selector("canvas", timeout=600_000)
        time.sleep(3)  # the first picture is complete
        print(f"load {os.getloadavg()[0]:.1f}; ms\n")
        print("| move | frames | median | p95 | longest task | tasks over a frame |")
        print("| --- | --: | --: | --: | --: | --: |")
        for name, move in _list_moves(page):
            print(_table_row(name, *_measure_move(browser, page, move)), flush=True)
        browser.close()


def _list_moves(page: Page) -> Sequence[tuple[str, Callable[[], None]]]:
    boxes = [box for canvas in page.query_selector_all("canvas") if (box := canvas.bounding_box())]
    box = max(boxes, key=lambda each: each["width"] * each["height"])
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"]
    page.mouse.move(x, y)

    def zoom(times: int, turn: int) -> Callable[[], None]:
        def go() -> None:
            for _ in range(times):
                page.mouse.wheel(0, turn)
                time.sleep(0.03)

        return go

    def drag(length: float) -> Callable[[], None]:
        def go() -> None:
            page.mouse.down()
            for share in range(60):
                page.mouse.move(x + length * share / 60, y)
                time.sleep(0.016)
            page.mouse.up()
            page.mouse.move(x, y)

        return go

    def press(key: str) -> Callable[[], None]:
        def go() -> None:
            page.keyboard.down(key)
            time.sleep(2)
            page.keyboard.up(key)

        return go

    return (
        *(step for _ in range(3) for step in (("zoom in", zoom(15, -120)), ("drag", drag(-400)))),
        ("zoom out", zoom(50, 120)),
        *((f"key {key.upper()}", press(key)) for key in "wdas"),
    )


def _measure_move(browser: Browser, page: Page, move: Callable[[], None]) -> tuple[list[float], list[float]]:
    """Times between frames, and processor times of the main thread's tasks."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        page.evaluate(_WATCH)
        browser.start_tracing(page=page, path=trace, categories=["devtools.timeline", "toplevel"])
        move()
        time.sleep(0.3)
        browser.stop_tracing()
        frames: list[float] = page.evaluate(_END)
        return frames, _main_thread_tasks(json.loads(trace.read_bytes())["traceEvents"])


def _main_thread_tasks(events: Sequence[dict[str, Any]]) -> list[float]:
    """The tasks of the busiest main thread: a browser has one for each of its pages."""
    found: dict[tuple[int, int], list[float]] = {
        (event["pid"], event["tid"]): []
        for event in events
        if event.get("name") == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    for event in events:
        tasks = found.get((event["pid"], event["tid"]))
        if tasks is not None and event["name"] in _TASKS:
            tasks.append(event.get("tdur", 0) / 1e3)
    return max(found.values(), key=sum)


def _table_row(name: str, frames: list[float], tasks: list[float]) -> str:
    median, late = statistics.median(frames), statistics.quantiles(frames, n=20)[-1]
    over = sum(task > FRAME_MS for task in tasks)
    return f"| {name} | {len(frames)} | {median:.1f} | {late:.1f} | {max(tasks):.1f} | {over} |"


if __name__ == "__main__":
    main()
