"""A server that answers as Google Cloud Storage does, as far as reading goes: its JSON API over HTTP.

It holds objects in memory, and knows listings with prefix, delimiter and pages, metadata, downloads with ranges, and
the errors of missing rights and expired credentials.  The client, gcsfs, is the real one.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit

_LIST = re.compile(r"/storage/v1/b/([^/]+)/o")
_METADATA = re.compile(r"/storage/v1/b/([^/]+)/o/([^/]+)")
_MEDIA = re.compile(r"/download/storage/v1/b/([^/]+)/o/(.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_REASONS = {401: "Unauthorized", 403: "anonymous caller does not have storage.objects.list access", 404: "Not Found"}


class GcsServer(ThreadingHTTPServer):
    """The server.

    Attributes:
        objects: content by bucket and name.
        requests: path and range of each request, in order.
        refusal: the status with which requests are refused; None for none.
        allowed: how many requests are answered before the others are refused.
        page: how many entries a page of a listing has at most.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[tuple[str, str], bytes] = {}
        self.requests: list[str] = []
        self.refusal: int | None = None
        self.allowed = 0
        self.page = 1000
        self._numbers = count()

    @property
    def address(self) -> str:
        """For `endpoint_url`."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def refuses(self) -> bool:
        """Whether this request is refused."""
        return self.refusal is not None and next(self._numbers) >= self.allowed

    def refuse(self, status: int | None, after: int = 0) -> None:
        """Refuses all requests after some; None for none."""
        self.refusal, self.allowed, self._numbers = status, after, count()

    def describe(self, bucket: str, name: str) -> dict[str, str]:
        """The metadata of an object."""
        content = self.objects[bucket, name]
        checksum = base64.b64encode(zlib.crc32(content).to_bytes(4)).decode()
        return {
            "kind": "storage#object", "bucket": bucket, "name": name, "size": str(len(content)),
            "generation": str(zlib.crc32(content)), "etag": checksum,
            "updated": "2026-11-01T12:00:00.000Z", "timeCreated": "2026-11-01T12:00:00.000Z",
        }  # fmt: skip


@contextmanager
def serve_gcs() -> Iterator[GcsServer]:
    """A server that runs in threads of this process."""
    with GcsServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: GcsServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: object) -> None:  # pytest shows what fails
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.requests.append(f"{parts.path} {self.headers.get('Range', '')}".strip())
        if self.server.refuses():
            self._refuse(self.server.refusal or 403)
        elif found := _LIST.fullmatch(parts.path):
            self._list(found[1], {key: values[0] for key, values in parse_qs(parts.query).items()})
        elif found := _METADATA.fullmatch(parts.path):
            self._object(found[1], unquote(found[2]), media=False)
        elif found := _MEDIA.fullmatch(parts.path):
            self._object(found[1], unquote(found[2]), media=True)
        else:
            self._refuse(404)

    def _list(self, bucket: str, asked: dict[str, str]) -> None:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        entries: dict[str, dict[str, str] | None] = {}
        for of, name in sorted(self.server.objects):
            if of == bucket and name.startswith(prefix):
                inner, mark, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
                entries[prefix + inner + mark if mark else name] = None if mark else self.server.describe(of, name)
        start = int(asked.get("pageToken", 0))
        stop = start + min(self.server.page, int(asked.get("maxResults", self.server.page)))
        page = [*entries.items()][start:stop]
        answer: dict[str, object] = {
            "kind": "storage#objects",
            "items": [described for _, described in page if described is not None],
            "prefixes": [name for name, described in page if described is None],
        }
        if stop < len(entries):
            answer["nextPageToken"] = str(stop)
        self._send(200, json.dumps(answer).encode())

    def _object(self, bucket: str, name: str, media: bool) -> None:
        if (bucket, name) not in self.server.objects:
            self._refuse(404)
        elif media:
            self._download(self.server.objects[bucket, name])
        else:
            self._send(200, json.dumps(self.server.describe(bucket, name)).encode())

    def _download(self, content: bytes) -> None:
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if not asked:
            self._send(200, content)
            return
        first, last = int(asked[1]), int(asked[2] or len(content) - 1)
        self._send(206, content[first : last + 1], f"bytes {first}-{last}/{len(content)}")

    def _refuse(self, status: int) -> None:
        self._send(status, json.dumps({"error": {"code": status, "message": _REASONS[status]}}).encode())

    def _send(self, status: int, content: bytes, part: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        self.wfile.write(content)
