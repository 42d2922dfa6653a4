"""How fast a profile comes from an object store, beside other ways to download it: `python -m bench.scale_store`.

The store is on this machine, so what is compared is the cost of asking and of copying; all read into memory, in turns.
It answers as S3 does to what reads one object, whole or in ranges, and lets the system send the bytes from the file's
cache, so that who reads is what limits the speed.  It checks no signature.
"""

from __future__ import annotations

import io
import os
import re
import signal
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROUNDS = 3
MEGABYTES = 128
_PARTS = 8  # an upload of more at once would be several requests
_NAME = "profiles/large.xplane.pb"


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


@contextmanager
def serve(content: bytes) -> Iterator[str]:
    """The address of a server with one object; the environment makes s3fs use it."""
    import s3fs

    with tempfile.NamedTemporaryFile() as file, ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        file.write(content)
        file.flush()
        _Handler.served = Path(file.name)
        address = f"http://127.0.0.1:{server.server_port}"
        os.environ |= {
            "AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip
        child = os.fork()  # a process of its own: the reader's is measured
        if not child:
            server.serve_forever()
        s3fs.S3FileSystem.clear_instance_cache()
        try:
            yield address
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def ways_to_read(address: str) -> dict[str, Callable[[], int]]:
    """Ways to read the object into memory; each returns the number of its bytes."""
    import boto3
    import s3fs

    from stepscope.formats import store

    def download() -> int:
        with urllib.request.urlopen(f"{address}/{_NAME}") as answer:
            return len(answer.read())

    def download_in_ranges() -> int:
        into = io.BytesIO()
        boto3.client("s3").download_fileobj(*_NAME.split("/"), into)
        return len(into.getbuffer())

    return {
        "urllib, one request": download,
        "boto3, ranges in 10 threads": download_in_ranges,
        "s3fs, one request": lambda: len(s3fs.S3FileSystem().cat_file(_NAME)),
        "Stepscope, s3://": lambda: len(store.read_buffer(f"s3://{_NAME}")),
        "Stepscope, http://": lambda: len(store.read_buffer(f"{address}/{_NAME}")),
    }


def compare_speeds() -> Iterator[str]:
    """Lines of a table: elapsed time, and the processor time of the reading process."""
    content = os.urandom(MEGABYTES << 17) * _PARTS
    yield f"{len(content) / 1e6:,.0f} MB from a server on this machine, in turns; median of {ROUNDS}.\n"
    yield "| read by | MB/s | against urllib | processor s of the reader |"
    yield "| --- | ---: | ---: | ---: |"
    with serve(content) as address:
        ways = ways_to_read(address)
        assert {way() for way in ways.values()} == {len(content)}
        rounds = [[_times(way) for way in ways.values()] for _ in range(ROUNDS)]
    medians = [tuple(map(statistics.median, zip(*each, strict=True))) for each in zip(*rounds, strict=True)]
    for way, (seconds, cpu) in zip(ways, medians, strict=True):
        yield f"| {way} | {len(content) / 1e6 / seconds:,.0f} | {medians[0][0] / seconds:.2f} | {cpu:.2f} |"
    yield ""


def _times(work: Callable[[], int]) -> tuple[float, float]:
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


if __name__ == "__main__":
    for line in compare_speeds():
        print(line, flush=True)
