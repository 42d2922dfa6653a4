"""The measures.  A measure has one action per tool.  The tools take turns, so that all meet the same machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench import views
from bench.process import Limits, Sample, run_worker
from bench.profiles import BenchProfile
from bench.tools import CACHE_OFF, QUESTIONS, Question, Stepscope, Xprof, XprofRs, find_xprof_rs, worker_command

Action = Callable[[], Sample]


@dataclass(frozen=True)
class Measure:
    """One table of the results.

    Attributes:
        name: short stable identifier, for `--only`.
        title: heading of the table.
        meaning: what was done and what the figure means.
        actions: how each tool, or each variant of one, does it.
        takes: returns the seconds of a sample.
        per_byte: whether to show the file's size per second.
    """

    name: str
    title: str
    meaning: str
    actions: Mapping[str, Action]
    takes: Callable[[Sample], float]
    per_byte: bool = False


@dataclass(frozen=True)
class Subjects:
    """The tools that are installed."""

    stepscope: Stepscope
    xprof: Xprof
    xprof_rs: XprofRs | None

    @classmethod
    def find_tools(cls) -> Subjects:
        """Finds the tools.  XProf runs in a worker, so a missing XProf shows as a failed sample."""
        binary = find_xprof_rs()
        return cls(Stepscope(), Xprof(), XprofRs(binary) if binary else None)

    def all_tools(self) -> list[Stepscope | Xprof | XprofRs]:
        """The tools, in the order of the tables."""
        return [self.stepscope, self.xprof, *([self.xprof_rs] if self.xprof_rs else [])]


def process_seconds(sample: Sample) -> float:
    """The time of the whole process."""
    return sample.wall_s


def first_call_seconds(sample: Sample) -> float:
    """The time of the first call."""
    return sample.calls_s[0]


def last_call_seconds(sample: Sample) -> float:
    """The time of the last call."""
    return sample.calls_s[-1]


def list_measures(profile: BenchProfile, small: BenchProfile, limits: Limits) -> Iterator[Measure]:
    """All measures on one profile; `small` warms processes up."""
    subjects = Subjects.find_tools()
    yield _measure_cold(subjects, profile, limits)
    yield _measure_running(subjects, profile, small, limits)
    yield _measure_reopened(subjects, profile, small, limits)
    for asked in QUESTIONS:
        yield _measure_tool(subjects, profile, small, limits, asked)
    yield from _measure_views(subjects, profile, small, limits)
    yield from _measure_decoding(profile, small, limits)


def _measure_views(subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits) -> Iterator[Measure]:
    rust = [views.XprofRsPage(subjects.xprof_rs.binary)] if subjects.xprof_rs else []
    pages: list[views.Page] = [views.StepscopePage(), views.XprofPage(), *rust]

    def actions(at: str) -> dict[str, Action]:
        return {
            page.name: lambda page=page: views.time_page(page, profile.path, small.path, limits, at)  # type: ignore[misc]
            for page in pages
        }

    yield Measure(
        "page",
        "First content of the page",
        "All requests of the start page, one after the other, until there is something to read, for a profile that "
        "appeared while the server ran and that it has not read. The peak is that of the server.",
        actions("page"),
        first_call_seconds,
    )
    timeline = actions("timeline")
    yield Measure(
        "timeline-open",
        "Timeline, first picture",
        f"The whole recording at {views.WIDTH} pixels, in a server that has shown the start page of this profile.",
        timeline,
        first_call_seconds,
    )
    yield Measure(
        "timeline-window",
        "Timeline, a window",
        f"Median of {len(views.PLACES) * (len(views.ZOOMS) - 1)} windows of all tracks, from a quarter to a 256th of "
        "the recording, over HTTP. Stepscope is asked for the tiles that cover a window, as its page asks.",
        timeline,
        views.median_window_seconds,
    )


def list_start_measures(profile: BenchProfile, limits: Limits) -> Iterator[Measure]:
    """The measures of a start: imports, and the first run on a machine."""
    yield _measure_imports(profile, limits)
    stepscope = Stepscope()
    yield Measure(
        "first-run",
        "First run ever",
        "The overview as a whole process of a user who never ran Stepscope (an empty home, an empty cache that is "
        "written), compared with a later cold one. The difference is paid once per machine.",
        {
            "Stepscope, later": lambda: stepscope.run_cold(profile.path, limits),
            "Stepscope, first run": lambda: stepscope.run_first_time(profile.path, limits),
        },
        process_seconds,
    )


def _measure_cold(subjects: Subjects, profile: BenchProfile, limits: Limits) -> Measure:
    actions: dict[str, Action] = {
        tool.name: lambda tool=tool: tool.run_cold(profile.path, limits)  # type: ignore[misc]
        for tool in subjects.all_tools()
    }
    actions["Stepscope, command line"] = lambda: subjects.stepscope.run_command_line(profile.path, limits)
    return Measure(
        "cold",
        "Overview, cold process",
        "From the start of the process to its exit, nothing cached. Stepscope and XProf by their "
        "Python APIs, xprof-rs by `xprof-rs get_overview`.",
        actions,
        process_seconds,
    )


def _measure_running(subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits) -> Measure:
    return Measure(
        "running",
        "Overview, running process",
        "The first call for this profile in a process that has already analysed a small one; no result cache. xprof-rs "
        "has no API: its figure is the first request to its server, HTTP included.",
        {
            tool.name: lambda tool=tool: tool.call_warm(profile.path, small.path, limits)  # type: ignore[misc]
            for tool in subjects.all_tools()
        },
        first_call_seconds,
    )


def _measure_tool(
    subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits, asked: Question
) -> Measure:
    tools = subjects.all_tools() if asked.page else [subjects.stepscope]
    actions: dict[str, Action] = {
        tool.name: lambda tool=tool: tool.call_warm(profile.path, small.path, limits, asked)  # type: ignore[misc]
        for tool in tools
    }
    actions["Stepscope, trace in memory"] = lambda: subjects.stepscope.use_decoded(
        profile.path, small.path, limits, asked
    )
    theirs = f"`{asked.page}` of XProf and xprof-rs" if asked.page else "nothing: XProf and xprof-rs no longer have it"
    return Measure(
        f"tool-{asked.tool}",
        f"{asked.tool}, running process",
        f"The first call of `{asked.tool}` for this profile in a process that has already analysed a small one, "
        f"compared with {theirs}. In memory: another tool has already read the trace.",
        actions,
        first_call_seconds,
    )


def _measure_reopened(subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits) -> Measure:
    return Measure(
        "reopen",
        "Overview, second open",
        "The call in a second process, after a first one stored its results: Stepscope in its cache, XProf in a file "
        "beside the profile. xprof-rs stores nothing; its figure is the second request to one server.",
        {
            tool.name: lambda tool=tool: tool.reopen(profile.path, small.path, limits)  # type: ignore[misc]
            for tool in subjects.all_tools()
        },
        last_call_seconds,
    )


def _measure_decoding(profile: BenchProfile, small: BenchProfile, limits: Limits) -> Iterator[Measure]:
    def action(task: str, *options: str) -> Action:
        command = worker_command(task, profile.path, "--warm", str(small.path), "--repeat", "3", *options)
        return lambda: run_worker(command, limits, CACHE_OFF)

    tasks = {"Stepscope": "stepscope_decode", "XProf": "xprof_decode"}
    meaning = (
        "From bytes in memory to a trace, without analysis: Stepscope's columns, XProf's protobuf tree (C++). Warmed "
        "up on a small profile; the {which} of three calls. xprof-rs has no such step."
    )
    if sys.platform == "linux":
        one_core = {tool: action(task, "--one-core") for tool, task in tasks.items()}
        yield Measure(
            "decode-one-core-first",
            "Decode on one core, first call",
            meaning.format(which="first"),
            one_core,
            first_call_seconds,
            per_byte=True,
        )
        yield Measure(
            "decode-one-core",
            "Decode on one core, repeated",
            meaning.format(which="last"),
            one_core,
            last_call_seconds,
            per_byte=True,
        )
    every_core = {tool: action(task) for tool, task in tasks.items()}
    yield Measure(
        "decode",
        "Decode on all cores, repeated",
        meaning.format(which="last"),
        every_core,
        last_call_seconds,
        per_byte=True,
    )


def _measure_imports(profile: BenchProfile, limits: Limits) -> Measure:
    tasks = {"`import stepscope`": "import_stepscope", "XProf's conversion module": "import_xprof"}
    return Measure(
        "import",
        "Import",
        "The import statement alone, in a fresh process.",
        {
            name: lambda task=task: run_worker(worker_command(task, profile.path), limits, CACHE_OFF)  # type: ignore[misc]
            for name, task in tasks.items()
        },
        first_call_seconds,
    )
