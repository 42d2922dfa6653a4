"""One line of JSON per request on stderr, for collectors of logs.

It has no query, no header and no cookie, so no token.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from stepscope.web.auth.roles import visitor_of

if TYPE_CHECKING:
    from werkzeug import Request

LONGEST_PATH = 300


def write_request(request: Request, status: int, size: int, began: float) -> None:
    """Writes a line about a request that was answered.

    Args:
        request: what was asked.
        status: the HTTP status of the answer.
        size: bytes of its body.
        began: when the request came, by `time.monotonic`.
    """
    visitor = visitor_of(request)
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "client": visitor.address or request.remote_addr,
        "person": visitor.name,
        "method": request.method[:10],
        "path": f"{request.script_root}{request.path}"[:LONGEST_PATH],
        "status": status,
        "bytes": size,
        "ms": round((time.monotonic() - began) * 1e3, 1),
    }
    # In one write: threads of the server share the stream.
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()
