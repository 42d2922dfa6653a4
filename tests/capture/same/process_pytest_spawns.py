# modes: run watch prove
# timeout: 240
"""pytest in this process, with captured output, fixtures, spawned workers of tests, and xfails."""

import re
import sys
import tempfile
from pathlib import Path

import pytest

TESTS = """
import logging, multiprocessing, os, sys, threading, warnings
import pytest, torch

def work(at, queue):
    queue.put((at, multiprocessing.current_process().name, __name__))

@pytest.fixture
def model(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("RATE", "0.5")
    yield torch.nn.Linear(2, 1)
    print("teardown", len(caplog.records))

@pytest.mark.parametrize("kind", ["spawn", "fork", "forkserver"])
def test_spawns(kind):
    context = multiprocessing.get_context(kind)
    queue = context.SimpleQueue()
    process = context.Process(target=work, args=(1, queue))
    process.start()
    assert queue.get()[0] == 1
    process.join()
    assert process.exitcode == 0

def test_trains(model, capsys, capfd, recwarn):
    optimizer = torch.optim.SGD(model.parameters(), lr=float(os.environ["RATE"]))
    for _ in range(9):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    print("trained")
    warnings.warn("careful")
    logging.getLogger("t").warning("logged")
    assert len(recwarn) == 1, [str(each.message) for each in recwarn]
    assert threading.active_count() == 1

def test_prints(capfd):
    os.write(1, b"raw")
    assert capfd.readouterr() == ("raw", "")

@pytest.mark.xfail(strict=True)
def test_fails(model):
    print("before"); raise KeyError("x")

def test_threads_that_raise():
    thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()
"""

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test_it.py")
        path.write_text(TESTS)
        sys.path.insert(0, folder)
        import contextlib
        import io

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = pytest.main(
                ["-q", "-rA", "-p", "no:cacheprovider", "--color=no", "--rootdir", folder, "-c", "/dev/null", str(path)]
            )
        print(int(status), re.sub(r"in [\d.]+s|/\S*/", "", out.getvalue()))
