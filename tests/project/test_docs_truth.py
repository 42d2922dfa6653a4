"""Numbers, options and exit statuses that pages state are those of the code."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from places import ROOT

from stepscope.agents import server, tools
from stepscope.analysis.compare import differences
from stepscope.analysis.steps import stack_samples
from stepscope.capture import program_end
from stepscope.capture.auto import autopilot
from stepscope.capture.auto.settings import Settings
from stepscope.capture.remote import front, outcome, service
from stepscope.capture.tracers import jax as jax_tracer
from stepscope.capture.watching import continuous, ring, series
from stepscope.capture.watching.options import WatchOptions
from stepscope.cli import run as run_command
from stepscope.cli import sql, team
from stepscope.cli.commands import all_panels
from stepscope.cli.main import run
from stepscope.engines import schedule, session_work
from stepscope.formats import base
from stepscope.formats.store import remote
from stepscope.report import html, sections
from stepscope.sql import limits
from stepscope.web import listener, serving, site
from stepscope.web.auth import gate, tokens
from stepscope.web.notes import purge

DOCS = ROOT / "docs"
GIB, MIB = 1 << 30, 1 << 20
COMMANDS = {command.name: command for panel in all_panels().values() for command in panel}

# Page, and a sentence with the numbers of the code in it.
STATED = [
    ("capture.md", f"`--skip` steps are skipped ({Settings.skip}), and `--steps` steps are captured"),
    ("command-line.md", f"`run` sets {run_command._LEAST_SECONDS:g}, and 0 captures"),
    ("capture.md", f"functions that take {autopilot._LEAST_CALL_US:g} us or more"),
    ("capture.md", f"less than {stack_samples._LEAST_PS // 10**9} ms in all steps together"),
    ("capture.md", f"at most {program_end._HARD_END_PATIENCE_S:g} seconds"),
    ("capture-remote.md", f"at most {front._MOST_CONNECTIONS} connections, of which one machine"),
    ("capture-remote.md", f"may have {front._MOST_OF_A_CLIENT}."),
    ("getting-started.md", f"displays in a notebook with {sections.TABLE_ROWS} rows per table"),
    ("notebooks.md", f"At most {html._LIVE_ROWS} rows of a table are shown"),
    ("page.md", f"the first port to try, {serving.DEFAULT_PORT} by default"),
    ("page.md", f"kept up to a total of {site.DEFAULT_TRACE_BYTES // GIB} GiB"),
    ("serving.md", f"the open ones for at most {team.PATIENCE_S:g} seconds"),
    ("serving.md", f"At most {listener.MOST_CONNECTIONS} connections are open"),
    ("serving.md", f"a request has {listener.LONGEST_REQUEST_SECONDS:g} seconds to arrive"),
    ("scale.md", f"several hosts of {session_work.WORTH_PROCESSES_BYTES // MIB} MB together or more"),
    ("scale.md", f"ranges of {remote.RANGE_BYTES // MIB} to {remote.MOST_RANGE_BYTES // MIB} MB"),
    ("sql.md", f"`--memory SIZE`, {limits.OWN_MEMORY_BYTES // GIB} GB by default"),
    ("sql.md", f"for {limits.Limits().seconds:g} s and {limits.Limits().memory_bytes // GIB} GB at most"),
    ("sql.md", f"an answer has at most {sql._MOST_SHOWN:,} rows"),
    ("compare.md", f"at most {differences.NEGLIGIBLE_SHARE:.1%}".replace("%", " %")),
]
IN_WORDS = [
    ("capture.md", "or after ten seconds", jax_tracer.LONGEST_WAIT_S, 10),
    ("capture-remote.md", "five minutes at most", outcome.OPEN_ENDED_MS, 300_000),
    ("scale.md", "four at a time, and what fails for a passing reason is tried again three times",
     (remote.RANGES_AT_ONCE, len(remote.WAITS_SECONDS)), (4, 3)),
    ("scale.md", "ten minutes, and a second more for each MB",
     (session_work._LEAST_SECONDS, session_work._LEAST_BYTES_PER_SECOND), (600, 1e6)),
    ("scale.md", "it is tried again twice before", schedule.MOST_TRIES, 2),
    ("serving.md", "A connection without a byte for a minute ends", listener.IDLE_SECONDS, 60),
    ("serving.md", "gets a cookie for twelve hours", tokens.COOKIE_SECONDS, 12 * 3600),
    ("serving.md", "After ten wrong tokens from one address in five minutes",
     (gate.MOST_FAILURES, gate.WINDOW_SECONDS), (10, 300)),
    ("serving.md", "also on other servers with the same `STEPSCOPE_STORE` within two seconds", gate._FRESH_SECONDS, 2),
    ("serving.md", "at most 20 every ten minutes; one day is the shortest time",
     (purge.MOST_AT_ONCE, purge._LOOK_SECONDS, purge.LEAST_DAYS), (20, 600, 1)),
    ("sql.md", "A server answers four queries at a time, two of them of one person",
     (limits.AT_ONCE, limits.EACH), (4, 2)),
    ("capture-remote.md", "A request asks for at most an hour, has at most 1 MiB",
     (outcome.LONGEST_MS, service.LONGEST_REQUEST_BYTES), (3_600_000, MIB)),
    ("agents.md", "are cut at 1,000. Answers are typed and small: at most 100 rows a page",
     (server.LONGEST_TEXT, tools._MOST_ROWS), (1000, 100)),
    ("watch.md", "A rank that does not answer within 30 s is named", continuous._ANSWER_S, 30),
    ("watch.md", "A garbage collection or a wait for a core is kept once an hour",
     continuous._SAME_CAUSE_S, 3600),
    ("watch.md", "the time series is copied once a minute", series._COPY_S, 60),
    ("watch.md", "is written every second", ring.FLUSH_S, 1),
]  # fmt: skip


def page(name: str) -> str:
    """The text of a page on one line."""
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("name", "sentence"), STATED)
def test_a_number_of_a_page_is_that_of_the_code(name, sentence):
    assert sentence in page(name)


@pytest.mark.parametrize(("name", "sentence", "value", "stated"), IN_WORDS)
def test_a_number_in_words_is_that_of_the_code(name, sentence, value, stated):
    assert sentence in page(name)
    assert value == stated


def test_the_options_of_the_watch_are_listed_with_their_defaults():
    listed: dict[str, str] = {}
    for names, defaults in re.findall(
        r"^\| (`[a-z_`, ]+`) \| ([^|]+) \|", (DOCS / "watch.md").read_text(), re.MULTILINE
    ):
        found = re.findall(r"`(\w+)`", names)
        listed |= dict(zip(found, (defaults.split(", ") * 2)[: len(found)], strict=True))
    known = {field.name: field.default for field in fields(WatchOptions)}
    stated = {name: text for name, text in listed.items() if name in known and text.strip() != "none"}

    assert len(stated) > 8
    assert {name: getattr(WatchOptions.from_text(f"{name}={text}"), name) for name, text in stated.items()} == {
        name: known[name] for name in stated
    }
    assert all(not known[name] for name, text in listed.items() if name in known and text.strip() == "none")


# -- options of commands -----------------------------------------------------------------------------------------------


def known_options() -> set[str]:
    """All options of all commands."""
    declared = [each.option for command in COMMANDS.values() for each in command.parameters]
    return {name for each in declared for name in (*each.names, each.off)} | {"--help", "--version", "-V"}


# Of programs of others, and of scripts in this repository, that pages name.
FOREIGN = {
    "--output-format",
    "--nproc-per-node",
    "--xla",
    "--query-gpu",
    "--privileged",
    "--cap-add",
    "--head",
    "--only",
    "--series",
}


@pytest.mark.parametrize("path", sorted([ROOT / "README.md", *DOCS.rglob("*.md")]), ids=lambda path: path.stem)
def test_every_option_that_a_page_names_exists(path):
    text = path.read_text(encoding="utf-8")
    marked = " ".join(re.findall(r"`[^`\n]+`", text) + re.findall(r"^    (?:\$ )?stepscope .*", text, re.MULTILINE))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", marked))

    assert named - known_options() - FOREIGN == set()


@pytest.mark.parametrize(("name", "command"), [("page.md", "open")])
def test_a_table_of_options_has_all_of_the_command(name, command):
    resources = {"--engine", "--memory"}  # of every command that reads profiles: docs/scale.md
    rows = set(re.findall(r"^\| `(--[\w-]+)", (DOCS / name).read_text(), re.MULTILINE))

    assert rows == {each.option.names[0] for each in COMMANDS[command].parameters if each.option.names} - resources


# -- exit statuses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--version"], 0),
        (["help"], 0),
        (["summary", "/no/such/place"], 1),
        (["doctor", "/no/such/place"], 1),
        (["compare", "/no/such/place", "/nor/this"], 1),
        (["gate", "/no/such/place", "--budget", "/no/budget"], 2),
        (["steps"], 2),
        (["steps", "x", "--nonsense"], 2),
        (["nonsense"], 2),
        (["open", "x", "--port", "70000"], 2),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else str(words),
)
def test_an_exit_status_is_the_one_that_the_pages_state(words, status, capsys):
    assert run(words) == status
    said = capsys.readouterr().err
    assert status == 0 or len(said.strip().splitlines()) == 1, said


def test_every_format_has_its_row_and_a_section_that_says_what_is_not_read() -> None:
    page = (DOCS / "formats.md").read_text()
    rows = re.findall(r"^\| \[[^]]+\]\(#([\w-]+)\) \| (.*) \|.*\|$", page, re.M)
    names = re.findall(r"`([^`]+)`", " ".join(cell for _, cell in rows))
    found = map(base.format_of, [name.replace("rank_*", "rank_0").replace("*", "host") for name in names])
    sections = {
        re.sub(r"[^\w -]", "", title).lower().replace(" ", "-"): text
        for title, text in re.findall(r"^## (.*)\n((?:(?!## ).*\n)+)", page, re.M)
    }

    # Of Nsight's own report only the command is told that exports it.
    assert {each.name for each in found if each} == {each.name for each in base.FORMATS} - {"nsight-report"}
    assert all("Not read:" in sections[anchor] or "Not in it:" in sections[anchor] for anchor, _ in rows)
