"""`stepscope sql` and `profile.sql`: from files to answers."""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path

import pyarrow.parquet
import pytest
from program_runs import run_command
from sql_sessions import training

import stepscope
from stepscope.cli.main import run
from stepscope.cli.sql import read_size
from stepscope.errors import UsageError
from stepscope.formats.xspace.writer import write


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for run_name, hosts in (("one", "ab"), ("two", "a")):
        session = folder / run_name / "plugins" / "profile" / run_name
        session.mkdir(parents=True)
        for host in hosts:
            (session / f"{host}.xplane.pb").write_bytes(write(training(host)))
    return folder


def test_a_profile_answers_over_all_of_its_hosts(logs: Path) -> None:
    profile = stepscope.load(logs / "one")

    found = profile.sql("SELECT host, count(*) AS n FROM events GROUP BY host ORDER BY host")

    assert found.hosts == ("a", "b")
    assert [row["host"] for row in found.to_dict()["rows"]] == ["a", "b"]
    assert stepscope.load(logs / "one", host="b").sql("SELECT DISTINCT host FROM events").to_dict()["rows"] == [
        {"host": "b"}
    ]


def test_other_sessions_are_attached_by_path_or_as_profiles(logs: Path) -> None:
    one, two = stepscope.load(logs / "one"), stepscope.load(logs / "two")
    query = "SELECT (SELECT count(*) FROM hosts) AS one, (SELECT count(*) FROM other.hosts) AS two"

    assert one.sql(query, attach={"other": two}).to_dict()["rows"] == [{"one": 2, "two": 1}]
    assert one.sql(query, attach={"other": logs / "two"}).to_dict()["rows"] == [{"one": 2, "two": 1}]


def test_limits_of_a_question(logs: Path) -> None:
    profile = stepscope.load(logs / "two")

    assert profile.sql("FROM events", rows=3).to_dict()["more"]
    with pytest.raises(UsageError, match="stopped"):
        profile.sql("SELECT count(*) FROM range(1000000000000)", timeout=0.05)


def test_the_command_prints_one_object(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", str(logs / "two"), "SELECT count(*) AS n FROM steps", "--format", "json"]) == 0

    out = json.loads(capsys.readouterr().out)
    assert (out["tool"], out["hosts"], out["rows"]) == ("sql", ["a"], [{"n": 2}])


def test_the_command_shows_tables_files_and_sessions_by_name(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.parquet"
    assert run(["sql", str(logs / "two"), "FROM steps", "--format", "parquet", "--output", str(target)]) == 0
    assert pyarrow.parquet.read_table(target).num_rows == 2

    words = [f"x={logs / 'one'}", f"y={logs / 'two'}", "SELECT count(*) AS n FROM x.hosts, y.hosts"]
    assert run(["sql", *words, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "n\n2\n"

    assert run(["sql", str(logs / "two"), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("table,column,type,unit,meaning\nevents,event,BIGINT,row,")


def test_a_query_from_stdin(logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one"))

    assert run(["sql", str(logs / "two"), "-", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "one\n1\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["FROM kernel"], "did you mean kernels"),
        (["CREATE TABLE x AS SELECT 1"], "[read-only]"),
        (["SELECT count(*) FROM range(1000000000000)", "--timeout", "0.05"], "[stopped]"),
        (["SELECT 1", "--memory", "tiny"], "'tiny' is not a size of memory"),
        (["no-such-folder", "SELECT 1"], "has no name"),
    ],
)
def test_a_wrong_question_is_one_line_and_status_2(
    logs: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["sql", str(logs / "two"), *words]) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


@pytest.mark.parametrize(("text", "size"), [("64 MiB", 64 << 20), ("1.5 GiB", 3 << 29), ("8g", 8_000_000_000)])
def test_sizes(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Windows has no signals for threads")
def test_ctrl_c_ends_a_query(logs: Path) -> None:
    program = (
        "import signal, threading, stepscope\n"
        f"profile = stepscope.load({str(logs / 'two')!r})\n"
        "profile.sql('SELECT 1')\n"
        "from stepscope.children import Child\n"
        "wait = Child._wait\n"
        "def interrupted(*given):\n"
        "    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)\n"
        "    return wait(*given)\n"
        "Child._wait = interrupted\n"
        "try:\n"
        "    profile.sql('SELECT count(*) FROM range(9999999) a, range(9999999) b WHERE hash(a.range + b.range) = 7')\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )

    done = run_command(["-c", program], logs)

    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr
