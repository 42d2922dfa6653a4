"""Programs under `stepscope prove` end as they do without it, and the answer says what could not be proved."""

from __future__ import annotations

import pytest
from program_runs import run_command

from stepscope.proof.record import read_proofs

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
        ("sync", "train(90); print(print is PRINT)", "no imported module belongs to sync"),
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


HURRIED = """
import functools, sys
from stepscope.cli import prove
prove.Settings = functools.partial(prove.Settings, patience=3.0)
from stepscope.cli.main import main
sys.argv[0] = "stepscope"
main()
"""
HURRY = """
from stepscope.capture.proving import deadlines, prover
prover.STUCK_S, prover.STUCK_STEPS, prover.SILENT_S, deadlines.END_S = 0.5, 1, 3.0, 2.0
"""  # in the program itself, which takes the place of the process of the command
ASKS_A_SERVICE = """
import atexit, queue, threading, time
import stepscope
asked, answers = queue.Queue(), queue.Queue()

def serve():
    while True:
        asked.get()
        answers.put(1)

def send_request():
    asked.put(1)

def draw_number(numbers=iter(range(10**9))):
    time.sleep(0.001)
    return next(numbers) % 2

def wait_for_service():
    time.sleep(0.001)

threading.Thread(target=serve, daemon=True).start()
for number in range(100_000):
    with stepscope.step(number):
        ASKS
"""
END_HANGS = """
import atexit, threading, time
import stepscope

def fetch_batch():
    time.sleep(0.001)

atexit.register(print, "cleaned up")
threading.Thread(target=threading.Event().wait).start()  # only the end of the loop would stop it
for number in range(100_000):
    with stepscope.step(number):
        fetch_batch()
"""
END_IS_CAUGHT = """
import time
import stepscope

def fetch_batch():
    time.sleep(0.001)

for number in range(10**9):
    try:
        with stepscope.step(number):
            fetch_batch()
    except BaseException:
        pass
"""

NO_STEPS = """
import atexit, time

atexit.register(print, "cleaned up")
while True:
    time.sleep(0.01)
"""
NO_STEPS_MORE = """
import time
import stepscope

for number in range(8):
    with stepscope.step(number):
        time.sleep(0.01)
while True:
    time.sleep(0.01)
"""
STEPS_ON_A_THREAD = """
import threading, time
import stepscope

def fetch_batch():
    time.sleep(0.001)

def train():
    for number in range(10**9):
        with stepscope.step(number):
            fetch_batch()

training = threading.Thread(target=train)
training.start()
training.join()
"""


def prove_hurried(folder, program, place, kind="--ablate"):
    (folder / "job.py").write_text(HURRY + program)
    words = ["prove", "--steps", "0", "--skip", "1", "--stop-after", "--budget", "2", kind, place, "job.py"]
    return run_command(["-c", HURRIED, *words], folder, timeout=100)


@pytest.mark.parametrize("kind", ["--at", "--ablate"])
@pytest.mark.parametrize(
    ("program", "why", "printed"),
    [(NO_STEPS, "no steps were found; mark them", "cleaned up\n"), (NO_STEPS_MORE, "no step ended for 3 s", "")],
    ids=["none", "no more"],
)
def test_a_program_without_steps_that_never_ends_is_ended_and_says_so(tmp_path, program, why, printed, kind):
    done = prove_hurried(tmp_path, program, "logging", kind)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert f"logging: nothing measured: {why}" in done.stderr


def test_a_program_whose_steps_run_on_another_thread_is_ended_too(tmp_path):
    done = prove_hurried(tmp_path, STEPS_ON_A_THREAD, "fetch_batch", "--at")
    assert done.returncode == 0, done.stderr
    assert "fetch_batch: each ms there costs the step" in done.stderr


@pytest.mark.parametrize(
    ("asks", "place"),
    [
        ("send_request(); answers.get()", "send_request"),  # nothing answers what was not sent
        ("while draw_number() != number % 2: pass", "draw_number"),  # the same number again and again
    ],
)
def test_a_step_that_does_not_end_without_a_part_is_given_up(tmp_path, asks, place):
    done = prove_hurried(tmp_path, ASKS_A_SERVICE.replace("ASKS", asks), place)
    assert done.returncode == 0, done.stderr
    assert f"{place}: nothing measured: a step without it does not end" in done.stderr
    assert [proof.place for proof in read_proofs(tmp_path / "stepscope-logs")] == [place]


@pytest.mark.parametrize(("program", "printed"), [(END_HANGS, ""), (END_IS_CAUGHT, "")], ids=["thread", "caught"])
def test_a_program_whose_end_waits_for_ever_is_ended(tmp_path, program, printed):
    done = prove_hurried(tmp_path, program, "fetch_batch")
    assert (done.returncode, done.stdout) == (0, printed)
    assert "without fetch_batch a step takes" in done.stderr


def test_the_handlers_of_the_end_run_when_a_proof_ends_the_program(tmp_path):
    program = END_HANGS.replace("threading.Thread(", "# threading.Thread(")
    done = prove_hurried(tmp_path, program, "fetch_batch")
    assert (done.returncode, done.stdout) == (0, "cleaned up\n")
