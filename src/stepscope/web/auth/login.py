"""The login page: one form, no script, no file of the site."""

from __future__ import annotations

import html
import re

from stepscope.web.answers import Answer

# A path of this site: no other site, no scheme, nothing that a browser would take for one.
_NEXT = re.compile(r"/(?![/\\])[\w./~%?&=#-]{0,4000}", re.ASCII)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stepscope: log in</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 0;
  color-scheme: light dark }}
form {{ width: min(22rem, 90vw); display: grid; gap: .75rem }}
h1 {{ font-size: 1.25rem; margin: 0 }}
input, button {{ font: inherit; padding: .5rem .75rem }}
p {{ margin: 0 }}
.error {{ color: #c62828 }}
</style></head>
<body><form method="post" action="{action}">
<h1>Stepscope</h1>
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus maxlength="500">
<input type="hidden" name="next" value="{next}">
<p class="error" role="alert">{error}</p>
<button>Log in</button>
<p>The token was shown where the server was started.</p>
</form></body></html>
"""

PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


# With "no-referrer" browsers hide where a form comes from, and then it could come from anywhere.
def login_page(prefix: str, wanted: str, error: str = "", status: int = 200) -> Answer:
    """The page.

    Args:
        prefix: the path below which the site lies.
        wanted: where to go afterwards.
        error: why the last attempt failed.
        status: the HTTP status.
    """
    action, goal = html.escape(f"{prefix}/login"), html.escape(safe_next(wanted, prefix))
    text = _PAGE.format(action=action, next=goal, error=html.escape(error))
    return Answer(
        text.encode(), "text/html", status, {"Content-Security-Policy": PAGE_POLICY, "Referrer-Policy": "same-origin"}
    )


def safe_next(wanted: str, prefix: str) -> str:
    """A path of this site: `wanted` if it is one, otherwise the page."""
    is_ours = _NEXT.fullmatch(wanted) is not None and wanted.startswith(f"{prefix}/") and "/../" not in f"{wanted}/"
    return wanted if is_ours else f"{prefix}/"
