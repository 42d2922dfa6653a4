"""Files that nobody records and anybody can send: endless names, a million lines, numbers of thousands of digits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from xspace_build import environment, event, event_name, line, plane, stat, stat_name, text

from stepscope import load
from stepscope.analysis.registry import TOOLS
from stepscope.formats import bounds
from stepscope.formats.base import format_of
from stepscope.formats.xspace.encode import varint
from stepscope.vocabulary.kernel_names import brief

XSPACE = "a.xplane.pb"
PATIENCE_S = 600  # for work of some seconds: it ends a test that hangs, and says nothing of speed


def named(*names: str) -> bytes:
    """A file with an op of each name on the host, and a kernel of this name that it launched."""
    host, kernels, numbers = [], [], range(1, len(names) + 1)
    for number, name in zip(numbers, names, strict=True):
        at, numbered = number * 1000, [stat(1, 6 + number)]
        host += [event(number, at=at, ps=900, stats=numbered), event(0, at=at + 10, ps=100, stats=numbered)]
        kernels.append(event(number, at=at + 100, ps=500, stats=[*numbered, stat(2, name)]))
    types = [event_name(number, name) for number, name in zip(numbers, names, strict=True)]
    ids = stat_name(1, "correlation_id")
    device = line("Stream #1(compute)", *kernels), *types, ids, stat_name(2, "tf_op")
    return plane("/host:CPU", line("python", *host), event_name(0, "cuLaunchKernel"), *types, ids) + plane(
        "/device:GPU:0", *device
    )


def read(data: bytes, name: str = XSPACE):
    """The trace in a file."""
    form = format_of(name)
    assert form is not None
    return form.read(data, name, "")


def test_a_long_name_is_cut_once_and_the_cut_is_reported():
    long = "k" * 100_000

    trace = read(named(long + "1") + plane("/device:GPU:1", line("s", event(1, at=0, ps=1)), event_name(1, long + "2")))

    names = {trace.strings[row] for row in trace.event_types.name.tolist()}
    cut = sorted(name for name in names if name.startswith("kkk"))
    assert len(cut) == 2  # different names stay different
    assert all(len(name.encode()) == bounds.LONGEST_NAME and "… [cut, 100,001 bytes, " in name for name in cut)
    assert [problem.code for problem in trace.problems] == ["long-names"]
    assert trace.problems[0].reason == "2 names longer than 16,384 bytes, up to 100,001"
    trace.check()


def test_a_name_of_usual_length_is_left_alone():
    trace = read(named("k" * bounds.LONGEST_NAME))

    assert trace.problems == ()
    assert trace.event_stats.value.max() < len(trace.strings)


def test_a_cut_name_is_text():
    trace = read(named("é" * 20_000))

    (name,) = {trace.strings[row] for row in trace.event_types.name.tolist() if trace.strings[row].startswith("é")}
    assert "\N{REPLACEMENT CHARACTER}" not in name


def test_of_too_many_lines_those_with_the_most_events_are_kept(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_LINES", 2)
    events = [event(1, at=at * 1000, ps=900, stats=[stat(1, at)]) for at in range(3)]
    lines = [line(f"t{n}", *events[:count], line_id=n) for n, count in enumerate((1, 3, 0, 2))]

    trace = read(plane("/host:CPU", *lines, event_name(1, "op"), stat_name(1, "id")))

    trace.check()
    assert [trace.line_name(row) for row in range(len(trace.lines))] == ["t1", "t3"]
    assert trace.events.line.tolist() == [0, 0, 0, 1, 1]
    assert trace.event_stats.value.tolist() == [0, 1, 2, 0, 1]
    assert trace.partial
    assert [(problem.code, problem.lost) for problem in trace.problems] == [("too-many-lines", "1 event")]


def profile(of: str, start_ns: int, *more: bytes) -> bytes:
    op = plane("/host:CPU", line("python", event(1, at=0, ps=900)), event_name(1, of))
    return op + environment(start_ns, start_ns + 10**9) + b"".join(more)


A_STEPSCOPE_PLANE = plane("/device:CUSTOM:Worker processes (Stepscope)", line("1", event(1, ps=5)), event_name(1, "w"))
JOINED = {
    "twice the same": (profile("first", 10**18), profile("first", 10**18)),
    "of another time": (profile("first", 10**18), profile("second", 2 * 10**18)),
    "with host names": (profile("first", 10**18, text(4, "vm")), profile("second", 2 * 10**18, text(4, "other"))),
    "with planes appended": (profile("first", 10**18, text(4, "vm"), A_STEPSCOPE_PLANE), profile("second", 2 * 10**18)),
    "the second one cut": (profile("first", 10**18), profile("second", 2 * 10**18, text(4, "other"))[:-3]),
    "three": (profile("first", 10**18), profile("second", 2 * 10**18) + profile("third", 3 * 10**18)),
}


@pytest.mark.parametrize("case", JOINED)
def test_of_joined_profiles_the_first_is_read_and_the_rest_is_named(case):
    first, rest = JOINED[case]
    alone, both = read(first), read(first + rest)

    assert alone.problems == ()
    (problem,) = both.problems
    assert (problem.code, problem.offset) == ("joined", len(first))
    assert problem.lost == f"the {len(rest):,} bytes from there on"
    assert both.partial
    assert both.start_unix_ns == alone.start_unix_ns
    assert both.host == alone.host
    assert [both.strings[row] for row in both.event_names()] == [alone.strings[row] for row in alone.event_names()]


def test_planes_that_were_appended_to_a_profile_belong_to_it():
    whole = read(profile("first", 10**18, A_STEPSCOPE_PLANE, plane("/host:metadata"), plane("/host:metadata")))

    assert (whole.problems, whole.partial, len(whole.events)) == ((), False, 2)


def test_planes_of_one_name_without_a_second_session_are_read_and_reported():
    once = plane("/host:CPU", line("python", event(1, at=0, ps=900)), event_name(1, "op"))

    assert read(once).problems == ()
    (problem,) = read(once + once).problems
    assert (problem.code, problem.reason) == ("repeated-planes", "several parts of this file are named /host:CPU")
    assert read(once + once).partial  # the figures are those of two runs: nobody may take them for one


# -- names that a careless rule reads again and again ------------------------------------------------------------------

_UNITS = (
    "a::", "A", "1x", "_1", "f<", "f(", "/", "[clone ", "std::enable_if<", "jit(", "MatMul:", "nccl", "$x.py:1 ",
    "gemm", "%f = f32[1] ", "step ",
)  # fmt: skip
_EVERY_TOOL = """
import sys
from stepscope import load
from stepscope.analysis.registry import TOOLS
from stepscope.report.export import SHEETS
profile = load(sys.argv[1])
for tool in TOOLS:
    report = profile.report(tool.name)
    report.to_json(), SHEETS["markdown"](report, 20), SHEETS["html"](report, 20)
print("done")
"""


def test_very_long_names_cost_no_more_than_their_length(tmp_path):
    """With an expression whose cost grows with the square, one of these names takes minutes."""
    path = tmp_path / XSPACE
    path.write_bytes(named(*(unit * (200_000 // len(unit)) for unit in _UNITS)))

    ended = subprocess.run(
        [sys.executable, "-c", _EVERY_TOOL, str(path)], capture_output=True, text=True, timeout=PATIENCE_S
    )

    assert (ended.returncode, ended.stdout.strip()) == (0, "done"), ended.stderr[-2000:]


@pytest.mark.parametrize("unit", _UNITS)
def test_a_kernels_name_is_shortened_whatever_its_length(unit):
    assert len(brief(unit * (16_000 // len(unit)))) <= 56


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::fill<4, at::Functor<float, at::cuda::detail::Index<unsigned int>, 1> >(int, float*)",
         "fill<4, Functor<float, Index<unsigned int>, 1> >"),
        ("std::enable_if<sizeof(float) == 4, void>::type at::native::a_kernel_with_a_long_name_indeed<int>(int)",
         "at::native::a_kernel_with_a_long_name_indeed<int>"),
        ("void this_is_a_kernel_with_a_very_long_name_that_was_cloned_x [clone .kd] [clone .isra.0]",
         "this_is_a_kernel_with_a_very_long_name_that_was_cloned_x"),
    ],
)  # fmt: skip
def test_what_is_dropped_of_a_kernels_name(name, short):
    assert brief(name) == short


# -- numbers -----------------------------------------------------------------------------------------------------------

_HUGE_DIMS = [
    [[10**25, 10**25], [10**25]], "[[1" + "0" * 5000 + ",3]]", [[2**63 - 1, 2], [2, 2**63 - 1]], [[-5, -3], [-3, 2]],
    [[1.5, 2]], [["a"]], {"a": 1}, 10**30, "[" * 500, [[4 * 10**9, 4 * 10**9], [4 * 10**9, 4 * 10**9]],
]  # fmt: skip


@pytest.mark.parametrize("dims", _HUGE_DIMS, ids=range(len(_HUGE_DIMS)))
def test_no_tool_fails_on_numbers_that_no_tensor_has(tmp_path, dims):
    events = []
    for step in range(3):
        at = step * 20_000
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 19_000})
        for number, op in enumerate(("aten::mm", "aten::conv2d", "aten::addmm", "record_param_comms")):
            call = {"External id": step * 9 + number + 1, "Input Dims": dims, "Input type": ["float", "float"]}
            events.append({"ph": "X", "cat": "cpu_op", "name": op, "ts": at + number * 999, "dur": 900, "args": call})
    for one in events:
        one |= {"pid": 1, "tid": 1}
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))

    profile = load(path)

    for tool in TOOLS:
        assert json.loads(profile.report(tool.name).to_json())["tool"] == tool.name


# -- many of everything ------------------------------------------------------------------------------------------------

# What grows with the square does so each time; what another program does to a cache does not.
_LEAST = """
def least(measure, tries=3):
    found = measure()
    return found if found[0] < 6 or tries == 1 else min(found, least(measure, tries - 1))
"""
_GROWTH = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]), int(sys.argv[1])))
import stepscope
stepscope.load(sys.argv[2]).overview().to_json()  # what is imported, compiled and cached once
def spend(path):
    before = time.process_time()
    report = stepscope.load(path).overview()
    answer = report.to_json()
    assert answer[:1] == b"{"
    return time.process_time() - before, len(report.warnings)
def growth():
    fewer, _ = spend(sys.argv[3])
    more, warnings = spend(sys.argv[4])
    return more / fewer, warnings
print(*least(growth))
"""
_GIGABYTE = 1 << 30
UNCACHED = os.environ | {"STEPSCOPE_CACHE": "off"}
_TIMES = 4  # as many of everything
# Between four times the work, which grows with the file, and sixteen times, which grows with its square.
_MOST_GROWTH = 8


def _many_lines(count: int) -> bytes:
    last = 1 << 21  # numbers of three bytes: all of these lines have the same length, and differ there alone
    one = line("worker", event(1, at=0, ps=1000), line_id=last - 1)
    place = one.index(varint(last - 1))
    lines = b"".join(b"".join((one[:place], varint(last - 1 - n), one[place + 3 :])) for n in range(count))
    return plane("/host:CPU", lines, event_name(1, "op"))


def _many_names(count: int) -> bytes:
    names = b"".join(event_name(number, f"op{number}:MatMul") for number in range(1, count))
    return plane("/host:CPU", line("python", event(1, at=0, ps=1000)), names)


def _many_steps(count: int) -> bytes:
    marks = b"".join(event(1, at=at * 10**6, ps=900_000, stats=[stat(1, at)]) for at in range(count))
    return plane("/host:CPU", line("python", marks), event_name(1, "train"), stat_name(1, "step_num"))


@pytest.mark.parametrize(
    ("make", "count", "warnings"),
    [
        (_many_lines, bounds.MOST_LINES // 2, None),
        (_many_names, 60_000, None),
        (_many_steps, 20_000, None),
        (lambda count: named("k" * count), 10**5, True),
    ],
    ids=["lines", "metadata", "steps", "name"],
)
def test_the_work_on_a_file_grows_with_it_and_not_with_its_square(tmp_path: Path, make, count, warnings):
    """In processor time of one process, as a ratio, so that a slow or busy machine changes nothing; in half a
    gigabyte, where four times as much of everything would fit into one."""
    counts = {"one": 1, "few": count // _TIMES, "many": count}
    paths = [tmp_path / f"{name}.xplane.pb" for name in counts]
    for path, number in zip(paths, counts.values(), strict=True):
        path.write_bytes(make(number))

    command = [sys.executable, "-c", _LEAST + _GROWTH, str(_GIGABYTE // 2), *map(str, paths)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=UNCACHED)

    assert ended.returncode == 0, ended.stderr[-2000:]
    growth, warned = map(float, ended.stdout.split())
    assert growth < _MOST_GROWTH
    assert warnings is None or bool(warned) == warnings


_MANY_HOSTS = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]), int(sys.argv[1])))
import stepscope
from stepscope.analysis.registry import tool_named
tool = tool_named("overview")
def spend(logdir):
    before = time.process_time()
    profile = stepscope.load(logdir)
    one = profile.analyse("overview", profile.hosts[-1])
    merged = tool.merge(tool.combine_hosts([one] * len(profile.hosts)))
    return time.process_time() - before, len(profile.hosts), len(merged.hosts)
spend(sys.argv[2])
def growth():
    (fewer, *_), (more, *counts) = map(spend, sys.argv[2:])
    return more / fewer, *counts
print(*least(growth))
"""


def test_the_work_of_finding_and_merging_hosts_grows_with_their_number(tmp_path: Path):
    """What grows with the hosts is finding and merging them.  The analysis of a host takes as long as among few."""
    (tmp_path / "one").write_bytes(_many_steps(5))
    for logdir, count in (("few", 10**4 // _TIMES), ("many", 10**4)):
        run = tmp_path / logdir / "plugins" / "profile" / "run"
        run.mkdir(parents=True)
        for number in range(count):
            (run / f"host{number}.{XSPACE[2:]}").hardlink_to(tmp_path / "one")

    command = [
        sys.executable,
        "-c",
        _LEAST + _MANY_HOSTS,
        str(_GIGABYTE),
        str(tmp_path / "few"),
        str(tmp_path / "many"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=UNCACHED)

    assert ended.returncode == 0, ended.stderr[-2000:]
    growth, found, merged = map(float, ended.stdout.split())
    assert growth < _MOST_GROWTH
    assert (found, merged) == (10**4, 10**4)
