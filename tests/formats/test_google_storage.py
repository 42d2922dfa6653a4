"""Profiles in Google Cloud Storage, read with gcsfs from a server that answers as Google's does."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcs_server import GcsServer, serve_gcs

import stepscope
from stepscope.errors import AccessError
from stepscope.report.export import to_json

sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")

LOGS = "gs://profiles/logs"


@pytest.fixture(scope="module")
def server() -> Iterator[GcsServer]:
    """The server, and gcsfs as it is without what asks Google by gRPC of which kind a bucket is."""
    with serve_gcs() as running, pytest.MonkeyPatch.context() as patch:
        options = {"token": "anon", "endpoint_url": running.address, "project": "none"}
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        patch.setenv("FSSPEC_GS", json.dumps(options))  # for processes that are started
        driver = pytest.importorskip("gcsfs.core").GCSFileSystem
        patch.setitem(importlib.import_module("fsspec.config").conf, "gs", options)
        patch.setitem(importlib.import_module("fsspec.registry")._registry, "gs", driver)
        driver.clear_instance_cache()
        yield running
        driver.clear_instance_cache()


@pytest.fixture(autouse=True)
def without_cache(server: GcsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    yield
    server.refuse(None)


@pytest.fixture(scope="module")
def logdir(server: GcsServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of four hosts on this machine, and in the bucket."""
    folder = tmp_path_factory.mktemp("session")
    sessions.make_session(folder, sessions.Scenario(hosts=4))
    for path in (folder / "plugins").rglob("*"):
        if path.is_file():
            server.objects["profiles", f"logs/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return folder


def overview(profile: stepscope.api.LoadedProfile) -> bytes:
    return re.sub(rb"[^\"\[\] ]*/plugins/", b"", to_json(profile.report("overview")))


@pytest.mark.parametrize("engine", [None, "local=2"])
def test_a_session_in_a_bucket_is_read_where_it_is_analysed(logdir: Path, engine: str | None) -> None:
    assert overview(stepscope.load(LOGS, engine=engine)) == overview(stepscope.load(logdir))


def test_a_listing_of_several_pages_is_read_to_its_end(
    server: GcsServer, logdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "page", 1)
    assert stepscope.load(LOGS).hosts == stepscope.load(logdir).hosts


def test_a_bucket_without_permission_is_named(server: GcsServer, logdir: Path) -> None:
    server.refuse(403)
    with pytest.raises(AccessError, match="gs://profiles/logs: the store does not let you read it") as raised:
        stepscope.load(LOGS)
    assert "credentials" in str(raised.value)
