"""What surrounds a profile and cannot be trusted: names of folders, other users, spreadsheets, damage, no home."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import DRAWN, store_profile
from draw import draw

import stepscope
from stepscope.cache import Cache, CacheOptions
from stepscope.capture.remote.running_servers import announce_server
from stepscope.cli.main import run
from stepscope.errors import AccessError, UnreadableError
from stepscope.formats import store
from stepscope.formats.kineto import text as kineto_text
from stepscope.formats.xspace.writer import write
from stepscope.private_folders import make_private
from stepscope.report.export import SHEETS
from stepscope.report.fields import csv_value

PACKAGE = Path(stepscope.__file__).parent
NOBODY = 65534
PATIENCE_S = 600


# -- what a terminal, a spreadsheet and a browser would run ------------------------------------------------------------


def test_a_folders_name_does_not_command_the_terminal(tmp_path, capsys):
    folder = tmp_path / "\x1b]0;owned\x07\x1b[2J"
    folder.mkdir()

    assert run(["summary", str(folder)]) == 1
    assert run(["summary", str(folder / "gone")]) == 1
    said = capsys.readouterr()
    assert "owned" in said.err
    assert "\x1b" not in said.err + said.out
    assert "\x07" not in said.err


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\tx", "\rx"])
def test_a_spreadsheet_takes_no_name_for_a_formula(name):
    assert csv_value(name) == f"'{name}"


def test_numbers_stay_numbers_in_a_spreadsheet():
    assert [csv_value(value) for value in (-5, -1.5, "", "a=b", None)] == [-5, -1.5, "", "a=b", ""]


def test_a_hosts_name_is_text_in_a_markdown_heading(tmp_path):
    trace = draw(DRAWN, host="<img src=x onerror=alert(1)>")
    store_profile(tmp_path, "r1", replace(trace, host="a"))
    report = stepscope.load(tmp_path).overview()

    shown = SHEETS["markdown"](replace(report, hosts=("<img src=x onerror=alert(1)>",)), 5)
    assert "<img" not in shown.replace("\\<img", "")


# -- other users ---------------------------------------------------------------------------------------------------


def entry_of(folder: Path) -> tuple[Cache, str, Path]:
    """A cache with one entry, its key, and the entry's file."""
    cache, key = Cache(CacheOptions(folder)), "0" * 32
    cache.put_bytes(key, "name", b"content")
    (path,) = folder.rglob("name.bytes")
    return cache, key, path


def test_a_cache_is_for_its_user_alone(tmp_path):
    _, _, path = entry_of(tmp_path / "cache")

    assert [oct(folder.stat().st_mode & 0o777) for folder in (path.parent, path.parent.parent)] == ["0o700", "0o700"]


@pytest.mark.parametrize("level", [0, 1], ids=["key", "version"])
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_what_others_may_have_written_is_not_believed(tmp_path, mode, level):
    _, key, path = entry_of(tmp_path)
    assert Cache(CacheOptions(tmp_path)).get_bytes(key, "name") == b"content"
    path.parents[level].chmod(mode)

    assert Cache(CacheOptions(tmp_path)).get_bytes(key, "name") is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root makes files of another user")
@pytest.mark.parametrize("level", [-1, 0, 1], ids=["file", "key", "version"])
def test_what_belongs_to_another_user_is_not_believed(tmp_path, level):
    _, key, path = entry_of(tmp_path)
    os.chown(path if level < 0 else path.parents[level], NOBODY, NOBODY)

    assert Cache(CacheOptions(tmp_path)).get_bytes(key, "name") is None


def test_a_folder_for_many_users_may_hold_caches_of_each(tmp_path):
    tmp_path.chmod(0o777)
    _, key, _ = entry_of(tmp_path)

    assert Cache(CacheOptions(tmp_path)).get_bytes(key, "name") == b"content"
    assert tmp_path.stat().st_mode & 0o777 == 0o777  # the folder that was given is not ours to change


def test_folders_below_the_temporary_one_are_closed_with_those_above_them(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"stepscope-{os.getuid()}").mkdir(mode=0o755)  # as an earlier version left it

    note = announce_server(6009, "train.py")

    assert note is not None
    assert [stat.S_IMODE(each.stat().st_mode) for each in (note, *note.parents[:2])] == [0o600, 0o700, 0o700]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root makes folders of another user")
def test_a_folder_of_another_user_is_not_used(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)

    with pytest.raises(PermissionError, match="belongs to another user"):
        make_private(theirs)


# -- damaged files -----------------------------------------------------------------------------------------------------

_EVENTS = b'{"schemaVersion": 1, "traceEvents": [' + b",".join(
    b'{"ph": "X", "cat": "cpu_op", "name": "aten::op%d", "pid": 1, "tid": 1, "ts": %d, "dur": 5}' % (n, n * 10)
    for n in range(2000)
)


def test_of_gzip_data_with_a_bad_checksum_every_event_is_read(tmp_path):
    packed = bytearray(gzip.compress(_EVENTS + b"]}"))
    packed[-8] ^= 1
    path = tmp_path / "a.pt.trace.json.gz"
    path.write_bytes(packed)

    trace = stepscope.load(path).trace()
    assert len(trace.events) == 2000
    assert trace.partial
    assert "gzip" in trace.problems[0].reason


def test_gzip_data_that_unpacks_to_far_more_is_refused(monkeypatch):
    monkeypatch.setattr(kineto_text, "_ALWAYS_ALLOWED", 1 << 20)
    bomb = gzip.compress(b" " * (64 << 20))

    inflater = kineto_text.Inflater(bomb, "bomb")
    with pytest.raises(UnreadableError, match="unpack to more than"):
        for _ in inflater.pieces():
            assert inflater.bytes_out < 32 << 20


def test_a_file_that_is_mostly_holes_is_not_read(tmp_path):
    path = tmp_path / "a.xplane.pb"
    with path.open("wb") as file:
        file.write(b"\x0a\x02\x08\x01")
        file.truncate(8 << 30)
    if path.stat().st_blocks * 512 > 1 << 30:
        pytest.skip("this file system keeps no holes")

    with pytest.raises(AccessError, match="8,589,934,592 bytes, but most of them were never written"):
        store.read_bytes(str(path))


def test_a_small_hole_is_data(tmp_path):
    path = tmp_path / "a.bin"
    with path.open("wb") as file:
        file.write(b"x" * 1000)
        file.truncate(1 << 20)

    assert len(store.read_bytes(str(path))) == 1 << 20


@pytest.mark.parametrize("name", ["a.xplane.pb", "a.pt.trace.json"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "a pointer of Git LFS"),
        (b"<!doctype html><html><body>Log in</body></html>", "HTML or XML"),
    ],
)
def test_what_was_saved_in_place_of_a_profile_is_named(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(UnreadableError, match=said):
        stepscope.load(path).trace()


def test_a_transfer_as_text_is_named(tmp_path):
    path = store_profile(tmp_path, "r1", draw(DRAWN)) / "host.xplane.pb"
    content = path.read_bytes().partition(b"\n")
    path.write_bytes((content[1] + content[2]).replace(b"\n", b"\r\n"))

    with pytest.raises(UnreadableError, match="line ends were converted"):
        stepscope.load(path).trace()


# -- a user without a home, and a package that nobody may change -------------------------------------------------------

_ALL = """
import ctypes, os, sys
NOBODY, READ_ANYTHING, KEEP_CAPABILITIES, VERSION_3 = 65534, 1 << 2, 8, 0x20080522
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0)
os.setgroups([]), os.setgid(NOBODY), os.setuid(NOBODY)
# The interpreter may lie in root's home: this user may read it, and write nothing that is not its own.
rights = (ctypes.c_uint32 * 6)(READ_ANYTHING, READ_ANYTHING, 0, 0, 0, 0)
if libc.capset((ctypes.c_uint32 * 2)(VERSION_3, 0), rights):
    sys.exit("no capset")
try:
    open(os.path.join(sys.argv[3], "x"), "w")
    sys.exit("this user may write to the package")
except PermissionError:
    pass
from stepscope.analysis.registry import TOOLS
from stepscope.cli.main import run
path = sys.argv[1]
for words in (["--version"], ["summary", path], ["trace", path, "--format", "chrome", "--output", "-"],
              ["doctor", path], *([tool.name, path, "--format", "json"] for tool in TOOLS)):
    assert run(words) == 0, words
import stepscope as profiler
profiler.start(sys.argv[2])
with profiler.Trace("train", step_num=0):
    sum(range(1000))
profiler.stop()
assert run(["summary", sys.argv[2]]) == 0
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions
from werkzeug.test import Client
client = Client(App(Site(SiteOptions([Root(path)]))))
assert client.get("/api/sessions").json["sessions"]
assert client.get("/api/words").json["sessions"] == {}
print("all done", file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root becomes another user")
def test_everything_works_for_nobody(tmp_path):
    """As in a container with another user than root: no home, nothing to write to but a logdir and /tmp."""
    logdir, own = Path("/tmp") / f"stepscope-{os.getpid()}-all", Path("/tmp") / f"stepscope-{os.getpid()}-own"
    try:
        store_profile(logdir, "r1", draw(DRAWN))
        own.mkdir()
        os.chown(own, NOBODY, NOBODY)
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE.parent), "HOME": "/nonexistent"}
        ended = subprocess.run(
            [sys.executable, "-c", _ALL, str(logdir), str(own), str(PACKAGE)],
            capture_output=True, text=True, timeout=PATIENCE_S, env=environment, cwd="/",
        )  # fmt: skip
    finally:
        subprocess.run(["rm", "-rf", str(logdir), str(own)], check=True)
    if ended.stderr.strip() == "no capset":
        pytest.skip("this system gives single capabilities to nobody")
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stderr.rstrip().endswith("all done")
    assert "[internal]" not in ended.stderr


# -- folders that nobody meant to keep profiles in ---------------------------------------------------------------------

XPLANE = draw("host main | M0--M1--")


def profiles(folder: Path, *names: str) -> Path:
    """A folder with a profile of each name; `/` at the end makes a folder of it instead."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).mkdir() if name.endswith("/") else (folder / name).write_bytes(write(XPLANE))
    return folder


@pytest.mark.parametrize("command", ["summary", "runs", "doctor", "report"])
@pytest.mark.parametrize("beside", [(), ("b.xplane.pb",)], ids=["alone", "beside a profile"])
def test_a_pipe_named_like_a_profile_keeps_nobody_waiting(tmp_path, capsys, monkeypatch, command, beside):
    """Opening a pipe waits for somebody who writes into it."""
    monkeypatch.chdir(tmp_path)
    logdir = tmp_path / "logs"
    logdir.mkdir()
    os.mkfifo(profiles(logdir, *beside) / "a.xplane.pb")

    status = run([command, str(logdir)])

    said = "".join(capsys.readouterr())
    assert "[internal]" not in said
    assert status == (0 if beside or command in ("runs", "doctor") else 1)


@pytest.mark.parametrize("command", ["summary", "runs", "doctor", "report", "overview", "trace"])
def test_a_path_that_is_no_text_is_shown_with_question_marks(tmp_path, monkeypatch, command):
    """Old file systems keep names as bytes of any encoding."""
    monkeypatch.chdir(tmp_path)
    profiles(tmp_path, "a.xplane.pb")
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/l\xe4ufe/plugins/profile/m\xe4rz"))
    folder.mkdir(parents=True)
    (tmp_path / "a.xplane.pb").rename(folder / os.fsdecode(b"k\xfcche.xplane.pb"))

    words = [command, os.fsdecode(os.fsencode(tmp_path) + b"/l\xe4ufe")]
    into = ["-o", "written"] if command in ("report", "trace") else []
    ended = subprocess.run(
        [sys.executable, "-m", "stepscope", *words, *into],
        capture_output=True,
        timeout=PATIENCE_S,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )
    assert (ended.returncode, b"[internal]" in ended.stderr) == (0, False), ended.stderr[-2000:]


def test_of_a_thousand_files_that_cannot_be_read_a_few_are_named(tmp_path, capsys):
    for number in range(1000):
        (tmp_path / f"host{number}.xplane.pb").touch()

    assert run(["summary", str(tmp_path)]) == 1

    said = capsys.readouterr().err
    assert "none of the 1,000 hosts can be read" in said and "and 995 more" in said
    assert len(said) < 2000


def test_doctor_reads_each_of_many_hosts_once(tmp_path, capsys, monkeypatch):
    reads: list[str] = []
    real = store.open_source
    monkeypatch.setattr(store, "open_source", lambda path: [reads.append(path), real(path)][1])
    names = [f"host{number}.xplane.pb" for number in range(12)]

    assert run(["doctor", str(profiles(tmp_path, *names))]) == 0

    assert sorted(map(os.path.basename, reads)) == sorted(names)


def test_links_in_circles_and_folders_named_like_files_hide_no_profile(tmp_path, capsys):
    logdir = profiles(tmp_path / "logs", "good.xplane.pb", "folder.xplane.pb/", "run.pt.trace.json.gz/")
    (logdir / "x.xplane.pb").symlink_to("y.xplane.pb")
    (logdir / "y.xplane.pb").symlink_to("x.xplane.pb")
    (logdir / "here").symlink_to(".")
    (logdir / "folder.xplane.pb" / "back").symlink_to("../run.pt.trace.json.gz")
    (logdir / "run.pt.trace.json.gz" / "back").symlink_to("../folder.xplane.pb")

    assert run(["summary", str(logdir)]) == 0

    said = capsys.readouterr().out
    assert "step time" in said and "too many levels of symbolic links" in said


def test_a_folder_whose_profiles_cannot_be_opened_is_not_what_it_points_at(tmp_path, capsys):
    (tmp_path / "a.xplane.pb").symlink_to("nowhere")

    assert run(["summary", str(tmp_path)]) == 1

    said = capsys.readouterr().err
    assert "there is no such file" in said and "there are profiles in" not in said


@pytest.mark.parametrize("command", ["summary", "doctor", "steps"])
def test_a_file_that_grows_or_shrinks_while_it_is_read_is_read_as_it_was(tmp_path, capsys, monkeypatch, command):
    path = tmp_path / "a.xplane.pb"
    whole = write(XPLANE)
    path.write_bytes(whole)
    real, turns = store.identity, iter(range(10**6))

    def then_it_changes(name: str) -> store.Identity:
        turn = next(turns)
        path.write_bytes(whole + whole[: turn % 7] if turn % 2 else whole[: len(whole) - turn % 5])
        return real(name)

    monkeypatch.setattr(store, "identity", then_it_changes)

    status = run([command, str(path)])

    said = "".join(capsys.readouterr())
    assert status in (0, 1) and "[internal]" not in said and "Traceback" not in said
