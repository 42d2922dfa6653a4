"""What a command pays for: words are read without a library, and kept results shown without a tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.api import load
from stepscope.cli.main import run
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder
from stepscope.report.kept import KeptReport, pack_report, unpack_report
from stepscope.report.sections import split_for_screens

MS = 10**9
FORMS = ["table", "json", "csv", "html", "markdown"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Three steps of 10 ms with an op each."""
    builder = TraceBuilder("worker", start_unix_ns=10**18)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for step in range(3):
        line.event("train", step * 10 * MS, 10 * MS, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
        line.event("dense/MatMul:MatMul", step * 10 * MS, 5 * MS, EventKind.OP)
    file = tmp_path / "worker.xplane.pb"
    file.write_bytes(write(builder.build()))
    return str(file)


# -- kept reports ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ["overview", "op-stats", "summary"])
def test_a_kept_result_is_shown_as_it_was_the_first_time(path: str, capfdbinary, command: str, form: str) -> None:
    words = [command, path, "--format", form]
    assert run(words) == 0
    first = capfdbinary.readouterr().out

    assert isinstance(load(path).report_to_show(command.replace("summary", "overview")), KeptReport)
    assert run(words) == 0
    assert capfdbinary.readouterr().out == first
    assert first


def test_a_kept_report_has_the_sections_the_lines_and_the_values(path: str) -> None:
    report = load(path).report("overview")

    packed = pack_report(report)

    assert packed is not None
    kept = unpack_report(packed)
    assert kept is not None
    assert kept.to_dict() == report.to_dict()
    assert list(kept.sections()) == [part for section in report.sections() for part in split_for_screens(section)]
    assert kept.main_table() == report.main_table()
    assert list(kept.summary_lines()) == list(report.summary_lines())


def test_a_kept_report_refuses_to_be_computed_with(path: str) -> None:
    kept = unpack_report(pack_report(load(path).report("overview")) or b"")

    assert kept is not None
    with pytest.raises(TypeError, match="not used in computations"):
        kept.head(3)
    with pytest.raises(TypeError, match="not used in computations"):
        kept.arranged("name")


@pytest.mark.parametrize("content", [b"", b"{}\n[]\n{}", b"[]\n[]\n{}", b"\xff\n\n"])
def test_bytes_of_another_version_are_no_report(content: bytes) -> None:
    assert unpack_report(content) is None


def test_a_host_that_could_not_be_read_is_looked_for_again(path: str, capsys) -> None:
    beside = Path(path).with_name("other.xplane.pb")
    beside.write_bytes(Path(path).read_bytes()[:20])
    logdir = str(Path(path).parent)
    for _ in range(2):
        assert run(["overview", logdir, "--format", "json"]) == 0
        assert "other.xplane.pb" in capsys.readouterr().out

    assert not isinstance(load(logdir).report_to_show("overview"), KeptReport)


# -- what is imported --------------------------------------------------------------------------------------------------

LIBRARIES = {"numpy", "pyarrow", "msgspec", "typer", "click", "pydantic", "rich", "logging", "platformdirs"}
LIBRARIES |= {"fsspec", "google", "grpc", "yaml", "werkzeug", "concurrent"}


def imported_by(*words: str) -> set[str]:
    """The modules that a command has imported when it is done."""
    program = (
        "import sys; from stepscope.cli.main import run; status = run(sys.argv[1:]);"
        "print('', *sys.modules, file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def libraries(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} & LIBRARIES


def test_the_version_needs_no_library() -> None:
    assert libraries(imported_by("--version")) == set()


def test_a_first_overview_imports_what_reads_and_computes_and_nothing_else(path: str) -> None:
    modules = imported_by("overview", path, "--format", "json")

    assert libraries(modules) - {"logging", "yaml"} == {"numpy", "msgspec"}
    assert "numpy.ma" not in modules  # `np.unique` without further columns imports it
    tools = {module.rpartition(".")[2] for module in modules if module.endswith("_tool")}
    assert tools == {"overview_tool", "trust_tool"}  # the line about trust is on every page
    of_others = {"steps.inferred_steps", "workers.stragglers", "resources.allocations", "hlo.module"}
    assert not {f"stepscope.analysis.{module}" for module in of_others} & modules  # the trace has nothing for them


def test_an_overview_without_a_cache_imports_nothing_for_it(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")

    modules = imported_by("overview", path, "--format", "json")

    assert not modules & {"hashlib", "statistics"}


@pytest.mark.parametrize(
    "words",
    [*(["overview", "--format", form] for form in ("json", "csv", "markdown", "html")), ["summary"]],
    ids=lambda words: words[-1],
)
def test_a_second_time_neither_libraries_nor_tools_are_imported(path: str, words: list[str]) -> None:
    imported_by(*words, path)

    modules = imported_by(*words, path)

    assert libraries(modules) == set()
    assert {module for module in modules if module.startswith("stepscope.analysis.")} <= {"stepscope.analysis.registry"}
