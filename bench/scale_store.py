"""How fast a profile comes from an object store, beside other ways to download it: `python -m bench.scale_store`.

The stores are on this machine, so what is compared is the cost of asking and of copying; all read into memory, in
turns.  The S3 server of moto reads the whole file for each range, as no real store does, and is a Python program of one
thread at a time.  The plain store leaves the sending to the system.
"""

from __future__ import annotations

import io
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROUNDS = 3
MEGABYTES = 128
_PARTS = 8  # an upload of more at once would be several requests
_NAME = "profiles/large.xplane.pb"


@contextmanager
def _serving(words: Sequence[str | Path], port: int) -> Iterator[str]:
    """The address of a server; the environment makes s3fs use it."""
    address = f"http://127.0.0.1:{port}"
    os.environ |= {
        "AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "INITIAL_NO_AUTH_ACTION_COUNT": "1000000",
    }  # fmt: skip
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _answers(port):
            time.sleep(0.1)
        yield address
    finally:
        running.terminate()
        running.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def moto_store(content: bytes) -> Iterator[str]:
    """The S3 server of moto with one object."""
    import s3fs

    port = _free_port()
    with _serving([Path(sys.executable).with_name("moto_server"), "-p", str(port)], port) as address:
        s3fs.S3FileSystem.clear_instance_cache()
        system = s3fs.S3FileSystem()
        system.mkdir("profiles")
        system.pipe_file(_NAME, content)
        yield address


@contextmanager
def plain_store(content: bytes) -> Iterator[str]:
    """A server that costs next to nothing, with one object."""
    import s3fs

    port = _free_port()
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with _serving([sys.executable, "-m", "bench.plain_store", file.name, str(port)], port) as address:
            s3fs.S3FileSystem.clear_instance_cache()
            yield address


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
        return into.tell()

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
    yield f"{len(content) / 1e6:,.0f} MB from servers on this machine, in turns; median of {ROUNDS}.\n"
    yield "| store | read by | MB/s | against urllib | processor s of the reader |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for name, open_store in (("moto", moto_store), ("plain", plain_store)):
        with open_store(content) as address:
            ways = ways_to_read(address)
            assert {way() for way in ways.values()} == {len(content)}
            rounds = [[_times(way) for way in ways.values()] for _ in range(ROUNDS)]
        medians = [tuple(map(statistics.median, zip(*each, strict=True))) for each in zip(*rounds, strict=True)]
        for way, (seconds, cpu) in zip(ways, medians, strict=True):
            speed = f"{len(content) / 1e6 / seconds:,.0f} | {medians[0][0] / seconds:.2f}"
            yield f"| {name} | {way} | {speed} | {cpu:.2f} |"
    yield ""


def _times(work: Callable[[], int]) -> tuple[float, float]:
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


if __name__ == "__main__":
    for line in compare_speeds():
        print(line, flush=True)
