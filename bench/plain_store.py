"""A store that costs as little as it can: `python -m bench.plain_store FILE PORT`.

It answers as S3 does to what reads one object, whole or in ranges, and lets the system send the bytes from the file's
cache, so that who reads is what limits the speed.  It checks no signature.
"""

from __future__ import annotations

import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served = Path()

    def log_message(self, *words: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._head(200, self.served.stat().st_size, "")

    def do_GET(self) -> None:
        size = self.served.stat().st_size
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        first = int(asked[1]) if asked else 0
        last = min(int(asked[2]), size - 1) if asked and asked[2] else size - 1
        self._head(206 if asked else 200, last + 1 - first, f"bytes {first}-{last}/{size}" if asked else "")
        self.wfile.flush()
        with self.served.open("rb") as file:
            while first <= last:
                first += os.sendfile(self.connection.fileno(), file.fileno(), first, last + 1 - first)

    def _head(self, status: int, length: int, part: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 12:00:00 GMT")
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()


def main() -> None:
    """Serves one file under every name."""
    _Handler.served = Path(sys.argv[1])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), _Handler).serve_forever()


if __name__ == "__main__":
    main()
