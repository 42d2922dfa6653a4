"""Profiles in a real object store: an S3 server that moto runs, read with s3fs."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import free_port
from program_runs import run_command
from waiting import await_until

import stepscope
from stepscope.errors import AccessError
from stepscope.formats import store
from stepscope.formats.store import remote
from stepscope.report.export import to_json

s3fs = pytest.importorskip("s3fs")
pytest.importorskip("moto")
sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")

BUCKET = "s3://profiles"


class Server:
    """The S3 server: its address, and the requests that it has answered."""

    def __init__(self, port: int, log: Path) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._log = log
        self._seen = 0

    def requests(self) -> list[str]:
        """Method and path of each request since the last call."""
        lines = re.findall(r'"(?:\x1b\[[0-9;]*m)*([A-Z]+ \S+) HTTP', self._log.read_text())
        new, self._seen = lines[self._seen :], len(lines)
        return new

    def refuse_after(self, requests: int) -> None:
        """Checks credentials again, and finds those of these tests to be wrong, after some requests."""
        head = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.address}/moto-api/reset-auth", str(requests).encode(), head)
        urllib.request.urlopen(request).close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = free_port()
    log = tmp_path_factory.mktemp("moto") / "log"
    with pytest.MonkeyPatch.context() as patch, log.open("w") as output:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "INITIAL_NO_AUTH_ACTION_COUNT": "1000000",
        }.items():
            patch.setenv(name, value)
        words = [Path(sys.executable).with_name("moto_server"), "-p", str(port)]
        process = subprocess.Popen(words, stdout=output, stderr=output)

        def answers() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                return False
            return True

        await_until(answers, 120, "the S3 server")
        s3fs.S3FileSystem.clear_instance_cache()
        yield Server(port, log)
        s3fs.S3FileSystem.clear_instance_cache()
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def logdir(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of six hosts on this machine and, uploaded, at BUCKET/logs."""
    folder = tmp_path_factory.mktemp("session")
    sessions.make_session(folder, sessions.Scenario(hosts=6, damaged=1))
    system = s3fs.S3FileSystem()
    system.mkdir("profiles")
    system.put(str(folder / "plugins"), "profiles/logs/plugins", recursive=True)
    return Path(folder)


def reports_agree(one: stepscope.api.LoadedProfile, other: stepscope.api.LoadedProfile, tool: str = "overview") -> bool:
    def text(profile: stepscope.api.LoadedProfile) -> bytes:
        return re.sub(rb"[^\"\[\] ]*/plugins/", b"", to_json(profile.report(tool)))

    return text(one) == text(other)


@pytest.mark.parametrize("engine", [None, "local=2"])
def test_a_session_in_a_bucket_is_read_where_it_is_analysed(
    logdir: Path, engine: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    there = stepscope.load(f"{BUCKET}/logs", engine=engine)
    assert reports_agree(there, stepscope.load(logdir))
    assert len(there.overview().hosts) == 5


def test_the_process_that_asks_moves_no_profile(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the workers open files."""
    monkeypatch.setattr(remote, "_fetch_range", None)
    assert len(stepscope.load(f"{BUCKET}/logs", engine="local=2").overview().hosts) == 5


def test_each_folder_is_listed_once(server: Server) -> None:
    system = s3fs.S3FileSystem()
    for run in range(5):
        for host in range(4):
            system.pipe_file(f"profiles/many/plugins/profile/run{run}/h{host}.xplane.pb", b"x")
    server.requests()
    profile = stepscope.load(f"{BUCKET}/many")
    assert len(profile.hosts) == 4
    listings = [re.search(r"prefix=([^&]*)", request) for request in server.requests() if "list-type=2" in request]
    folders = [found[1] for found in listings if found and found[1]]
    assert len(folders) == len(set(folders)) + 1  # whether the logdir is a folder is asked before
    assert {f"many/plugins/profile/run{run}/" for run in range(5)} <= set(folders)


def test_identities_come_from_the_listing(server: Server, logdir: Path) -> None:
    profile = stepscope.load(f"{BUCKET}/logs")
    server.requests()
    for host in profile.hosts:
        profile._work.identify(next(file for file in profile._files if file.host == host))
    assert server.requests() == []


@pytest.mark.parametrize("read", ["bytes", "buffer", "pieces"])
def test_a_large_file_is_fetched_in_ranges(server: Server, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    content = bytes(range(256)) * 4000
    s3fs.S3FileSystem().pipe_file("profiles/large", content)
    monkeypatch.setattr(remote, "RANGE_BYTES", 100_000)
    for most, requests in ((1 << 20, 8), (100_000, 11)):  # an eighth of the file, unless that is too much at once
        monkeypatch.setattr(remote, "MOST_RANGE_BYTES", most)
        server.requests()
        found = getattr(store, f"read_{read}")(f"{BUCKET}/large")
        assert (b"".join(found) if read == "pieces" else bytes(found)) == content
        sent = [request for request in server.requests() if request.startswith("GET /profiles/large")]
        assert len(sent) == requests


def test_a_cache_in_the_bucket_is_shared(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", f"{BUCKET}/cache")
    stepscope.load(logdir, engine="local=2").overview()
    again = stepscope.load(logdir)
    assert len(again.overview().hosts) == 5
    assert again.events_read == 0
    entries = s3fs.S3FileSystem().find("profiles/cache")
    assert len([entry for entry in entries if entry.endswith("/overview.partial.bytes")]) == 5


def test_a_damaged_entry_in_the_bucket_is_computed_again(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", f"{BUCKET}/other")
    expected = to_json(stepscope.load(logdir).steps())
    system = s3fs.S3FileSystem()
    for entry in system.find("profiles/other"):
        system.pipe_file(entry, b"SSCOPE_B")
    assert to_json(stepscope.load(logdir).steps()) == expected


def test_a_bucket_without_permission_is_named(server: Server, logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.refuse_after(0)
    try:
        with pytest.raises(AccessError, match="s3://profiles/logs: the store does not let you read it") as raised:
            stepscope.load(f"{BUCKET}/logs")
        assert "credentials" in str(raised.value)
    finally:
        server.refuse_after(1_000_000)


def test_hosts_behind_an_expired_credential_are_left_out_and_named(
    server: Server, logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    profile = stepscope.load(f"{BUCKET}/logs")
    server.refuse_after(4)
    try:
        report = profile.overview()
    finally:
        server.refuse_after(1_000_000)
    assert 0 < len(report.hosts) < 5
    assert any("the store does not let you read it" in warning for warning in report.warnings)


def test_a_passing_failure_is_tried_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks twice, then the store answers."""
    system = s3fs.S3FileSystem()
    system.pipe_file("profiles/small", b"abc")
    monkeypatch.setattr(remote, "WAITS_SECONDS", (0, 0, 0))
    failures = [ConnectionResetError("reset by peer"), TimeoutError("too slow")]
    fetch = system.cat_file

    def sometimes(*words: object, **named: object) -> object:
        if failures:
            raise failures.pop()
        return fetch(*words, **named)

    monkeypatch.setattr(system, "cat_file", sometimes)
    assert store.read_bytes(f"{BUCKET}/small") == b"abc"
    failures[:] = [ConnectionResetError("reset by peer")] * 9
    with pytest.raises(AccessError, match="reset by peer"):
        store.read_bytes(f"{BUCKET}/small")
    assert len(failures) == 5


# -- the command line ----------------------------------------------------------------------------------------------


def test_a_script_is_profiled_into_a_bucket_and_the_report_of_it_goes_there(server: Server, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import stepscope\nfor i in range(9):\n    with stepscope.step(i): sum(range(9999))\n"
    )
    there = f"{BUCKET}/jobs"

    done = run_command(["-m", "stepscope", "run", "--steps", "2", "--logdir", there, "train.py"], tmp_path)

    assert done.returncode == 0, done.stderr
    assert "stepscope: captured steps 5-6" in done.stderr
    assert "\nverdict " in done.stderr
    found = re.search(rf"the profile is ({there}/plugins/profile/\S+/\S+\.xplane\.pb); more: .*{there}", done.stderr)
    assert found is not None
    system = s3fs.S3FileSystem()
    assert [f"s3://{path}" for path in system.find("profiles/jobs")] == [found[1]]
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]

    written = run_command(
        ["-m", "stepscope", "steps", there, "--format", "json", "-o", f"{BUCKET}/results/steps.json"], tmp_path
    )

    assert written.returncode == 0, written.stderr
    assert [row["step"] for row in json.loads(system.cat_file("profiles/results/steps.json"))["rows"]] == [5, 6]
