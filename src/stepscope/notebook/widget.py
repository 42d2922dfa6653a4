"""The timeline as a widget: no server and no network, since windows go over the notebook's own connection."""

from __future__ import annotations

import importlib.util
import os
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from stepscope.errors import UsageError
from stepscope.notebook.window import describe_trace, window_slices
from stepscope.pictures.timeline import usual_window

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile
    from stepscope.model import HostTrace

_FIRST_WIDTH = 1200  # pixels of the window that a saved notebook keeps


def timeline(
    profile: LoadedProfile | str | os.PathLike[str],
    *,
    host: str | None = None,
    start_ms: float | None = None,
    end_ms: float | None = None,
) -> Any:
    """The timeline of a profile as a widget for notebooks.

    Args:
        profile: a loaded profile, or a path as for `load`.
        host: the host to show; the first one if None.
        start_ms, end_ms: the window to show first; two steps if None.

    Raises:
        UsageError: anywidget is not installed, or there is no such host.
        NotFoundError, AccessError, InputError: the profile does not exist or cannot be read.
    """
    from stepscope.api import LoadedProfile, load

    require_anywidget()
    loaded = profile if isinstance(profile, LoadedProfile) else load(profile)
    trace = loaded.trace(host or loaded.hosts[0])
    window = usual_window(trace)
    if start_ms is not None and end_ms is not None and end_ms > start_ms:
        window = start_ms, end_ms
    return _widget_class()(trace, window)


def require_anywidget() -> None:
    """Raises UsageError if anywidget is not installed."""
    if importlib.util.find_spec("anywidget") is None:
        raise UsageError("the timeline of a notebook needs anywidget", hint='pip install "stepscope[notebook]"')


def _widget_class() -> Any:
    """The widget's class, made when the library is there."""
    import anywidget
    import traitlets

    class Timeline(anywidget.AnyWidget):  # type: ignore[misc]
        """The timeline of one host."""

        _esm = files("stepscope.notebook").joinpath("timeline.js").read_text("utf-8")
        _css = files("stepscope.notebook").joinpath("timeline.css").read_text("utf-8")
        trace = traitlets.Dict().tag(sync=True)
        slices = traitlets.Dict().tag(sync=True)
        window = traitlets.List().tag(sync=True)

        def __init__(self, source: HostTrace, window: tuple[float, float]) -> None:
            first = window_slices(source, *window, _FIRST_WIDTH)
            super().__init__(trace=describe_trace(source), slices=first, window=list(window))
            self._source = source
            self.on_msg(self._answer)

        def _answer(self, _: Any, message: Any, buffers: Any) -> None:
            """Sends the slices of a window that the page asks for; ignores what is not a question."""
            if isinstance(message, dict) and message.get("kind") == "window":
                self.send({"kind": "window", "id": message.get("id"), "slices": _asked_slices(self._source, message)})

    return Timeline


def _asked_slices(trace: HostTrace, message: dict[str, Any]) -> dict[str, Any]:
    start, end, width = (float(message.get(key) or 0.0) for key in ("start_ms", "end_ms", "width"))
    return window_slices(trace, start, end, int(width))
