"""Programs under `stepscope prove` end as they do without it, and the answer says what could not be proved."""

from __future__ import annotations

import pytest
from program_runs import run_command

LOOP = """
import os, sys, time
from importlib.machinery import SourceFileLoader as Loader
import stepscope

def fetch_batch():
    time.sleep(0.001)

CODE, PRINT = fetch_batch.__code__, print

def train(count):
    for number in range(count):
        with stepscope.step(number):
            fetch_batch()
"""
FORKS = """
train(20)
child = os.fork()
train(30)
if child == 0:
    print(fetch_batch.__code__ is CODE, flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    ("asked", "ending", "answer"),
    [
        ("fetch_batch", "train(3)", "fetch_batch: nothing measured: the program ended too early"),
        ("fetch_batch", "train(70); sys.exit(5)", "fetch_batch"),
        ("fetch_batch", "train(60); raise ValueError('no more data')", "fetch_batch"),
        ("fetch_batch", "print('no loop at all')", "nothing measured: no steps were found"),
        ("fetch_batch", FORKS, "fetch_batch"),
        (
            "fetch_bach",
            "train(90); print(fetch_batch.__code__ is CODE)",
            "functions of the program: fetch_batch, train",
        ),
        ("sync", "train(90); print(print is PRINT)", "nothing that is imported belongs to sync"),
    ],
    ids=["three steps", "ends early", "fails", "no steps", "forks", "unknown place", "unknown part"],
)
def test_a_program_ends_as_without_being_proved(tmp_path, asked, ending, answer):
    (tmp_path / "job.py").write_text(LOOP + ending)
    alone = run_command(["job.py"], tmp_path)
    proved = run_command(
        ["-m", "stepscope", "prove", "--steps", "0", "--budget", "1", "--at", asked, "job.py"], tmp_path
    )
    assert (proved.returncode, proved.stdout) == (alone.returncode, alone.stdout)
    assert proved.stderr.count("stepscope:") == 1
    assert answer in proved.stderr
    assert [line for line in alone.stderr.splitlines() if "Error" in line] == [
        line for line in proved.stderr.splitlines() if "Error" in line
    ]


def test_nothing_is_left_patched_when_the_last_block_is_over(tmp_path):
    program = "train(2000); print(fetch_batch.__code__ is CODE, print is PRINT, 'get_code' in vars(Loader))"
    (tmp_path / "job.py").write_text(LOOP + program)
    words = ["-m", "stepscope", "prove", "--steps", "0", "--budget", "1", "--at", "fetch_batch", "--at", "logging"]
    done = run_command([*words, "job.py"], tmp_path)
    assert done.stdout == "True True False\n"
    assert "fetch_batch: each ms there costs the step" in done.stderr
