"""The timeline as a widget: the page's own, without a server or a network: the notebook's kernel answers it."""

from __future__ import annotations

import importlib.util
import os
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from stepscope.errors import UsageError
from stepscope.vocabulary.categories import CATEGORY_RULES
from stepscope.web.kernel_site import KernelSite
from stepscope.web.parts import part_scripts

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile


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
        start_ms, end_ms: the window to show first; all steps if None.

    Raises:
        UsageError: anywidget is not installed, or there is no such host.
        NotFoundError, AccessError, InputError: the profile does not exist or cannot be read.
    """
    from stepscope.api import LoadedProfile, load

    require_anywidget()
    loaded = profile if isinstance(profile, LoadedProfile) else load(profile)
    shown = host or loaded.hosts[0]
    window = (start_ms, end_ms) if start_ms is not None and end_ms is not None and end_ms > start_ms else None
    return _widget_class()(KernelSite(loaded, shown), f"Timeline of {shown} in {loaded.run}", window)


def require_anywidget() -> None:
    """Raises UsageError if anywidget is not installed."""
    if importlib.util.find_spec("anywidget") is None:
        raise UsageError("the timeline of a notebook needs anywidget", hint='pip install "stepscope[notebook]"')


def _widget_class() -> Any:
    """The widget's class, made when the library is there."""
    import anywidget
    import traitlets

    class Timeline(anywidget.AnyWidget):  # type: ignore[misc]
        """The timeline of one host: a frame with the page's parts, and its first answers."""

        _esm = files("stepscope.notebook").joinpath("frame.js").read_text("utf-8")
        title = traitlets.Unicode().tag(sync=True)
        page = traitlets.Unicode().tag(sync=True)
        rules = traitlets.List().tag(sync=True)
        params = traitlets.Dict().tag(sync=True)
        kept = traitlets.Dict().tag(sync=True)

        def __init__(self, site: KernelSite, title: str, window_ms: tuple[float, float] | None) -> None:
            params = {} if window_ms is None else {"begin": str(window_ms[0]), "end": str(window_ms[1])}
            kept = site.first_answers(window_ms)
            super().__init__(
                title=title, page=_page(), rules=[rule._asdict() for rule in CATEGORY_RULES], params=params, kept=kept
            )
            self._site = site
            self.on_msg(self._answer)

        def _answer(self, _: Any, message: Any, buffers: Any) -> None:
            """Answers an address that the page asks for; ignores what is not a question."""
            if isinstance(message, dict) and isinstance(message.get("url"), str):
                answer = self._site.answer(message["url"])
                self.send({"id": message.get("id"), "status": answer.status}, [answer.body])

    return Timeline


def _page() -> str:
    head = '<!doctype html><meta charset="utf-8"><title>Timeline</title><style>#app { height: 100vh }</style>'
    return f'{head}<div id="app"></div>{part_scripts("widget")}'
