"""Names and files: nothing is replaced, nothing is half-written."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from stepscope.capture import files
from stepscope.capture.tracers.base import Artifact

PROFILE = (Artifact("xplane.pb", b"profile"),)


@pytest.fixture(params=["links", "no links"])
def folder(request, tmp_path, monkeypatch) -> Path:
    """A folder on a file system with hard links, and on one without."""
    if request.param == "no links":

        def refuse(self: Path, target: Path) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(Path, "hardlink_to", refuse)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_names_that_are_taken_are_left_alone(folder):
    pid = os.getpid()
    for text in (b"first", b"second", b"third", b"fourth"):
        files.store((Artifact("xplane.pb", text),), folder, "vm")

    assert content(folder) == {
        "vm.xplane.pb": b"first",
        f"vm_{pid}.xplane.pb": b"second",
        f"vm_{pid}_2.xplane.pb": b"third",
        f"vm_{pid}_3.xplane.pb": b"fourth",
    }


def test_files_of_one_worker_share_a_name(folder, tmp_path_factory):
    exported = tmp_path_factory.mktemp("export") / "trace.json"
    exported.write_bytes(b"{}")
    (folder / "vm.pt.trace.json.gz").write_bytes(b"somebody else's")
    path = files.store((*PROFILE, Artifact("pt.trace.json.gz", exported)), folder, "vm")

    assert path == folder / f"vm_{os.getpid()}.xplane.pb"
    assert content(folder) == {
        "vm.pt.trace.json.gz": b"somebody else's",
        f"vm_{os.getpid()}.xplane.pb": b"profile",
        f"vm_{os.getpid()}.pt.trace.json.gz": b"{}",
    }


def test_threads_that_store_at_once_all_keep_their_file(folder):
    texts = [f"worker {i}".encode() for i in range(8)]
    ready = threading.Barrier(len(texts))

    def work(text: bytes) -> None:
        ready.wait()
        files.store((Artifact("xplane.pb", text),), folder, "vm")

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(content(folder).values()) == texts


def test_a_profile_has_the_permissions_of_any_other_file(folder):
    (folder / "other").touch()
    path = files.store(PROFILE, folder, "vm")

    assert path.stat().st_mode == (folder / "other").stat().st_mode


def test_runs_are_named_by_local_time_and_never_twice(monkeypatch):
    monkeypatch.setattr(files, "_last_second", 0)
    noon = files.time.mktime((2026, 11, 21, 12, 0, 59, 0, 0, -1))

    named = [files.run_name(lambda at=at: noon + at) for at in (0.0, 0.9, 1.1, 7.0)]

    assert named == ["2026_11_21_12_00_59", "2026_11_21_12_01_00", "2026_11_21_12_01_01", "2026_11_21_12_01_06"]


@pytest.mark.parametrize(("machine", "name"), [("gpu-7.lab", "gpu-7.lab"), ("a/b:c", "a_b_c"), ("", "localhost")])
def test_a_host_name_can_stand_in_a_file_name(monkeypatch, machine, name):
    monkeypatch.setattr(socket, "gethostname", lambda: machine)

    assert files.host_name() == name


def test_a_run_folder_with_somebody_elses_file_stays(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").touch()
    files.drop_if_empty(tmp_path / "run")

    assert (tmp_path / "run" / "file").exists()
