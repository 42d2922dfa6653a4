"""Measures what a user of the page waits for: the first content, the timeline, and each move in it.

Every tool runs its own server and gets the requests of its page over HTTP.
"""

from __future__ import annotations

import json
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from bench.process import Limits, Running, Sample
from bench.tools import CACHE_OFF, SETTLE_S, store_run

WIDTH = 1200  # pixels of a window
ZOOMS = (1, 4, 16, 64, 256)
PLACES = (0.1, 0.35, 0.6, 0.85)
TILE_CELLS = 512  # of our page

_SPAN = "import stepscope, sys; print(*stepscope.load(sys.argv[1]).trace().span_ps())"


class Answers:
    """Sends requests to a server and counts the bytes of the answers."""

    def __init__(self, address: str, limits: Limits) -> None:
        self.address = address
        self.limits = limits
        self.wire_bytes = 0
        # The server is on this machine; any proxy of the environment is ignored.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str) -> bytes:
        """An answer, decompressed."""
        request = urllib.request.Request(self.address + path, headers={"Accept-Encoding": "gzip"})
        with self._opener.open(request, timeout=self.limits.seconds) as response:
            data: bytes = response.read()
            self.wire_bytes += len(data)
            return zlib.decompress(data, 31) if response.headers.get("Content-Encoding") == "gzip" else data

    def json(self, path: str) -> Any:
        """An answer in JSON."""
        return json.loads(self.get(path))


class StepscopePage:
    """`stepscope open`."""

    name = "Stepscope"
    alive = "/api/config"

    def command(self, logdir: Path, port: int) -> list[str]:
        """The command that starts the server."""
        start = "from stepscope.cli.main import main; main()"
        return [sys.executable, "-c", start, "open", str(logdir), "--no-browser", "--port", str(port)]

    def first_content(self, ask: Answers, run: str, host: str) -> None:
        """Sends the requests of the start page until it shows the verdict."""
        session = self._session(ask, run)
        while ask.json(f"/api/sessions/{session}?wait=350")["state"] == "loading":
            pass
        ask.json(f"/api/sessions/{session}/tools/overview")

    def timeline(self, ask: Answers, run: str, host: str) -> None:
        """Sends the requests of the timeline before its first window."""
        self._base = f"/api/sessions/{self._session(ask, run)}/timeline"
        self._tracks = list(_list_tracks(ask.json(f"{self._base}/tracks")["groups"]))

    def window(self, ask: Answers, run: str, host: str, begin_ps: int, end_ps: int) -> None:
        """Requests all tracks in a window as the page does: the tiles that cover it, at the finest level with cells of
        a pixel or more (`requestsFor` of tiles.ts)."""
        size = TILE_CELLS << (-(-(end_ps - begin_ps) // WIDTH) - 1).bit_length()
        first, stop = begin_ps // size, -(-end_ps // size)
        tile = f"begin={first * size}&end={(first + 1) * size}&width={TILE_CELLS}&tiles={stop - first}"
        ask.get(f"{self._base}/window?{tile}&tracks={','.join(self._tracks)}")

    @staticmethod
    def _session(ask: Answers, run: str) -> str:
        for _ in range(200):  # on a busy machine the server looks for new sessions less often
            for one in ask.json("/api/sessions")["sessions"]:
                if one["run"] == run:
                    return str(one["id"])
            time.sleep(0.1)
        raise ValueError(f"it does not list {run}")


def _list_tracks(groups: Sequence[Any]) -> Iterator[str]:
    for group in groups:
        yield from (track["id"] for track in group["tracks"] if track["id"].startswith("t"))
        yield from _list_tracks(group["groups"])


class XprofPage:
    """XProf's own server."""

    name = "XProf"
    alive = "/data/plugin/profile/runs"

    def command(self, logdir: Path, port: int) -> list[str]:
        """The command that starts the server."""
        return [str(Path(sys.executable).with_name("xprof")), "--logdir", str(logdir), "--port", str(port)]

    def first_content(self, ask: Answers, run: str, host: str) -> None:
        """Sends the requests of its page for the overview."""
        ask.get(self.alive)
        ask.get(f"/data/plugin/profile/run_tools?run={run}")
        ask.get(f"/data/plugin/profile/hosts?run={run}&tag=overview_page")
        _require_content(ask.get(f"/data/plugin/profile/data?run={run}&tag=overview_page&host={host}"))

    def timeline(self, ask: Answers, run: str, host: str) -> None:
        """Requests the whole trace."""
        _require_content(ask.get(self._view(run, host)))

    def window(self, ask: Answers, run: str, host: str, begin_ps: int, end_ps: int) -> None:
        """Requests a window, at the resolution of its page."""
        ask.get(self._view(run, host) + f"&start_time_ms={begin_ps / 1e9:.6f}&end_time_ms={end_ps / 1e9:.6f}")

    @staticmethod
    def _view(run: str, host: str) -> str:
        return f"/data/plugin/profile/data?run={run}&tag=trace_viewer@&host={host}&resolution={WIDTH}"


class XprofRsPage(XprofPage):
    """xprof-rs, which answers like XProf."""

    name = "xprof-rs"
    alive = "/runs"

    def __init__(self, binary: str) -> None:
        self._binary = binary

    def command(self, logdir: Path, port: int) -> list[str]:
        """The command that starts the server."""
        return [self._binary, "--logdir", str(logdir), "--host", "127.0.0.1", "--port", str(port)]


Page = StepscopePage | XprofPage


def _require_content(answer: bytes) -> None:
    if len(answer) < 100:
        raise ValueError(f"an answer of {len(answer)} bytes")


def time_page(page: Page, path: Path, small: Path, limits: Limits, at: str) -> Sample:
    """Opens a profile in a server that has shown `small`.

    Args:
        page: the server.
        path, small: the profiles; each is copied to a logdir of its own.
        limits: of the server.
        at: `page` for the first content; `timeline` for its first picture in a server that has shown the start page,
            and then for windows of it.

    Returns:
        The sample; its calls are the first content, or the opening of the timeline and each window.
    """
    find_span_ps(path)  # the first call takes a while
    with tempfile.TemporaryDirectory(prefix="bench-", dir=path.parents[3]) as logdir:
        store_run(small, Path(logdir), "small")
        port = _free_port()
        running = Running(page.command(Path(logdir), port), limits, CACHE_OFF)
        ask = Answers(f"http://127.0.0.1:{port}", limits)
        failure, calls = None, []
        try:
            _wait_until_alive(ask, page.alive)
            page.first_content(ask, "small", _host(small))
            store_run(path, Path(logdir), "large")
            time.sleep(SETTLE_S)
            calls = list(_time_calls(page, ask, path, at))
        except (OSError, ValueError) as error:
            failure = f"no answer from its server: {error}"
        running.send(signal.SIGTERM)
        sample, _ = running.finish()
    was_requested = failure is None or running.process.returncode == -signal.SIGTERM
    sizes = {"window_kb": round(ask.wire_bytes / 1e3 / (len(calls) - 1), 1)} if len(calls) > 1 else {}
    failure = failure if was_requested else sample.failure or failure
    return replace(sample, failure=failure, calls_s=tuple(calls), answer=sizes)


def _time_calls(page: Page, ask: Answers, path: Path, at: str) -> Iterator[float]:
    begin = time.perf_counter()
    page.first_content(ask, "large", _host(path))
    if at == "page":
        yield time.perf_counter() - begin
        return
    begin = time.perf_counter()
    page.timeline(ask, "large", _host(path))
    page.window(ask, "large", _host(path), *find_span_ps(path))
    yield time.perf_counter() - begin
    ask.wire_bytes = 0
    first, last = find_span_ps(path)
    for zoom in ZOOMS[1:]:
        length = (last - first) // zoom
        for place in PLACES:
            middle = first + int(place * (last - first))
            begin = time.perf_counter()
            page.window(ask, "large", _host(path), middle - length // 2, middle + length // 2)
            yield time.perf_counter() - begin


def median_window_seconds(sample: Sample) -> float:
    """The median time of all windows."""
    return statistics.median(sample.calls_s[1:])


@cache
def find_span_ps(path: Path) -> tuple[int, int]:
    """The first start and last end of a profile; read in another process, so that its memory is freed."""
    done = subprocess.run([sys.executable, "-c", _SPAN, str(path)], capture_output=True, text=True, check=True)
    first, last = map(int, done.stdout.split())
    return first, last


def _host(path: Path) -> str:
    return path.name.removesuffix(".xplane.pb")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_alive(ask: Answers, path: str) -> None:
    for _ in range(600):
        try:
            ask.get(path)
            return
        except OSError:
            time.sleep(0.1)
    raise OSError(f"nothing answers at {ask.address}")
