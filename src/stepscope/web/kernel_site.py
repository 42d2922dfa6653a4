"""The timeline's routes without a server: the kernel of a notebook answers the page's questions itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from werkzeug import Request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.test import EnvironBuilder

from stepscope.errors import StepscopeError
from stepscope.web.answers import Answer, Refused, error_answer, refusal
from stepscope.web.late_routes import TIMELINE, TIMELINE_ROUTES
from stepscope.web.timeline import NAMES_A_PAGE, unpack

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile
    from stepscope.model import HostTrace

_PS_PER_MS = 1e9
_KEPT_WIDTH = 1024  # cells of a window that a saved notebook keeps
_ROWS_AT_ONCE = 120
_MOST_ROWS = 240
_GROUPS_AT_ONCE = 8
_COUNTERS_AT_ONCE = 3
_MOST_COUNTERS = 12

_ROUTES = Map([Rule(route.path, endpoint=route) for route in TIMELINE_ROUTES]).bind("")


class KernelSite:
    """The site of one host of one profile: the first argument of the handlers."""

    def __init__(self, profile: LoadedProfile, host: str) -> None:
        self._trace = profile.trace(host)

    def opened(self, session: str) -> KernelSite:
        """Itself: there is one session, whatever it is called."""
        return self

    def trace(self, host: str | None = None) -> HostTrace:
        """The trace, decoded once."""
        return self._trace

    def working(self) -> AbstractContextManager[None]:
        """A kernel answers one question at a time anyway."""
        return nullcontext()

    def answer(self, url: str) -> Answer:
        """The answer to an address below `timeline/`, an error among them."""
        path, _, query = url.partition("?")
        request = Request(EnvironBuilder(TIMELINE.replace("<session>", "kernel"), query_string=query).get_environ())
        try:
            route, values = _ROUTES.match(f"{request.path}/{path}")
            found: Answer = route.load()(self, request, **values)
            return found
        except HTTPException as error:
            return error_answer(404, f"there is nothing at {url!r}: {error.name}")
        except (Refused, StepscopeError) as error:
            return refusal(error)

    def first_answers(self, window_ms: tuple[float, float] | None) -> dict[str, bytes]:
        """What the page asks before the user does anything, by its address: tracks, steps, names and windows.

        Args:
            window_ms: what is shown first; all steps if None.
        """
        kept = dict([self._get("tracks"), self._get("steps")])
        tracks = json.loads(next(iter(kept.values())))
        first = tracks["activity_ps"] if window_ms is None else [int(ms * _PS_PER_MS) for ms in window_ms]
        windows = [self._window(first, some) for some in _batches(tracks["groups"])]
        windows += [self._window(tracks["span_ps"], some) for some in _loads(tracks["groups"])]
        pages = {page for _, body in windows for page in _name_pages(body)}
        return kept | dict(windows) | dict(self._get(f"names/{page}") for page in sorted(pages))

    def _window(self, span_ps: Sequence[int], tracks: Sequence[str]) -> tuple[str, bytes]:
        begin, end = span_ps
        return self._get("window", begin=begin, end=end, width=_KEPT_WIDTH, tracks=",".join(tracks))

    def _get(self, path: str, **query: Any) -> tuple[str, bytes]:
        url = f"{path}?{urlencode({**query, 'code': 'own'})}"
        return url, self.answer(url).body


def _batches(groups: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The rows of tracks, the loads, ribbons and counters that are kept, as many at once as an answer has room for."""
    tracks = [track for group in _walk(groups) for track in group["tracks"] if not track["is_profiler"]]
    rows = [f"{track['id']}.{row}" for track in tracks if track["line"] >= 0 for row in range(track["rows"])]
    yield from _cut(rows[:_MOST_ROWS], _ROWS_AT_ONCE)
    yield from _loads(groups)
    yield from _cut([group["ribbon"] for group in _walk(groups) if group["ribbon"]], _GROUPS_AT_ONCE)
    counters = [track["id"] for track in tracks if track["line"] < 0]
    yield from _cut(counters[:_MOST_COUNTERS], _COUNTERS_AT_ONCE)


def _loads(groups: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    return _cut([group["id"] for group in _walk(groups) if group["kind"] != "counters"], _GROUPS_AT_ONCE)


def _walk(groups: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for group in groups:
        yield group
        yield from _walk(group["groups"])


def _cut(names: Sequence[str], size: int) -> Iterator[list[str]]:
    return (list(names[at : at + size]) for at in range(0, len(names), size))


def _name_pages(window: bytes) -> set[int]:
    """The pages of the names that a window's slices have."""
    _, columns = unpack(window)
    return set((columns["type"] // NAMES_A_PAGE).tolist()) if "type" in columns else set()
