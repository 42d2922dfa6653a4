"""The processes that answer questions: limits, others meanwhile, an end on request, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sql_sessions import Drawn, training
from waiting import await_until

from stepscope.errors import BusyError, UnreadableError, UsageError
from stepscope.sql import asking
from stepscope.sql.asking import Asked, Asker, Asking
from stepscope.sql.limits import AT_ONCE, EACH, Limits

# The engine counts what it may go on with; within one call of this function it asks nobody.
DEAF = "SELECT levenshtein(repeat('ab', 500000), repeat('ba', 500000))"
SESSIONS = [Asked("main", "a", Drawn(host=training()))]


@pytest.fixture
def asker() -> Iterator[Asker]:
    made = Asker()
    yield made
    made.close()


def running(asker: Asker) -> list[int]:
    return [worker.child._process.pid for worker in asker._workers if worker.child.is_running]  # type: ignore[union-attr]


def ask_in_background(asker: Asker, pool: ThreadPoolExecutor, person: str, question: str = "") -> Any:
    """A question that only its end ends, once it is being answered."""
    before = len(busy(asker))
    asked = pool.submit(asker.ask, DEAF, SESSIONS, None, Asking(person, question))
    await_until(lambda: len(busy(asker)) > before, 60, "the question is being answered")
    return asked


def busy(asker: Asker) -> list[object]:
    return [worker for worker in asker._workers if worker.question is not None]


def test_no_process_is_prepared_while_one_starts_for_a_question(asker: Asker) -> None:
    asker._workers[0].take(asking._Question("SELECT 1", SESSIONS, Limits(), Asking()))
    asker.prepare()
    assert running(asker) == []

    asker._workers[0].give_back()
    asker.prepare()
    assert len(running(asker)) == 1


def test_a_question_that_ignores_an_interrupt_is_ended_with_its_process(asker: Asker) -> None:
    with pytest.raises(UsageError, match=r"\[stopped\] the query was stopped after 0.3 s; ask for less"):
        asker.ask(DEAF, SESSIONS, Limits(seconds=0.3))

    assert running(asker) == []
    assert asker.ask("SELECT count(*) AS n FROM hosts", SESSIONS).table.to_pylist() == [{"n": 1}]


def test_others_are_answered_meanwhile_until_there_are_too_many(asker: Asker) -> None:
    with ThreadPoolExecutor() as pool:
        own = [ask_in_background(asker, pool, "Ana") for _ in range(EACH)]

        with pytest.raises(BusyError, match=rf"you have {EACH} questions being answered; ask again in \d+ s"):
            asker.ask("SELECT 1", SESSIONS, None, Asking("Ana"))
        assert asker.ask("SELECT 1 AS one", SESSIONS, None, Asking("Ben")).table.to_pylist() == [{"one": 1}]

        others = [ask_in_background(asker, pool, f"{number}") for number in range(AT_ONCE - EACH)]
        with pytest.raises(BusyError, match=f"there are {AT_ONCE} questions"):
            asker.ask("SELECT 1", SESSIONS, None, Asking("Ben"))

        assert asker.stop(None) == AT_ONCE
        assert {type(each.exception()) for each in own + others} == {UsageError}


def test_a_question_is_stopped_by_who_asked_it_and_nobody_else(asker: Asker) -> None:
    with ThreadPoolExecutor() as pool:
        first, second = (ask_in_background(asker, pool, "Ana", name) for name in ("first", "second"))

        assert asker.stop("Ben", "first") == 0
        assert asker.stop("Ana", "first") == 1
        assert "stopped by request" in str(first.exception())
        assert not second.done()
        assert asker.stop(None, "second") == 1  # somebody who may do everything
        assert "stopped by request" in str(second.exception())


def test_the_memory_of_a_question_comes_back(asker: Asker) -> None:
    """The engine's own limit does not count what its functions make."""
    query = "SELECT count(DISTINCT r) FROM (SELECT repeat('x', 4000000) || range AS r FROM range(100000))"

    with pytest.raises(UsageError, match=r"\[memory\] the query needs more than its limit of 100 MiB"):
        asker.ask(query, SESSIONS, Limits(memory_bytes=100 << 20))
    asker.ask("SELECT 1", SESSIONS)
    assert sum(worker.child.used_bytes for worker in asker._workers) < asking._OWN_BYTES


def test_a_process_without_questions_ends(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "IDLE_SECONDS", 0.05)

    asker.ask("SELECT 1", SESSIONS)

    await_until(lambda: running(asker) == [], 60, "the process has ended")
    assert asker.ask("SELECT 1 AS one", SESSIONS).table.to_pylist() == [{"one": 1}]


def test_columns_for_both_sides_of_a_union_arrive(asker: Asker) -> None:
    """The engine may read both at the same time."""
    union = " UNION ALL ".join(f"SELECT count(name) AS n FROM {view}" for view in ("events", "kernels", "ops") * 4)

    counts = asker.ask(union, SESSIONS).table.column("n").to_pylist()

    assert len(counts) == 12
    assert len(set(counts)) == 3


def test_a_process_whose_server_is_gone_ends_in_the_middle_of_a_question(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(
        "import sys, threading\n"
        "from stepscope.sql.asking import Asker\n"
        "asker = Asker()\n"
        "asker.ask('SELECT 1', [])\n"
        f"threading.Thread(target=asker.ask, args=({DEAF!r}, [])).start()\n"
        "while not asker._workers[0].question: pass\n"
        "print(asker._workers[0].child._process.pid, flush=True)\n"
    )
    server = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    child = int(server.stdout.readline())

    server.kill()
    server.communicate()

    await_until(lambda: not is_running(child), 60, "the child has ended")


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_died_is_said_and_the_next_question_is_answered(asker: Asker) -> None:
    with ThreadPoolExecutor() as pool:
        asked = ask_in_background(asker, pool, "Ana")
        await_until(lambda: running(asker) != [], 60, "the process runs")
        os.kill(running(asker)[0], signal.SIGKILL)
        assert "ended by signal 9" in str(asked.exception())
    assert asker.ask("SELECT 1 AS one", SESSIONS).table.to_pylist() == [{"one": 1}]


@pytest.mark.parametrize("fails", [MemoryError, RuntimeError])
def test_a_failure_while_columns_are_made_leaves_no_process_that_waits(asker: Asker, fails: type[Exception]) -> None:
    class Broken(Drawn):
        def trace(self, host: str | None = None) -> Any:
            raise fails

    with pytest.raises(fails):
        asker.ask("SELECT count(*) FROM events", [Asked("main", "b", Broken(host=training()))])
    assert running(asker) == []


def test_a_join_that_explodes_names_the_limit() -> None:
    asker = Asker(Limits(memory_bytes=100 << 20))
    query = "SELECT a.range FROM range(100000) a, range(100000) b ORDER BY a.range * b.range % 7919"

    with pytest.raises(UsageError, match="more than its limit of 100 MiB of memory; ask for less"):
        asker.ask(query, [Asked("main", "a", Drawn(host=training()))])
    asker.close()


def test_a_profile_that_cannot_be_read_is_said_as_it_is() -> None:
    asker = Asker()

    with pytest.raises(UnreadableError, match="the file is torn"):
        asker.ask("SELECT count(*) FROM events", [Asked("main", "a", Drawn(bad=None))])
    asker.close()
