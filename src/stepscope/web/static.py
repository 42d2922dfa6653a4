"""The front end's files, and the page shown if they were not built."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from werkzeug import Request
from werkzeug.security import safe_join

from stepscope.web.answers import Answer, Refused
from stepscope.web.routes import Route
from stepscope.web.site import Site

FOLDER = Path(__file__).parent / "static"
"""Where the build of `frontend/` puts its output."""

HASHED = "assets/"
"""In this folder the names of files change with their content."""

LONGEST_NAME = 200
"""Characters of an unknown name that an error repeats."""

# The web's types: the tables of some machines differ.
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_TYPES |= {".html": "text/html", ".woff2": "font/woff2", ".json": "application/json", ".wasm": "application/wasm"}

_NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Stepscope</title>
<h1>The page was not built</h1>
<p>This installation of Stepscope has no front end. In a checkout, build it with Node.js 20 or newer:</p>
<pre>cd frontend
npm ci
npm run build</pre>
<p>or reinstall Stepscope with <code>pip install .</code>, which does the same.
The <a href="api/sessions">API</a> and the command line work without it.</p>
</html>
"""


def index(site: Site, request: Request) -> Answer:
    """Answers with the page."""
    path = FOLDER / "index.html"
    if not path.is_file():
        return Answer(_NOT_BUILT.encode(), "text/html", status=503)
    return Answer(path.read_bytes(), "text/html")


def file(site: Site, request: Request, name: str) -> Answer:
    """Answers with a file of the front end.  Names cannot lead outside its folder."""
    if name == "index.html":
        return index(site, request)
    path = safe_join(str(FOLDER), name)
    if path is None or not _is_file(path):
        raise Refused(404, f"there is no file {name[:LONGEST_NAME]!r}", "open the page's root instead")
    found = Path(path)
    kind = _TYPES.get(found.suffix) or mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    return Answer(found.read_bytes(), kind, is_final=name.startswith(HASHED))


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a name that no system can have: too long, or with a NUL
        return False


ROUTES = (Route("/", index), Route("/<path:name>", file))
