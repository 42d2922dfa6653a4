"""How fast a profile comes from an object store, beside a plain download of it: `python -m bench.scale_store`.

The store is moto's S3 server on this machine, so what is compared is the cost of asking and of copying; all read into
memory, in turns.  That server reads the whole file for each range of it, as no real store does.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROUNDS = 3
MEGABYTES = 128
_PARTS = 8  # an upload of more at once would be several requests


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server; the environment makes s3fs use it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    os.environ |= {
        "AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "INITIAL_NO_AUTH_ACTION_COUNT": "1000000",
    }  # fmt: skip
    words = [Path(sys.executable).with_name("moto_server"), "-p", str(port)]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _answers(port):
            time.sleep(0.1)
        yield address
    finally:
        running.terminate()
        running.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def compare_speeds() -> Iterator[str]:
    """Lines of a table."""
    import s3fs

    from stepscope.formats import store

    with s3_server() as address:
        system = s3fs.S3FileSystem()
        system.mkdir("profiles")
        content = os.urandom(MEGABYTES << 17) * _PARTS
        system.pipe_file("profiles/large.xplane.pb", content)

        def download() -> int:
            with urllib.request.urlopen(f"{address}/profiles/large.xplane.pb") as answer:
                return len(answer.read())

        def fetch() -> int:
            return len(system.cat_file("profiles/large.xplane.pb"))

        def read() -> int:
            return len(store.read_buffer("s3://profiles/large.xplane.pb"))

        assert read() == download() == fetch() == len(content)
        ways = (download, fetch, read)
        rounds = [[_seconds(way) for way in ways] for _ in range(ROUNDS)]
    rates = [len(content) / 1e6 / statistics.median(each) for each in zip(*rounds, strict=True)]
    ratios = [statistics.median(each[other] / each[2] for each in rounds) for other in (0, 1)]
    yield f"{len(content) / 1e6:,.0f} MB from moto's S3 server on this machine, in turns.\n"
    yield "| one request by urllib MB/s | one request by s3fs MB/s | Stepscope MB/s | against urllib | against s3fs |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    yield f"| {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[2]:,.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} |\n"


def _seconds(work: Callable[[], int]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    for line in compare_speeds():
        print(line, flush=True)
