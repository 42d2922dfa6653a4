"""The whole page as TensorBoard's Profile tab.

TensorBoard imports this in each of its runs, even if nobody looks at profiles, so costly imports wait for the first
request.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tensorboard.plugins import base_plugin
from werkzeug import Response

from stepscope.errors import InputError
from stepscope.formats.session import find_sessions

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PLUGIN_NAME = "stepscope"
TAB_NAME = "Profile"
TAB_NAME_BESIDE_ANOTHER = "Profile (Stepscope)"
"""The tab's name if XProf's plugin, whose tab is Profile too, is also installed."""

_PLACEHOLDER = "tensorboard.plugins.profile_redirect.profile_redirect_plugin"

ENTRY = "/index.js"
# Names index.html, since TensorBoard removes the slash at the end of addresses.
_ENTRY_SCRIPT = b'export function render() { document.location.replace(new URL("./index.html", import.meta.url)); }\n'

PATIENCE_SECONDS = 0.5
"""How long TensorBoard's list of tabs waits for the first look at the logdir."""

LEAST_SECONDS_BETWEEN_LOOKS = 2.0


def _replace_placeholder() -> None:
    """Takes out TensorBoard's own entry "Profile", which asks to install another plugin.

    TensorBoard imports this module before it loads its own plugins; without this, a logdir without profiles has two
    entries of that name, and the first leads nowhere.
    """
    with suppress(Exception):  # a TensorBoard without that entry is as good
        loader: Any = importlib.import_module(_PLACEHOLDER).ProfileRedirectPluginLoader
        loader.load = lambda self, context: None


_replace_placeholder()


class StepscopePlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """The plugin: its routes, its tab, and whether it is active."""

    plugin_name = PLUGIN_NAME

    def __init__(self, context: Any) -> None:
        self._roots = roots_of(context.logdir, getattr(context.flags, "logdir_spec", None))
        self._watch = ProfileWatch([path for path, _ in self._roots])
        self._host = getattr(context.flags, "host", None) or "localhost"
        self._is_everywhere = bool(getattr(context.flags, "bind_all", False))
        self._app: WSGIApplication | None = None
        self._lock = threading.Lock()

    def get_plugin_apps(self) -> dict[str, WSGIApplication]:
        """The page at the plugin's root, and the script that leads TensorBoard there."""
        return {ENTRY: _entry, "/*": self._page}

    def is_active(self) -> bool:
        """Whether there is a profile, including one captured meanwhile."""
        return self._watch.has_seen_one()

    def frontend_metadata(self) -> Any:
        """The tab's name and script."""
        name = TAB_NAME_BESIDE_ANOTHER if has_other_profile_plugin() else TAB_NAME
        return base_plugin.FrontendMetadata(es_module_path=ENTRY, tab_name=name, disable_reload=True)

    def _page(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return self._load_app()(_mounted(environ), start_response)

    def _load_app(self) -> WSGIApplication:
        with self._lock:
            if self._app is None:
                from stepscope.web.app import App
                from stepscope.web.catalogue import Root
                from stepscope.web.hosts import ALLOWED_VARIABLE, names_from_environment
                from stepscope.web.site import Site, SiteOptions

                roots = [Root(path, name) for path, name in self._roots]
                names = names_from_environment("0.0.0.0" if self._is_everywhere else self._host)
                hint = f"set {ALLOWED_VARIABLE} to the name, before TensorBoard starts"
                site = Site(SiteOptions(roots, embedded="tensorboard", host_names=names, host_hint=hint))
                site.warm_up()
                self._app = App(site)
            return self._app


def _entry(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    return Response(_ENTRY_SCRIPT, 200, headers, mimetype="text/javascript")(environ, start_response)


def _mounted(environ: WSGIEnvironment) -> WSGIEnvironment:
    """The request as the app sees it: the path up to the plugin's root moves to `SCRIPT_NAME`."""
    before, mount, rest = environ["PATH_INFO"].partition(f"/plugin/{PLUGIN_NAME}/")
    return {**environ, "SCRIPT_NAME": f"{environ.get('SCRIPT_NAME', '')}{before}{mount[:-1]}", "PATH_INFO": f"/{rest}"}


# -- what TensorBoard was started with ---------------------------------------------------------------------------------

_URL = re.compile(r"[a-z][a-z0-9+.-]*://")


def roots_of(logdir: str | None, spec: str | None) -> list[tuple[str, str]]:
    """Paths and their names from `--logdir PATH` or `--logdir_spec NAME:PATH,PATH,...`; names may be empty."""
    if logdir:
        return [(logdir, "")]
    found = []
    for part in filter(None, (spec or "").split(",")):
        name, colon, path = part.partition(":")
        is_named = bool(colon) and not _URL.match(part) and "/" not in name and not PurePath(part).drive
        found.append((path, name) if is_named else (part, ""))
    return found


def has_other_profile_plugin(entry_points: Callable[..., Sequence[Any]] = importlib.metadata.entry_points) -> bool:
    """Whether another installed plugin has a tab named Profile."""
    return any(point.name == "profile" for point in entry_points(group="tensorboard_plugins"))


# -- is there a profile? -----------------------------------------------------------------------------------------------


class ProfileWatch:
    """Looks for a first profile in the background, at limited intervals: TensorBoard asks whenever it reloads."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._has_seen_one = threading.Event()
        self._looking: threading.Thread | None = None
        self._next_look = 0.0
        self._lock = threading.Lock()

    def has_seen_one(self) -> bool:
        """Whether a profile was found.  Waits at most PATIENCE_SECONDS for an answer."""
        with self._lock:
            is_due = time.monotonic() >= self._next_look and (self._looking is None or not self._looking.is_alive())
            if is_due and not self._has_seen_one.is_set():
                self._looking = threading.Thread(target=self._look, name="stepscope looks for profiles", daemon=True)
                self._looking.start()
            looking = self._looking
        if looking is not None:
            looking.join(PATIENCE_SECONDS)
        return self._has_seen_one.is_set()

    def _look(self) -> None:
        began = time.monotonic()
        if any(map(_holds_profile, self._paths)):
            self._has_seen_one.set()
        spent = time.monotonic() - began
        self._next_look = began + max(LEAST_SECONDS_BETWEEN_LOOKS, 10 * spent)


def _holds_profile(path: str) -> bool:
    try:
        return bool(find_sessions(path))
    except InputError:
        return False
