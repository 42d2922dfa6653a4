"""Command lines: the words of a command, the values that its function gets, and what is said of wrong ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli import completion
from stepscope.cli.commands import all_panels, find_command
from stepscope.cli.main import run
from stepscope.cli.words import HelpWanted, read_words
from stepscope.errors import UsageError


def read(line: list[str], **defaults: Any) -> dict[str, Any]:
    """The values that differ from the defaults of the command."""
    command = find_command(line[0])
    values, _ = read_words(line[1:], command.parameters, defaults, command.passes_on)
    usual = {each.field: each.default for each in command.parameters}
    return {field: value for field, value in values.items() if value != usual[field]}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["overview", "logs"], {"path": "logs"}),
        (["overview", ""], {"path": ""}),
        (["overview", "-"], {"path": "-"}),
        (["overview", "--", "--logs"], {"path": "--logs"}),
        (["summary", "a", "b", "--why"], {"path": "a", "more": ["b"], "why": True}),
        (["summary", "--run=a", "logs", "--host", "b", "-o", "-"], {"path": "logs", "run": "a", "host": "b"}),
        (["op-stats", "--format=csv", "logs", "-oops.csv"], {"path": "logs", "form": "csv", "output": Path("ops.csv")}),
        (["steps", "x", "--sort", "-name", "--where", "a=b", "--where=c=d"],
         {"path": "x", "sort": "-name", "where": ["a=b", "c=d"]}),
        (["overview", "one", "--top", "3", "two", "three"], {"path": "one", "top": 3, "more": ["two", "three"]}),
        (["overview", "logs", "--host", "a", "--host", "b"], {"path": "logs", "host": "b"}),
        (["overview", "logs", "--host="], {"path": "logs", "host": ""}),
        (["open", "--host=::1", "l", "--allowed-host", "a", "--allowed-host=b", "--port=65535"],
         {"logdir": "l", "host": "::1", "allowed_host": ["a", "b"], "port": 65535}),
        (["open", "l", "--no-browser", "--port", "0"], {"logdir": "l", "no_browser": True, "port": 0}),
        (["serve", "a", "b", "--no-log"], {"logdirs": ["a", "b"], "log": False}),
        (["run", "--steps", "3", "train.py", "--steps", "4", "-m"],
         {"script": "train.py", "steps": 3, "arguments": ["--steps", "4", "-m"]}),
        (["run", "-qm", "train", "--help"],
         {"script": "train", "quiet": True, "as_module": True, "arguments": ["--help"]}),
        (["run", "-c", "-1"], {"script": "-1", "as_code": True}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_words_become_the_values_of_a_command(words: list[str], values: dict[str, Any]) -> None:
    assert read(words) == values


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["overview"], "missing argument 'PATH'"),
        (["gate", "a", "b"], "missing option '--budget'"),
        (["open", "one", "two"], "unexpected argument: two"),
        (["open", "logs", "--port", "65536"], "'--port': 65536 is more than 65535"),
        (["open", "logs", "--no-browser=1"], "option '--no-browser' takes no value"),
        (["overview", "logs", "--format", "xml"], "'xml' is not one of 'table', 'json', 'csv'"),
        (["overview", "logs", "--top", "0"], "'--top': 0 is less than 1"),
        (["overview", "logs", "--top", "x"], "'--top': 'x' is not a whole number"),
        (["sql", "logs", "--timeout", "nan"], "'--timeout': nan is less than 0.001"),
        (["overview", "logs", "--top"], "option '--top' requires an argument"),
        (["overview", "logs", "--tpo", "3"], "no such option: --tpo; did you mean --top?"),
        (["overview", "logs", "-z"], "no such option: -z"),
        (["summary", "logs", "--top", "3"], "no such option: --top"),
        (["skill", "remove"], "'remove' is not one of 'install', 'show'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_wrong_word_is_named(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as caught:
        read(words)

    assert said in str(caught.value)
    assert run(words) == 2
    assert f"{said.partition(';')[0]}" in capsys.readouterr().err


def test_defaults_come_after_the_words_and_before_those_of_the_command() -> None:
    assert read(["steps", "logs", "--top", "2"], top=5, form="csv", where="a=b") == {
        "path": "logs", "top": 2, "form": "csv", "where": ["a=b"],
    }  # fmt: skip


def test_help_is_asked_for_by_any_word_before_the_script() -> None:
    for words in (["overview", "-h"], ["overview", "logs", "--help"], ["run", "--help", "x.py"]):
        with pytest.raises(HelpWanted):
            read(words)


@pytest.mark.parametrize(
    ("words", "fit"),
    [
        (["ove"], ["over-time", "overview"]),
        (["--ver"], ["--version"]),
        (["overview", "--st"], ["--steps"]),
        (["overview", "logs", "--format", "c"], ["csv"]),
        (["overview", "lo"], []),
        (["nothing", "--"], []),
    ],
    ids=" ".join,
)
def test_a_shell_gets_the_words_that_fit(words: list[str], fit: list[str]) -> None:
    assert sorted(completion.complete(words)) == fit


def test_a_shell_asks_the_command_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(completion.VARIABLE, "bash")
    command = [sys.executable, "-m", "stepscope", "hlo-g"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "hlo-graph\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_written_once(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert run(["--show-completion"]) == 0
    script = capsys.readouterr().out
    for _ in range(2):
        assert run(["--install-completion"]) == 0

    [file] = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.read_text() == script


def test_every_command_declares_all_that_its_function_takes() -> None:
    for panel in all_panels().values():
        for command in panel:
            assert command.help, command.name
            assert len({each.field for each in command.parameters}) == len(command.parameters), command.name
