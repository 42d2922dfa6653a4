"""Names and files: nothing is replaced, nothing is half-written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepscope.capture import files, job, scratch
from stepscope.capture.scratch import ScratchFolder
from stepscope.capture.spool import Spool
from stepscope.capture.tracers.base import Artifact
from stepscope.formats.spool import layout

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
    monkeypatch.setattr(files, "RUN_NAMES", files.RunNames())
    noon = files.time.mktime((2026, 11, 21, 12, 0, 59, 0, 0, -1))

    named = [files.run_name(lambda at=at: noon + at) for at in (0.0, 0.9, 1.1, 7.0, -3600.0)]

    assert named == [
        "2026_11_21_12_00_59",
        "2026_11_21_12_00_59_002",
        "2026_11_21_12_01_00",
        "2026_11_21_12_01_06",
        "2026_11_21_12_01_06_002",
    ]
    assert sorted(named) == named


def test_no_run_of_racing_threads_is_named_in_the_future(monkeypatch):
    monkeypatch.setattr(files, "RUN_NAMES", files.RunNames())
    with ThreadPoolExecutor(8) as pool:
        named = list(pool.map(lambda _: files.run_name(), range(200)))

    now = files.time.strftime("%Y_%m_%d_%H_%M_%S", files.time.localtime())
    assert len(set(named)) == 200
    assert max(name[:19] for name in named) <= now


def test_a_folder_of_a_killed_process_is_removed_by_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = "import os; from stepscope.capture.scratch import ScratchFolder as F; f = F(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False, timeout=60)
    (tmp_path / "stepscope-another").mkdir()
    mine = scratch.ScratchFolder()
    later = scratch.time.time() + 3600
    assert len(list(tmp_path.iterdir())) == 3

    scratch.Sweep().run_once(later)

    assert {path.name for path in tmp_path.iterdir()} == {Path(mine.path).name, "stepscope-another"}
    mine.remove()


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("10.0.0.2:6009", "10.0.0.2_6009"),
        ("[::1]:6009", "0--1_6009"),
        ("[fe80::1%eth0]:6009", "fe80--1_eth0_6009"),
        ("../trick", "_trick"),
    ],
)
def test_an_address_is_a_name_that_can_be_read(address, name):
    assert files.safe_name(address) == name


def test_a_capture_that_could_not_start_leaves_nothing_in_the_logdir(tmp_path):
    target = files.open_target(tmp_path)

    target.release()

    assert content(tmp_path) == {}


def test_a_capture_that_could_not_start_leaves_other_runs_alone(tmp_path):
    kept = files.open_target(tmp_path)

    files.open_target(tmp_path).release()

    assert kept.partial.exists()


def test_a_forked_child_does_not_remove_the_folder_of_its_parent(monkeypatch):
    folder = ScratchFolder()
    path = Path(folder.path)

    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        del folder

    assert path.is_dir()
    path.rmdir()


def test_a_scratch_folder_goes_with_the_one_who_holds_it():
    folder = ScratchFolder()
    path = Path(folder.path)
    (path / "file").touch()

    del folder

    assert not path.exists()


def test_what_is_spooled_is_on_the_disk_at_once_so_that_a_forked_child_has_nothing_to_write():
    spool = Spool(None, layout.session("vm", "", 0, 0))
    spool.cut("os._exit")

    written = os.fstat(spool._file.fileno()).st_size
    spool.remove()

    assert written == spool.size


def test_a_spool_is_read_to_its_end_though_the_system_gives_it_in_pieces():
    spool = Spool(None, layout.session("vm", "", 0, 0))
    spool.cut("os._exit")
    whole = spool.finish(9)
    file = spool._file
    spool._file = SimpleNamespace(seek=file.seek, close=file.close, read=lambda size: file.read(min(size, 7)))

    pieces = spool.finish(9)
    spool.remove()

    assert pieces == whole


def test_a_run_folder_with_somebody_elses_file_stays(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").touch()
    files.drop_if_empty(tmp_path / "run")

    assert (tmp_path / "run" / "file").exists()


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Asks for the run of a process without a rank: its number, and which processes live."""
    runs = iter(range(1000))
    monkeypatch.setattr(job.LAUNCH, "folder", tmp_path / "children")

    def ask(process: int, *, alive: str, command: str = "train.py") -> str:
        monkeypatch.setattr(os, "getpid", lambda: process)
        monkeypatch.setattr(sys, "argv", [command])
        monkeypatch.setattr(job, "is_alive", lambda pid: str(pid) in alive.split())
        return job.agree_on_run(tmp_path, job.Worker(), lambda: f"run {next(runs)}")

    return ask


def test_processes_that_a_program_starts_together_share_their_runs(ask):
    first, second = (ask(number, alive="11 12") for number in (11, 12))
    again, again_second = (ask(number, alive="11 12") for number in (11, 12))

    assert first == second != again == again_second


def test_what_a_program_starts_one_after_the_other_has_runs_of_its_own(ask):
    training = ask(11, alive="11")
    evaluation = ask(12, alive="12")
    beside_it = ask(13, alive="12 13")

    assert training != evaluation == beside_it


def test_different_commands_that_a_program_starts_have_runs_of_their_own(ask):
    assert ask(11, alive="11 12") != ask(12, alive="11 12", command="serve.py")


def test_a_process_that_no_stepscope_run_has_started_has_a_run_of_its_own(ask, monkeypatch):
    monkeypatch.setattr(job.LAUNCH, "folder", None)

    assert ask(11, alive="11 12") != ask(12, alive="11 12")
