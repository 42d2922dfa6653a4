"""What is measured.  A measure has one action a tool; the tools take turns, so that all meet the same machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench import views
from bench.process import Limits, Sample, run_worker
from bench.profiles import BenchProfile
from bench.tools import CACHE_OFF, QUESTIONS, Question, Stepscope, Xprof, XprofRs, worker_command, xprof_rs

Action = Callable[[], Sample]


@dataclass(frozen=True)
class Measure:
    """One table of the results.

    Attributes:
        name: short stable identifier, for `--only`.
        title: heading of the table.
        meaning: what was done and what the figure is.
        actions: how each tool, or each variant of one, does it.
        takes: picks the seconds out of a sample.
        per_byte: whether a rate over the file's size makes sense.
    """

    name: str
    title: str
    meaning: str
    actions: Mapping[str, Action]
    takes: Callable[[Sample], float]
    per_byte: bool = False


@dataclass(frozen=True)
class Subjects:
    """The tools that are there."""

    stepscope: Stepscope
    xprof: Xprof
    xprof_rs: XprofRs | None

    @classmethod
    def found(cls) -> Subjects:
        """XProf is asked in a worker, so its absence shows as a failed sample."""
        binary = xprof_rs()
        return cls(Stepscope(), Xprof(), XprofRs(binary) if binary else None)

    def everyone(self) -> list[Stepscope | Xprof | XprofRs]:
        """In the order of the tables."""
        return [self.stepscope, self.xprof, *([self.xprof_rs] if self.xprof_rs else [])]


def wall(sample: Sample) -> float:
    """The whole process."""
    return sample.wall_s


def first_call(sample: Sample) -> float:
    """The first timed call."""
    return sample.calls_s[0]


def last_call(sample: Sample) -> float:
    """The last timed call."""
    return sample.calls_s[-1]


def measures(profile: BenchProfile, small: BenchProfile, limits: Limits) -> Iterator[Measure]:
    """All measures on one profile; `small` warms processes up."""
    subjects = Subjects.found()
    yield _cold(subjects, profile, limits)
    yield _running(subjects, profile, small, limits)
    yield _reopened(subjects, profile, small, limits)
    for asked in QUESTIONS:
        yield _tool(subjects, profile, small, limits, asked)
    yield from _views(subjects, profile, small, limits)
    yield from _decode(profile, small, limits)


def _views(subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits) -> Iterator[Measure]:
    rust = [views.XprofRsPage(subjects.xprof_rs.binary)] if subjects.xprof_rs else []
    pages: list[views.Page] = [views.StepscopePage(), views.XprofPage(), *rust]

    def actions(at: str) -> dict[str, Action]:
        return {
            page.name: lambda page=page: views.look(page, profile.path, small.path, limits, at)  # type: ignore[misc]
            for page in pages
        }

    yield Measure(
        "page",
        "First content of the page",
        "All that the start page asks its server, one after the other, until there is something to read, for a profile "
        "that appeared while the server ran and that it has not read. The peak is that of the server.",
        actions("page"),
        first_call,
    )
    timeline = actions("timeline")
    yield Measure(
        "timeline-open",
        "Timeline, first picture",
        f"The whole recording at {views.WIDTH} pixels, in a server that has shown the start page of this profile.",
        timeline,
        first_call,
    )
    yield Measure(
        "timeline-window",
        "Timeline, a window",
        f"Median of {len(views.PLACES) * (len(views.ZOOMS) - 1)} windows of all tracks, from a quarter to a 256th of "
        "the recording, over HTTP. Stepscope is asked for ten tracks at a time, one request after the other.",
        timeline,
        views.window,
    )


def measures_of_starting(profile: BenchProfile, limits: Limits) -> Iterator[Measure]:
    """What a start costs: imports, and what the first one on a machine pays."""
    yield _imports(profile, limits)
    stepscope = Stepscope()
    yield Measure(
        "first-run",
        "First run ever",
        "The overview as a whole process of a user who never ran Stepscope (an empty home, an empty cache that is "
        "written), beside a later cold one. The difference is paid once a machine.",
        {
            "Stepscope, later": lambda: stepscope.cold(profile.path, limits),
            "Stepscope, first run": lambda: stepscope.first_ever(profile.path, limits),
        },
        wall,
    )


def _cold(subjects: Subjects, profile: BenchProfile, limits: Limits) -> Measure:
    actions: dict[str, Action] = {
        tool.name: lambda tool=tool: tool.cold(profile.path, limits)  # type: ignore[misc]
        for tool in subjects.everyone()
    }
    actions["Stepscope, command line"] = lambda: subjects.stepscope.command_line(profile.path, limits)
    return Measure(
        "cold",
        "Overview, cold process",
        "From the start of the process to its exit, nothing cached. Stepscope and XProf by their "
        "Python APIs, xprof-rs by `xprof-rs get_overview`.",
        actions,
        wall,
    )


def _running(subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits) -> Measure:
    return Measure(
        "running",
        "Overview, running process",
        "The first call for this profile in a process that has analysed a small one before; no result cache. xprof-rs "
        "has no API: the first request to its server, HTTP included.",
        {
            tool.name: lambda tool=tool: tool.running(profile.path, small.path, limits)  # type: ignore[misc]
            for tool in subjects.everyone()
        },
        first_call,
    )


def _tool(subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits, asked: Question) -> Measure:
    tools = subjects.everyone() if asked.page else [subjects.stepscope]
    actions: dict[str, Action] = {
        tool.name: lambda tool=tool: tool.running(profile.path, small.path, limits, asked)  # type: ignore[misc]
        for tool in tools
    }
    actions["Stepscope, trace in memory"] = lambda: subjects.stepscope.decoded(profile.path, small.path, limits, asked)
    theirs = f"`{asked.page}` of XProf and xprof-rs" if asked.page else "which XProf and xprof-rs do not have any more"
    return Measure(
        f"tool-{asked.tool}",
        f"{asked.tool}, running process",
        f"The first call of `{asked.tool}` for this profile in a process that has analysed a small one before, beside "
        f"{theirs}. In memory: another tool has read the trace before.",
        actions,
        first_call,
    )


def _reopened(subjects: Subjects, profile: BenchProfile, small: BenchProfile, limits: Limits) -> Measure:
    return Measure(
        "reopen",
        "Overview, second open",
        "The call in a second process, after a first one stored what it keeps: Stepscope its cache, XProf its file "
        "beside the profile. xprof-rs stores nothing; its figure is the second request to one server.",
        {
            tool.name: lambda tool=tool: tool.reopened(profile.path, small.path, limits)  # type: ignore[misc]
            for tool in subjects.everyone()
        },
        last_call,
    )


def _decode(profile: BenchProfile, small: BenchProfile, limits: Limits) -> Iterator[Measure]:
    def action(task: str, *options: str) -> Action:
        command = worker_command(task, profile.path, "--warm", str(small.path), "--repeat", "3", *options)
        return lambda: run_worker(command, limits, CACHE_OFF)

    tasks = {"Stepscope": "stepscope_decode", "XProf": "xprof_decode"}
    meaning = (
        "Bytes in memory to a trace, no analysis: Stepscope's columns, XProf's protobuf tree (C++). Compiled and "
        "warmed up on a small profile; the {which} of three calls. xprof-rs offers no such step."
    )
    if sys.platform == "linux":
        one_core = {tool: action(task, "--one-core") for tool, task in tasks.items()}
        yield Measure(
            "decode-one-core-first",
            "Decode on one core, first call",
            meaning.format(which="first"),
            one_core,
            first_call,
            per_byte=True,
        )
        yield Measure(
            "decode-one-core",
            "Decode on one core, repeated",
            meaning.format(which="last"),
            one_core,
            last_call,
            per_byte=True,
        )
    every_core = {tool: action(task) for tool, task in tasks.items()}
    yield Measure(
        "decode", "Decode on all cores, repeated", meaning.format(which="last"), every_core, last_call, per_byte=True
    )


def _imports(profile: BenchProfile, limits: Limits) -> Measure:
    tasks = {"`import stepscope`": "import_stepscope", "XProf's conversion module": "import_xprof"}
    return Measure(
        "import",
        "Import",
        "The import statement alone, in a fresh process.",
        {
            name: lambda task=task: run_worker(worker_command(task, profile.path), limits, CACHE_OFF)  # type: ignore[misc]
            for name, task in tasks.items()
        },
        first_call,
    )
