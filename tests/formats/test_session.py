"""The finder: what lies there, and which sessions and hosts that makes."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path, PurePath

import draw as drawing
import fsspec
import pytest

from stepscope.errors import NotFoundError, UnreadableError, UsageError
from stepscope.formats import by_content, store
from stepscope.formats.base import FORMATS
from stepscope.formats.candidates import WATCH_MARKER
from stepscope.formats.session import Session, find_joined_session, find_session, find_sessions, pick_host
from stepscope.formats.sniffing import sniff
from stepscope.formats.xspace.writer import write as to_xspace

START_S = 1_700_000_000
RUN = "plugins/profile/2026_11_21_03_53_27"
EARLIER = "plugins/profile/2026_11_20_10_00_00"
XSPACE = b"\x0a\x0d\x08\x01\x12\x09/host:CPU"
TRACE = b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}'


def draw(root: Path, text: str) -> Path:
    """Makes empty files, one name a line, each a second younger than the one before."""
    for number, name in enumerate(text.split()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return root


def shown(sessions: tuple[Session, ...]) -> list[str]:
    """Each session as `run: host host`."""
    return [f"{session.run}: {' '.join(session.hosts)}" for session in sessions]


def files(session: Session) -> list[str]:
    return [Path(file.path).name for file in session.files]


# ---- TensorBoard's layout --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "run"),
    [
        (".", "logs/2026_11_21_03_53_27"),
        ("logs", "2026_11_21_03_53_27"),
        ("logs/plugins", "2026_11_21_03_53_27"),
        ("logs/plugins/profile", "2026_11_21_03_53_27"),
        (f"logs/{RUN}", "2026_11_21_03_53_27"),
        (f"logs/{RUN}/vm.xplane.pb", "2026_11_21_03_53_27"),
    ],
)
def test_a_session_is_found_from_every_level(tmp_path: Path, start: str, run: str) -> None:
    draw(tmp_path, f"logs/{RUN}/vm.xplane.pb")
    (session,) = find_sessions(tmp_path / start)
    assert (session.run, session.hosts) == (run, ("vm",))
    assert session.path == str(tmp_path / "logs" / RUN)
    assert session.files[0].path == str(tmp_path / "logs" / RUN / "vm.xplane.pb")


def test_a_relative_path_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(tmp_path, f"{RUN}/vm.xplane.pb")
    monkeypatch.chdir(tmp_path / RUN)
    assert shown(find_sessions(".")) == ["2026_11_21_03_53_27: vm"]
    assert shown(find_sessions("vm.xplane.pb")) == ["2026_11_21_03_53_27: vm"]
    assert shown(find_sessions("../../..")) == ["2026_11_21_03_53_27: vm"]


FOUND = [
    # Runs below TensorBoard's runs are named with them.
    (f"{EARLIER}/vm.xplane.pb train/{RUN}/vm.xplane.pb exp/a/train/{EARLIER}_b/vm.xplane.pb",
     ["train/2026_11_21_03_53_27: vm", "exp/a/train/2026_11_20_10_00_00_b: vm", "2026_11_20_10_00_00: vm"]),
    # Hosts are in natural order and may hold dots.
    (f"{RUN}/w10.xplane.pb {RUN}/w9.xplane.pb {RUN}/10.0.0.2_6009.xplane.pb",
     ["2026_11_21_03_53_27: 10.0.0.2_6009 w9 w10"]),
    # JAX wrote this trace, and its XPlane file is gone.
    (f"{RUN}/10.0.0.2.trace.json.gz {RUN}/perfetto_trace.json.gz", ["2026_11_21_03_53_27: 10.0.0.2"]),
    # Workers of a job of PyTorch; its traces beside XPlane files.
    ("job/vm_12.1795239728212212491.pt.trace.json.gz job/vm_7.1795239728300000000.pt.trace.json", ["job: vm_7 vm_12"]),
    ("logs/vm.xplane.pb logs/w.1795239728212212491.pt.trace.json", ["logs: vm", "logs/span_1: w"]),
]  # fmt: skip


@pytest.mark.parametrize(("names", "sessions"), FOUND)
def test_names_tell_sessions_and_their_hosts(tmp_path: Path, names: str, sessions: list[str]) -> None:
    assert shown(find_sessions(draw(tmp_path, names))) == sessions


def test_what_lies_beside_a_profile_is_no_host(tmp_path: Path) -> None:
    draw(
        tmp_path,
        f"""
        events.out.tfevents.1700000000.vm
        events.out.tfevents.1700000000.vm.profile-empty
        {RUN}/vm.xplane.pb
        {RUN}/vm.trace.json.gz
        {RUN}/perfetto_trace.json.gz
        {RUN}/remote.trace.json.gz
        {RUN}/ALL_HOSTS.op_stats_v2.pb
        {RUN}/jit_step.hlo_proto.pb
        {RUN}/.cached_tools.json
        {RUN}/cache_version.txt
        """,
    )
    (session,) = find_sessions(tmp_path)
    assert (files(session), session.problems) == (["vm.xplane.pb"], ())


@pytest.mark.parametrize(
    ("profile", "kept"),
    [(XSPACE, "vm.xplane.pb"), (b"", "vm.xplane.pb.partial"), (None, "vm.xplane.pb.partial")],
    ids=["finished", "only reserved", "not yet"],
)
def test_a_spool_and_the_profile_made_of_it_are_one_host(tmp_path: Path, profile: bytes | None, kept: str) -> None:
    draw(tmp_path, f"{RUN}/vm.xplane.pb.partial {RUN}/other.xplane.pb")
    if profile is not None:
        (tmp_path / RUN / "vm.xplane.pb").write_bytes(profile)
    (session,) = find_sessions(tmp_path)
    assert (session.hosts, files(session), session.problems) == (("other", "vm"), ["other.xplane.pb", kept], ())


def test_an_export_beside_xplane_files_is_left_out_and_told(tmp_path: Path) -> None:
    draw(tmp_path, f"{RUN}/vm.xplane.pb {RUN}/exported.trace.json")
    (session,) = find_sessions(tmp_path)
    assert files(session) == ["vm.xplane.pb"]
    assert [(problem.code, problem.path) for problem in session.problems] == [
        ("left-out", str(tmp_path / RUN / "exported.trace.json"))
    ]
    assert find_session(tmp_path / RUN / "exported.trace.json").hosts == ("exported",)


def test_hosts_without_a_name_or_with_the_same_are_told_apart(tmp_path: Path) -> None:
    draw(tmp_path, f"{RUN}/xplane.pb {RUN}/.xplane.pb {RUN}/localhost_2.xplane.pb")
    (session,) = find_sessions(tmp_path)
    assert session.hosts == ("localhost", "localhost_3", "localhost_2")
    assert files(session) == [".xplane.pb", "xplane.pb", "localhost_2.xplane.pb"]


def test_hostile_names_are_made_printable(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\x1b[31m\xff.xplane.pb")
    (tmp_path / name).write_bytes(b"abc")
    (session,) = find_sessions(tmp_path)
    assert session.hosts == ("a?[31m?",)
    assert store.read_bytes(session.files[0].path) == b"abc"


# ---- torch.profiler's layout -----------------------------------------------------------------------------------------


def test_traces_of_captured_graphs_are_no_hosts_of_what_was_served(tmp_path: Path) -> None:
    """A server writes one for each batch size as it starts, in a folder of their own."""
    draw(
        tmp_path,
        """
        vllm/rank0.1795239728212212491.pt.trace.json.gz
        vllm/capture_traces/bs_1.pt.trace.json.gz
        vllm/capture_traces/bs_8.pt.trace.json.gz
        """,
    )
    (session,) = find_sessions(tmp_path)
    assert session.hosts == ("rank0",)
    assert session.problems == ()
    assert [PurePath(each.path).name for each in session.files[0].captures] == [
        "bs_1.pt.trace.json.gz",
        "bs_8.pt.trace.json.gz",
    ]
    assert shown(find_sessions(tmp_path / "vllm/capture_traces")) == ["capture_traces: bs_1 bs_8"]


@pytest.mark.parametrize(
    "capture",
    [
        "DecodeRunner_bs_8_rank0.trace.json.gz",
        "bs_24_rank0.trace.json.gz",
        "graph_capture_rank_0.1795239728300000000.pt.trace.json.gz",
        "graph_capture_profile/anything.pt.trace.json.gz",
    ],
)
def test_traces_of_captured_graphs_beside_what_was_served_are_known_by_name(capture: str, tmp_path: Path) -> None:
    draw(tmp_path, f"sglang/1795239728.97-TP-0.trace.json.gz sglang/{capture}")
    (session,) = find_sessions(tmp_path)

    assert len(session.files) == 1
    assert "TP-0.trace.json.gz" in session.files[0].path
    assert len(session.files[0].captures) == 1
    assert session.problems == ()


def test_each_rank_has_the_captures_of_its_graphs(tmp_path: Path) -> None:
    draw(
        tmp_path,
        """
        job/1-TP-0.trace.json.gz job/1-TP-1.trace.json.gz
        job/capture_traces/bs_8_rank0.json.gz job/capture_traces/bs_8_rank1.trace.json.gz
        job/capture_traces/bs_8_rank0.trace.json.gz
        """,
    )
    (session,) = find_sessions(tmp_path)

    assert [[PurePath(each.path).name for each in file.captures] for file in session.files] == [
        ["bs_8_rank0.trace.json.gz"],
        ["bs_8_rank1.trace.json.gz"],
    ]


def test_captures_that_no_session_replays_are_left_out_and_told(tmp_path: Path) -> None:
    draw(tmp_path, "served/rank0.1.pt.trace.json.gz elsewhere/deeper/capture_traces/bs_1.pt.trace.json.gz")
    (session,) = find_sessions(tmp_path)

    assert [problem.code for problem in session.problems] == ["left-out"]
    assert "1 trace of graphs that are captured" in session.problems[0].reason


def test_traces_of_captured_graphs_alone_are_a_session(tmp_path: Path) -> None:
    draw(tmp_path, "bs_8_rank0.pt.trace.json.gz bs_16_rank0.pt.trace.json.gz")
    (session,) = find_sessions(tmp_path)

    assert len(session.files) == 2


def test_the_nth_spans_of_all_workers_are_a_session(tmp_path: Path) -> None:
    draw(
        tmp_path,
        """
        a.1000.pt.trace.json  a.999.pt.trace.json  a.20000.pt.trace.json
        b.1001.pt.trace.json  b.998.pt.trace.json
        """,
    )
    sessions = find_sessions(tmp_path)
    name = tmp_path.name
    assert [(session.run, files(session)) for session in sessions] == [
        (f"{name}/span_3", ["a.20000.pt.trace.json"]),
        (f"{name}/span_2", ["a.1000.pt.trace.json", "b.1001.pt.trace.json"]),
        (f"{name}/span_1", ["a.999.pt.trace.json", "b.998.pt.trace.json"]),
    ]
    assert find_session(tmp_path, "span_1") == sessions[2]


def test_a_second_job_in_the_same_folder_is_suspected(tmp_path: Path) -> None:
    draw(tmp_path, "vm_1.1795239728212212491.pt.trace.json vm_2.1795246928212212491.pt.trace.json")
    (problem,) = find_session(tmp_path).problems
    assert problem.code == "workers-far-apart"
    assert "2 workers were written over 120 minutes" in problem.reason


def test_runs_of_one_program_hours_apart_are_no_hosts_of_one_job(tmp_path: Path) -> None:
    draw(
        tmp_path,
        """
        old/vm.1795239728212212491.pt.trace.json
        a/vm.1795246928212212491.pt.trace.json
        b/vm.1795246929212212491.pt.trace.json
        """,
    )
    session = find_joined_session([tmp_path / name for name in ("old", "a", "b")])

    assert session.hosts == ("a/vm", "b/vm")
    assert [(problem.code, "old" in problem.reason) for problem in session.problems] == [("other-time", True)]


def test_equal_workers_are_told_apart_and_none_is_lost(tmp_path: Path) -> None:
    draw(tmp_path, "w.pt.trace.json w.trace.json")
    (session,) = find_sessions(tmp_path)
    assert (session.hosts, files(session)) == (("w", "w_2"), ["w.pt.trace.json", "w.trace.json"])


def test_what_pytorch_wrote_beside_the_profile_that_was_made_of_it_is_no_session(tmp_path: Path) -> None:
    draw(tmp_path, "logs/vm.1.xplane.pb logs/vm.1.pt.trace.json.gz logs/vm_rank1.xplane.pb logs/vm_rank1.pt.trace.json")
    assert [files(session) for session in find_sessions(tmp_path)] == [["vm.1.xplane.pb", "vm_rank1.xplane.pb"]]


# ---- which is the newest ---------------------------------------------------------------------------------------------


def test_runs_named_by_time_are_ordered_by_name_whatever_the_times_of_the_files(tmp_path: Path) -> None:
    draw(tmp_path, f"{RUN}/vm.xplane.pb {EARLIER}/vm.xplane.pb")
    assert find_session(tmp_path).run == "2026_11_21_03_53_27"


def test_other_runs_are_ordered_by_their_newest_file(tmp_path: Path) -> None:
    draw(tmp_path, "plugins/profile/b/1.xplane.pb plugins/profile/z/1.xplane.pb plugins/profile/a/1.xplane.pb")
    (tmp_path / "plugins/profile/z/0.xplane.pb").touch()
    assert [session.run for session in find_sessions(tmp_path)] == ["z", "a", "b"]


def test_all_kinds_of_runs_stand_in_one_order_of_time(tmp_path: Path) -> None:
    draw(
        tmp_path,
        """
        plugins/profile/2023_11_10_00_00_00/vm.xplane.pb
        plugins/profile/named/vm.xplane.pb
        torch_s/w.1600000000.pt.trace.json
        torch_ns/w.1795239728212212491.pt.trace.json
        torch_us/w.1650000000000000.pt.trace.json
        20240101-120000/w.pt.trace.json
        """,
    )
    assert [session.run for session in find_sessions(tmp_path)] == [
        "torch_ns",
        "20240101-120000",
        "named",
        "2023_11_10_00_00_00",
        "torch_us",
        "torch_s",
    ]


# ---- choosing --------------------------------------------------------------------------------------------------------


def test_a_run_is_chosen_by_its_name_or_the_end_of_it(tmp_path: Path) -> None:
    draw(tmp_path, f"train/{RUN}/vm.xplane.pb eval/{EARLIER}/vm.xplane.pb")
    assert find_session(tmp_path, "eval/2026_11_20_10_00_00").run == "eval/2026_11_20_10_00_00"
    assert find_session(tmp_path, "2026_11_20_10_00_00").run == "eval/2026_11_20_10_00_00"


def test_an_unknown_or_ambiguous_run_lists_those_there_are(tmp_path: Path) -> None:
    draw(tmp_path, f"train/{RUN}/vm.xplane.pb eval/{RUN}/vm.xplane.pb other/vm.xplane.pb")
    with pytest.raises(UsageError) as caught:
        find_session(tmp_path, "nope")
    assert caught.value.problem.code == "unknown-run"
    hint = "the runs are: train/2026_11_21_03_53_27, eval/2026_11_21_03_53_27"
    assert caught.value.problem.hint == f"{hint}, other"
    with pytest.raises(UsageError) as caught:
        find_session(tmp_path, "2026_11_21_03_53_27")
    assert caught.value.problem.reason == "2 runs are named 2026_11_21_03_53_27"
    assert caught.value.problem.hint == hint


def test_a_host_is_chosen_by_name(tmp_path: Path) -> None:
    draw(tmp_path, f"{RUN}/a.xplane.pb {RUN}/b.xplane.pb")
    session = find_session(tmp_path)
    assert pick_host(session, "b") == session.files[1]
    with pytest.raises(UsageError, match=r"there is no host named c .* the hosts are: a, b"):
        pick_host(session, "c")


# ---- files known by their content ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (XSPACE, "xspace"),
        (b"\x0a\xff\xff\x03" + XSPACE[2:], "xspace"),
        (b"\x0a\x00\x0a\x00", "xspace"),
        (TRACE, "kineto"),
        (b"\n  " + TRACE, "kineto"),
        (b"\xef\xbb\xbf" + TRACE, "kineto"),
        (b'[{"ph": "X"}]', "kineto"),
        (gzip.compress(TRACE, mtime=0), "kineto"),
        (gzip.compress(XSPACE, mtime=0), "xspace"),
        (b"", None),
        (b"\x0a", None),
        (b"\nHello, world", None),
        (b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", None),
        (b"\x0a\x06\x0a\x04main", None),  # as an HLO module or a graph begins
        (b"\x0a\x06\x12\x04\xff\x00ab", None),
        (b"\x08\x01\x12\x04main", None),
        (b"\x1f\x8bnot really", None),
        (b"\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22", None),  # an event file
    ],
)
def test_a_format_is_known_by_the_content(content: bytes, name: str | None) -> None:
    found = sniff(content)
    assert (found.name if found else None) == name


def test_every_file_of_the_corpus_is_known_by_its_content(corpus: Path) -> None:
    for session in find_sessions(corpus):
        for file in session.files:
            assert sniff(store.read_prefix(file.path, 4096)) == file.format


@pytest.mark.parametrize("content", [XSPACE, TRACE, gzip.compress(TRACE, mtime=0)], ids=["xspace", "json", "gzip"])
def test_a_cut_or_flipped_prefix_of_a_drawn_file_never_fails(content: bytes) -> None:
    require_that_sniffing_never_fails(content[:64])


def require_that_sniffing_never_fails(prefix: bytes) -> None:
    for cut in range(len(prefix)):
        assert sniff(prefix[:cut]) in (None, *FORMATS)
        assert sniff(prefix[:cut] + b"\xff" + prefix[cut + 1 :]) in (None, *FORMATS)


@pytest.mark.parametrize(
    ("content", "name"), [(XSPACE, "xspace"), (TRACE, "kineto"), (gzip.compress(TRACE, mtime=0), "kineto")]
)
def test_a_renamed_file_is_a_session(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / "renamed.bin"
    path.write_bytes(content)
    session = find_session(path)
    assert (session.run, session.path, session.hosts) == ("renamed.bin", str(tmp_path), ("renamed",))
    assert session.files[0].format.name == name


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("notes.txt", b"hello", r"its name is not that of a profile; .*\*\.xplane\.pb"),
        ("train.py", b"import jax", "to record a program: stepscope run .*train.py; files that can be read: "),
        ("empty.bin", b"", "the file is empty"),
        ("ALL_HOSTS.op_stats_v2.pb", b"\x0a\x02\x0a\x00", "this is not a profile but a cache that XProf made"),
        ("events.out.tfevents.1.vm", b"\x18\x00\x00", "this is not a profile but TensorBoard events"),
        (".cached_tools.json", b"{}", "this is not a profile but a cache that XProf made"),
        ("vm.xplane.pb.gz", gzip.compress(XSPACE, mtime=0), "an XSpace compressed with gzip; unpack it with gunzip"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableError, match=text):
        find_sessions(tmp_path / name)


def test_a_cache_file_is_refused_with_the_way_to_the_profile(tmp_path: Path) -> None:
    draw(tmp_path, f"logs/{RUN}/vm.xplane.pb")
    (tmp_path / "logs" / RUN / "vm.op_stats_v2.pb").write_bytes(b"\x0a\x02\x0a\x00")
    with pytest.raises(UnreadableError) as caught:
        find_sessions(tmp_path / "logs" / RUN / "vm.op_stats_v2.pb")
    assert caught.value.problem.hint == f"there are profiles in {tmp_path}/logs: give that path"


def test_traces_under_other_names_are_found_in_folders_where_no_name_tells_a_profile(tmp_path: Path) -> None:
    draw(tmp_path, "a/trace_10.json a/settings.json a/trace_20.json.gz")
    (tmp_path / "a/settings.json").write_bytes(b'{"name": "x"}')
    (tmp_path / "a/trace_10.json").write_bytes(TRACE)
    (tmp_path / "a/trace_20.json.gz").write_bytes(gzip.compress(b' [{"ph": "X"}]', mtime=0))
    os.utime(tmp_path / "a/trace_10.json", (10, 10))
    assert shown(find_sessions(tmp_path)) == ["a/trace_20.json.gz: trace_20", "a/trace_10.json: trace_10"]
    draw(tmp_path, "b/w.pt.trace.json")
    os.utime(tmp_path / "b/w.pt.trace.json", (20, 20))
    assert shown(find_sessions(tmp_path)) == [
        "a/trace_20.json.gz: trace_20", "b: w", "a/trace_10.json: trace_10"
    ]  # fmt: skip


def write(root: Path, text: str, content: bytes = TRACE) -> Path:
    """Files with a content, one name a word."""
    draw(root, text)
    for name in text.split():
        (root / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
        os.utime(root / name, (1_700_000_000, 1_700_000_000))
    return root


def test_ranks_under_other_names_are_hosts_of_one_session(tmp_path: Path) -> None:
    write(tmp_path, "job/rank-0.json.gz job/rank-1.json.gz job/rank-10.json.gz job/step_1.json job/step_2.json")
    assert sorted(shown(find_sessions(tmp_path))) == [
        "job/step_1.json: step_1", "job/step_2.json: step_2", "job: rank-0 rank-1 rank-10"
    ]  # fmt: skip


def test_files_that_say_that_they_are_ranks_of_one_job_are_hosts_of_one_session(tmp_path: Path) -> None:
    for name, rank, size in (
        ("llama0_done", 0, 2),
        ("llama1_done", 1, 2),
        ("run1", 0, 2),
        ("run2", 0, 2),
        ("x7", 3, 8),
    ):
        stated = b'{"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d}, "traceEvents": [{"ph": "X"}]}'
        write(tmp_path, f"job/{name}.json", stated % (rank, size))

    assert sorted(shown(find_sessions(tmp_path))) == [
        "job/run1.json: run1", "job/run2.json: run2", "job/x7.json: x7", "job: llama0_done llama1_done"
    ]  # fmt: skip


def test_files_that_state_their_rank_and_began_together_are_hosts_of_one_session_whatever_they_are_called(
    tmp_path: Path,
) -> None:
    def record(name: str, rank: int, size: int, second: float) -> None:
        job = {"distributedInfo": {"rank": rank, "world_size": size}, "baseTimeNanoseconds": 1_700_000_000 * 10**9}
        trace = {**job, "traceEvents": [{"ph": "X", "name": "a", "ts": second * 1e6, "dur": 1}]}
        write(tmp_path, f"job/{name}.json.gz", json.dumps(trace).encode())

    record("220ff-rank0", 0, 2, 5.0)
    record("6bd4b-rank1", 1, 2, 5.25)
    record("late", 0, 2, 30)  # the next recording of this job
    record("later", 1, 2, 31)
    record("another-day", 0, 3, 5)
    record("of-two-jobs", 1, 3, 90_000)

    found = sorted(find_sessions(tmp_path), key=lambda each: each.hosts)
    assert [session.hosts for session in found] == [
        ("6bd4b-rank1", "220ff-rank0"), ("another-day",), ("late", "later"), ("of-two-jobs",)
    ]  # fmt: skip
    assert [problem.reason for problem in found[0].problems] == [
        "2 files that state 2 of 2 ranks, begun within 0.25 s, are read as one recording"
    ]


def test_dumps_of_the_flight_recorder_are_found_whatever_stands_before_the_rank(tmp_path: Path) -> None:
    dump = b"\x80\x04\x95\x8c\x07version\x94\x8c\x042.10\x94\x8c\tpg_config\x94"
    write(tmp_path, "a/nccl_trace_rank_gpu7_0 a/nccl_trace_rank_gpu7_1 b/myjob.node3.0 b/myjob.node3.1 b/notes.1", b"x")
    for name in ("a/nccl_trace_rank_gpu7_0", "a/nccl_trace_rank_gpu7_1", "b/myjob.node3.0", "b/myjob.node3.1"):
        (tmp_path / name).write_bytes(dump)
    assert sorted(shown(find_sessions(tmp_path))) == [
        "a: nccl_trace_rank_gpu7_0 nccl_trace_rank_gpu7_1", "b: myjob.node3.0 myjob.node3.1"
    ]  # fmt: skip


def test_what_ran_is_the_session_and_what_was_captured_belongs_to_it_also_under_other_names(tmp_path: Path) -> None:
    write(tmp_path, "graph_execution.json.gz capture_traces/bs_32_rank0.json.gz")
    (session,) = find_sessions(tmp_path)
    assert shown((session,)) == ["graph_execution.json.gz: graph_execution"]
    assert [Path(each.path).name for each in session.files[0].captures] == ["bs_32_rank0.json.gz"]


def test_the_perfetto_copy_of_jax_is_left_out_without_a_word(tmp_path: Path) -> None:
    write(tmp_path, f"{RUN}/perfetto_trace.json.gz")
    draw(tmp_path, f"{RUN}/vm.xplane.pb")
    (session,) = find_sessions(tmp_path)
    assert (shown((session,)), session.problems) == (["2026_11_21_03_53_27: vm"], ())


SNAPSHOT = b"\x80\x04\x95}\x94(\x8c\x08segments\x94]\x94"


def test_a_snapshot_of_memory_is_found_where_nothing_else_is_and_named_beside_others(tmp_path: Path) -> None:
    write(tmp_path, "s.pickle", SNAPSHOT)
    assert shown(find_sessions(tmp_path)) == ["s.pickle: s"]
    write(tmp_path, "other/trace.json")
    (session,) = find_sessions(tmp_path)
    assert shown((session,)) == ["other/trace.json: trace"]
    assert [(problem.code, problem.path) for problem in session.problems] == [("beside", str(tmp_path / "s.pickle"))]


def test_whatever_opens_by_its_path_is_listed_or_named_in_its_folder(tmp_path: Path) -> None:
    for name, content in {
        "a.trace.json": TRACE, "b.json": TRACE, "c.json.gz": TRACE, "s.pickle": SNAPSHOT,
        "nccl_trace_rank_0": b'{"pg_config": {}}', "host.xplane.pb": XSPACE, "notes.txt": b"no profile",
    }.items():  # fmt: skip
        write(tmp_path, name, content)

    sessions = find_sessions(tmp_path)

    listed = {file.path for session in sessions for file in session.files}
    named = {problem.path for session in sessions for problem in session.problems}
    opens = {str(path) for path in tmp_path.iterdir() if path.name != "notes.txt" and find_sessions(path)}
    assert opens == listed | named
    with pytest.raises(UnreadableError):
        find_sessions(tmp_path / "notes.txt")


@pytest.mark.parametrize("content", [XSPACE, TRACE, gzip.compress(TRACE, mtime=0)], ids=["xspace", "json", "gzip"])
def test_where_no_name_says_anything_all_files_are_looked_into(tmp_path: Path, content: bytes) -> None:
    draw(tmp_path, "README weights.safetensors main.hlo_proto.pb")
    write(tmp_path, "out/profile.bin", content)
    assert shown(find_sessions(tmp_path)) == ["out/profile.bin: profile"]
    write(tmp_path, "out/host.xplane.pb")
    assert shown(find_sessions(tmp_path)) == ["out: host"]


def test_a_thousand_files_are_all_hosts_and_what_was_not_looked_at_beside_them_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_content, "MAX_LOOKS", 8)
    draw(tmp_path, " ".join(f"hosts/w{number}.pt.trace.json" for number in range(1000)))
    draw(tmp_path, " ".join(f"results/{number}.json" for number in range(9)))
    (session,) = find_sessions(tmp_path)
    told = "only 8 of 9 files that may be profiles by their endings were checked for profiles"
    assert len(session.files) == 1000
    assert [(problem.code, problem.reason) for problem in session.problems] == [("beside", told)]


# ---- parts of one recording in several folders -----------------------------------------------------------------------


def test_folders_of_ranks_are_one_session_and_it_is_said(tmp_path: Path) -> None:
    draw(tmp_path, "logs/rank_0/vm_7.pt.trace.json logs/rank_1/vm_8.pt.trace.json logs/rank_10/vm_9.pt.trace.json")
    (session,) = find_sessions(tmp_path)
    assert shown((session,)) == ["logs: rank_0 rank_1 rank_10"]
    assert [problem.code for problem in session.problems] == ["joined"]
    assert session.problems[0].reason.startswith("3 folders, written within 2 seconds, are read as one recording")
    assert len(session.joined) == 3
    assert shown(find_sessions(tmp_path / "logs")) == ["logs: rank_0 rank_1 rank_10"]


def test_each_span_of_folders_of_ranks_is_a_session(tmp_path: Path) -> None:
    early, late = 1_700_000_000, 1_700_100_000
    for rank in range(2):
        draw(tmp_path, f"rank{rank}/vm.{early + rank}.pt.trace.json rank{rank}/vm.{late + rank}.pt.trace.json")
    assert [session.hosts for session in find_sessions(tmp_path)] == [("rank_0", "rank_1")] * 2


def test_processes_that_save_their_profiles_seconds_apart_are_one_session(tmp_path: Path) -> None:
    runs = {"a": "10_00_00", "b": "10_00_02", "c": "10_00_59"}
    draw(tmp_path, " ".join(f"plugins/profile/2026_08_20_{run}/{host}.xplane.pb" for host, run in runs.items()))
    (session,) = find_sessions(tmp_path)
    assert shown((session,)) == ["2026_08_20_10_00_00: a b c"]


@pytest.mark.parametrize(
    ("begins_s", "watched", "sessions"),
    [
        (6, False, ["2026_08_20_10_00_10: vm vm_2"]),
        (12, False, ["2026_08_20_10_00_22: vm", "2026_08_20_10_00_10: vm"]),
        # The time before a trigger ends while the window after it is open.
        (6, True, ["2026_08_20_10_00_16: vm", "2026_08_20_10_00_10: vm"]),
    ],
    ids=["at-once", "in-turn", "a-watch"],
)
def test_one_machine_that_recorded_twice_at_once_has_two_processes(
    tmp_path: Path, begins_s: int, watched: bool, sessions
) -> None:
    for begin, saved in ((0, 10), (begins_s, begins_s + 10)):
        path = tmp_path / f"plugins/profile/2026_08_20_10_00_{saved}/vm.xplane.pb"
        path.parent.mkdir(parents=True)
        if watched:
            (path.parent / WATCH_MARKER).write_text("{}")
        trace = drawing.draw("host main | M0--a-M1--a-")
        path.write_bytes(
            to_xspace(
                replace(trace, start_unix_ns=(START_S + begin) * 10**9, stop_unix_ns=(START_S + begin + 10) * 10**9)
            )
        )
    found = find_sessions(tmp_path)
    assert shown(found) == sessions
    assert [problem.code for problem in found[0].problems] == ["joined"] * (len(sessions) == 1)


@pytest.mark.parametrize(
    "names",
    [
        "plugins/profile/2026_08_20_10_00_00/a.xplane.pb plugins/profile/2026_08_20_10_00_02/a.xplane.pb",
        "plugins/profile/2026_08_20_10_00_00/a.xplane.pb plugins/profile/2026_08_20_10_01_02/b.xplane.pb",
        "x/plugins/profile/2026_08_20_10_00_00/a.xplane.pb y/plugins/profile/2026_08_20_10_00_02/b.xplane.pb",
        "2026_08_20_10_00_00/vm_1.pt.trace.json 2026_08_20_10_00_02/vm_2.pt.trace.json",
    ],
    ids=["one-host-twice", "a-minute-apart", "two-runs", "two-jobs-of-one-machine"],
)
def test_what_may_be_of_two_jobs_stays_apart(names: str, tmp_path: Path) -> None:
    draw(tmp_path, names)
    assert len(find_sessions(tmp_path)) == 2


# ---- when there is nothing -------------------------------------------------------------------------------------------


def test_files_that_were_not_looked_into_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_content, "MAX_LOOKS", 64)
    draw(tmp_path, " ".join(f"{number:03}.json" for number in range(80)))
    (tmp_path / "003.json").write_bytes(TRACE)
    (session,) = find_sessions(tmp_path)
    told = "only {} of {} files that may be profiles by their endings were checked for profiles"
    assert [(problem.code, problem.reason) for problem in session.problems] == [("search-bound", told.format(64, 80))]
    (tmp_path / "003.json").unlink()
    with pytest.raises(NotFoundError, match=told.format(64, 79)):
        find_sessions(tmp_path)


def test_a_folder_without_profiles_says_what_is_there_and_where_it_looked(tmp_path: Path) -> None:
    draw(
        tmp_path,
        """
        alone/here/events.out.tfevents.1.vm  alone/here/train/events.out.tfevents.2.vm
        alone/here/a.json  alone/here/b.json  alone/here/c.json.gz  alone/here/train/Makefile
        """,
    )
    with pytest.raises(NotFoundError) as caught:
        find_sessions(tmp_path / "alone" / "here")
    problem = caught.value.problem
    assert problem.path == str(tmp_path / "alone" / "here")
    assert problem.reason == (
        "no profile here, only 3 *.json, 2 TensorBoard events (events.out.tfevents*), 1 without an ending "
        "(searched 2 folders with 6 files, 1 level deep)"
    )
    assert "set it to batches that training reaches" in (problem.hint or "")


@pytest.mark.parametrize("name", ["exp/frist", "exp/first/plugins/absent", "exp/firts/plugins/profile"])
def test_profiles_that_a_wrong_path_may_mean_are_pointed_at(tmp_path: Path, name: str) -> None:
    draw(tmp_path, f"exp/logs/notes/x.txt exp/first/{RUN}/vm.xplane.pb exp/other/{RUN}/vm.xplane.pb")
    with pytest.raises(NotFoundError) as caught:
        find_sessions(tmp_path / name)
    assert caught.value.problem.hint == f"there are profiles in {tmp_path}/exp/first: give that path"


def test_a_mistyped_name_is_likelier_meant_than_the_folder_around_it(tmp_path: Path) -> None:
    draw(tmp_path, f"exp/lone.pt.trace.json exp/first/{RUN}/vm.xplane.pb")
    with pytest.raises(NotFoundError) as caught:
        find_sessions(tmp_path / "exp/frist")
    near = f"there are profiles in {tmp_path}/exp/first and 1 more folder: give the path of one"
    assert caught.value.problem.hint == near


@pytest.mark.parametrize("name", ["mine/absent", "mine", "absent", "mine/logs/absent"])
def test_a_path_without_profiles_never_answers_with_those_of_others(tmp_path: Path, name: str) -> None:
    draw(tmp_path, f"mine/notes.txt theirs/{RUN}/vm.xplane.pb theirs/job/w.pt.trace.json")
    with pytest.raises(NotFoundError) as caught:
        find_sessions(tmp_path / name)
    assert "theirs" not in str(caught.value)


# ---- what may not be read --------------------------------------------------------------------------------------------


def deny(patch: pytest.MonkeyPatch, function: str, part: str) -> None:
    """Refuses paths with a certain part.  Permissions would not stop the superuser."""
    real = getattr(os, function)

    def denying(path: object, *args: object, **options: object) -> object:
        if part in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **options)

    patch.setattr(os, function, denying)


def test_a_refused_folder_is_told_beside_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(tmp_path, f"{EARLIER}/vm.xplane.pb {RUN}/vm.xplane.pb")
    deny(monkeypatch, "scandir", RUN)
    session = find_session(tmp_path)
    assert session.run == "2026_11_20_10_00_00"
    assert [(problem.code, problem.path) for problem in session.problems] == [("no-access", str(tmp_path / RUN))]


def test_a_refused_folder_is_told_where_nothing_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(tmp_path, f"{RUN}/vm.xplane.pb")
    deny(monkeypatch, "scandir", RUN)
    with pytest.raises(NotFoundError) as caught:
        find_sessions(tmp_path)
    assert f"{tmp_path / RUN}: the system does not let you read it" in (caught.value.problem.lost or "")


def test_a_link_to_nothing_is_told(tmp_path: Path) -> None:
    draw(tmp_path, f"{RUN}/vm.xplane.pb")
    (tmp_path / RUN / "gone.xplane.pb").symlink_to("nowhere")
    session = find_session(tmp_path)
    assert session.hosts == ("vm",)
    assert [(problem.code, problem.path) for problem in session.problems] == [
        ("not-found", str(tmp_path / RUN / "gone.xplane.pb"))
    ]


# ---- large and looping trees -----------------------------------------------------------------------------------------


def test_a_loop_of_links_ends_and_gives_each_session_once(tmp_path: Path) -> None:
    draw(tmp_path, f"{RUN}/vm.xplane.pb")
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "plugins/profile/latest").symlink_to(tmp_path / RUN)
    assert shown(find_sessions(tmp_path)) == ["2026_11_21_03_53_27: vm"]


def test_a_link_to_a_folder_that_holds_the_logdir_is_not_followed(tmp_path: Path) -> None:
    draw(tmp_path, "other/plugins/profile/2026_01_01_00_00_00/vm.xplane.pb logs/w.pt.trace.json")
    for name, target in (("root", "/"), ("above", str(tmp_path)), ("up", "..")):
        (tmp_path / "logs" / name).symlink_to(target)
    (session,) = find_sessions(tmp_path / "logs")
    assert shown((session,)) == ["logs: w"]
    assert {problem.code for problem in session.problems} == {"link"}


def test_a_session_beside_very_many_files_is_found_and_the_bound_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(tmp_path, " ".join(f"ckpt/{n}.bin" for n in range(300)) + f" {RUN}/vm.xplane.pb")
    real = store.walk
    monkeypatch.setattr(store, "walk", lambda path, within=None: real(path, max_entries=100, within=within))
    session = find_session(tmp_path)
    assert session.hosts == ("vm",)
    assert [(problem.code, problem.path) for problem in session.problems] == [("search-bound", f"{tmp_path}/ckpt")]


# ---- remote stores and real profiles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "/train/", "/train/plugins/profile/2026_01_01_00_00_00"])
def test_a_drawn_remote_logdir_is_searched_as_a_local_one(below: str) -> None:
    system = fsspec.filesystem("memory")
    system.store.clear()
    for host in ("a", "b"):
        system.pipe_file(f"/logs/train/plugins/profile/2026_01_01_00_00_00/{host}.xplane.pb", XSPACE)

    (session,) = find_sessions(f"memory://logs{below}")

    assert session.run.rpartition("/")[2] == "2026_01_01_00_00_00"
    assert session.hosts == ("a", "b")
    assert [store.read_bytes(file.path) for file in session.files] == [XSPACE] * 2
    system.store.clear()


def test_the_sessions_of_the_corpus(corpus: Path) -> None:
    assert sorted(shown(find_sessions(corpus))) == [
        "jax-mi300x-attention/2025_01_01_00_00_01: 934987a2fc2f",
        "jax-mi300x-conv/2025_01_01_00_00_00: chi-mi300x-013",
        "tf-gpu-multi-worker/2020_12_01_00_00_00: 34.83.195.179_6003 34.83.195.180_6003",
        "torch-h100-owlv2: owlv2",
        "torch-h100-qwen: qwen",
        "torch-mi300-resnet: resnet_act_checkpoint",
        "torch-multirank: rank0 rank1",
        "torch-nccl: nccl",
        "torch-sglang-qwen3: sglang_prefilldecode",
        "torch-v100-resnet50-workers0: worker0",
        "torch-v100-resnet50-workers4: worker0",
        "tpu-inference/2025_12_10_00_00_00: tpu_inference_2",
    ]


def test_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"absent: there is no such file or folder; record one with"):
        find_sessions(tmp_path / "quite" / "alone" / "absent")


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "quite" / "alone").mkdir(parents=True)
    with pytest.raises(NotFoundError, match=r"1 folder with 0 files: no profiler was started, .*stepscope run"):
        find_sessions(tmp_path / "quite" / "alone")


def test_a_packed_copy_of_a_file_is_no_second_host(tmp_path: Path) -> None:
    draw(tmp_path, "rank0.pt.trace.json rank0.pt.trace.json.gz rank1.pt.trace.json.gz")
    assert files(find_session(tmp_path)) == ["rank0.pt.trace.json", "rank1.pt.trace.json.gz"]


def test_an_archive_is_searched_as_a_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        for name in ("a/rank0.pt.trace.json", "a/rank1.pt.trace.json", "top.pt.trace.json"):
            archive.writestr(zipfile.ZipInfo(name), TRACE)
    assert sorted(shown(find_sessions(tmp_path / "logs.zip"))) == ["a: rank0 rank1", "logs.zip: top"]


def test_a_bad_member_of_an_archive_hides_no_good_one(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("good/rank0.pt.trace.json", "bad/rank0.pt.trace.json"):
            archive.writestr(zipfile.ZipInfo(name), TRACE, zipfile.ZIP_DEFLATED)
    whole = path.read_bytes()
    place = whole.index(b"bad/rank0.pt.trace.json") + len("bad/rank0.pt.trace.json")
    path.write_bytes(whole[:place] + b"\xff" * 10 + whole[place + 10 :])

    sessions = {session.run: session for session in find_sessions(path)}

    assert sorted(sessions) == ["bad", "good"]
    (good,) = sessions["good"].files
    assert store.read_bytes(good.path) == TRACE
