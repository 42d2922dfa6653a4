"""`stepscope run`: the script cannot tell, and Stepscope says where its time went."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from program_runs import UNHURRIED, profiles_below, read_profile, run_command, run_warm, step_numbers

from stepscope.capture import files
from stepscope.capture.patches import ImportHook
from stepscope.capture.startup.sitecustomize import lets_us_in, shell_runs_this_python
from stepscope.model import EventKind, HostTrace


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return name


def both(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """What Python makes of a command line, and what `stepscope run` makes of it."""
    return run_command(words, folder), run_command(["-m", "stepscope", "run", "--quiet", *words], folder)


TELL = """
    import __main__, os, sys
    print(__name__, __file__, sys.argv, sys.path[:2], __package__, __spec__ and __spec__.name, __doc__)
    print(sorted(set(vars()) - {"os", "sys"}), __main__.__dict__ is globals(), type(__loader__).__name__)
"""

PROGRAMS = {
    "what it sees": TELL,
    "exit 3": "import sys; print('out'); sys.exit(3)",
    "exit with a text": "import sys; sys.exit('text')",
    "exit -1": "import sys; sys.exit(-1)",
    "exception": """
        def f():
            raise ValueError("of the script")
        try:
            1 / 0
        except ZeroDivisionError:
            f()
    """,
    "own hook": "import sys; sys.excepthook = lambda *a: print('hook', a[0], a[2].tb_lineno); raise KeyError(1)",
    "syntax error": "a = = 1",
    "at exit": "import atexit; atexit.register(print, 'exit'); print('main')",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "closed stdin": "import sys; print(sys.stdin.read())",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_script_runs_as_under_python(tmp_path, program):
    script = write(tmp_path, "folder/script.py", PROGRAMS[program])

    plain, ours = both(tmp_path, script, "--logdir", "-x", "a b")

    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert ours.stderr == plain.stderr


def test_a_module_runs_as_under_python(tmp_path):
    write(tmp_path, "package/__init__.py", "")
    write(tmp_path, "package/__main__.py", TELL)
    write(tmp_path, "package/module.py", TELL)
    for words in (["-m", "package", "1"], ["-m", "package.module", "--steps", "2"]):
        plain, ours = both(tmp_path, *words)

        assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout), ours.stderr


def test_a_folder_runs_as_under_python(tmp_path):
    write(tmp_path, "app/__main__.py", "import helper, sys; print(helper.x, sys.argv, __file__)")
    write(tmp_path, "app/helper.py", "x = 1")

    plain, ours = both(tmp_path, "app", "y")

    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout), ours.stderr


@pytest.mark.parametrize("words", [["missing.py"], ["-m", "missing"], ["-m", "json.missing"]], ids=" ".join)
def test_what_is_not_there_is_told_as_by_python(tmp_path, words):
    plain, ours = both(tmp_path, *words)

    assert ours.returncode == plain.returncode
    assert ours.stderr == plain.stderr


def test_ctrl_c_ends_it_as_it_ends_python(tmp_path):
    script = write(tmp_path, "script.py", "import signal; signal.raise_signal(signal.SIGINT)")

    plain, ours = both(tmp_path, script)

    assert plain.returncode == ours.returncode == -signal.SIGINT
    assert ours.stderr == plain.stderr


def test_ctrl_c_during_the_summary_leaves_the_status_of_the_program(tmp_path):
    script = """
        import subprocess, time
        def end_summary(*words, **options):
            raise KeyboardInterrupt
        subprocess.run = end_summary  # which the summary is made by
        time.sleep(0.1)
    """
    done = run_command(["-m", "stepscope", "run", write(tmp_path, "script.py", script)], tmp_path)

    assert "a window of" in done.stderr
    assert (done.returncode, done.stdout) == (0, "")


def test_the_functions_of_a_script_without_a_framework_stand_for_its_ops(tmp_path):
    lines = "import time", "def slow_part():", "    time.sleep(0.1)", "def quick_part():", "    time.sleep(0.01)"
    calls = "for _ in range(3):", "    slow_part(); quick_part()"
    script = write(tmp_path, "script.py", "\n".join([*lines, *calls]))

    done = run_command(["-m", "stepscope", "run", "--logdir", "logs", script], tmp_path)

    assert len(profiles_below(tmp_path / "logs")) == 1
    assert "no step was found; a window of" in done.stderr
    assert "with the calls of Python functions of 10 us or more" in done.stderr
    assert re.search(r"top ops +\d+\.\d % +Python  script.py:2 slow_part", done.stderr)
    assert "recorded   no framework, 1 host, CPU" in done.stderr


def test_a_window_that_ends_with_the_program_is_saved_and_told(tmp_path):
    script = "import os, signal, stepscope\nos.kill(os.getpid(), signal.SIGUSR2)\nprint('end')"
    environment = {"STEPSCOPE_LOGDIR": "logs", "STEPSCOPE_STEPS": "0", "STEPSCOPE_SECONDS": "600"}

    done = run_command(["-c", script], tmp_path, environment)

    (path,) = profiles_below(tmp_path / "logs")
    assert done.stdout == "end\n"
    assert "no step was found; a window of" in done.stderr
    assert str(path.name) in done.stderr
    assert "not-running" not in done.stderr


def test_a_program_that_uses_the_signal_itself_is_told_so(tmp_path):
    script = "import os, signal; signal.signal(signal.SIGUSR2, lambda *_: print('mine')); import stepscope"
    script += "; os.kill(os.getpid(), signal.SIGUSR2)"

    done = run_command(["-c", script], tmp_path, {"STEPSCOPE_LOGDIR": "logs", "STEPSCOPE_STEPS": "0"})

    assert done.stdout == "mine\n"
    assert "SIGUSR2 is the program's own" in done.stderr
    assert not (tmp_path / "logs").exists()


MARKING = """
    import stepscope, sys, time
    for i in range(12):
        with stepscope.step(i):
            time.sleep(0.001)
    print("end")
"""


def test_steps_that_the_script_marks_are_captured(tmp_path):
    script = write(tmp_path, "script.py", MARKING)

    done = run_command(["-m", "stepscope", "run", "--steps", "3", "--skip", "4", script], tmp_path)

    (path,) = profiles_below(tmp_path / "stepscope-logs")
    assert step_numbers(path) == [4, 5, 6]
    assert done.stdout == "end\n"
    assert "captured steps 4-6 (as the program marks them)" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("the page: stepscope open stepscope-logs")


def bounds(trace: HostTrace, rows: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    return trace.events.start_ps[rows], trace.events.start_ps[rows] + trace.events.duration_ps[rows]


def test_the_optimizers_ops_belong_to_the_step_that_they_end(tmp_path):
    script = write(
        tmp_path,
        "script.py",
        """
        import torch
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.ones(8, 64)).square().sum().backward()
            optimizer.step()
        """,
    )

    command = ["-m", "stepscope", "run", "--quiet", "--steps", "3", "--skip", "2", *UNHURRIED, script]
    done = run_warm("torch", command, tmp_path)

    assert done.returncode == 0, done.stderr
    (path,) = profiles_below(tmp_path / "stepscope-logs")
    trace = read_profile(path)
    mark_start, mark_end = bounds(trace, np.flatnonzero(trace.events.kind == EventKind.STEP_MARK))
    adam = [row for row in range(len(trace.events)) if trace.name_of(row) == "Optimizer.step#Adam.step"]
    adam_start, adam_end = bounds(trace, adam)
    inside = (mark_start[:, None] <= adam_start) & (adam_end <= mark_end[:, None])
    assert inside.sum(axis=1).tolist() == [1, 1, 1]


def test_the_step_that_is_open_at_the_end_of_a_shorter_job_is_none(tmp_path):
    script = write(
        tmp_path,
        "script.py",
        """
        import torch
        weight = torch.ones(4, requires_grad=True)
        optimizer = torch.optim.SGD([weight])
        for _ in range(9):
            weight.square().sum().backward()
            optimizer.step()
        """,
    )

    done = run_warm("torch", ["-m", "stepscope", "run", "--steps", "100", *UNHURRIED, script], tmp_path)

    (path,) = profiles_below(tmp_path / "stepscope-logs")
    assert step_numbers(path) == [5, 6, 7, 8]
    assert "captured steps 5-8 (one per optimizer.step() of PyTorch)" in done.stderr
    assert re.search(r"\([34] steps, ", done.stderr)  # the first may be a warm-up


def test_a_logdir_that_cannot_be_written_is_told_once_and_before_the_script_runs(tmp_path):
    script = write(tmp_path, "script.py", MARKING + "    print('end', file=sys.stderr)\n")
    (tmp_path / "file").touch()

    done = run_command(["-m", "stepscope", "run", "--logdir", "file/logs", script], tmp_path)

    told, end = done.stderr.splitlines()
    assert (done.returncode, done.stdout, end) == (0, "end\n", "end")
    assert told.startswith("stepscope: [logdir] ")
    assert "nothing can be written here: Not a directory; training goes on without a capture" in told


def test_a_logdir_of_the_environment_that_cannot_be_written_is_told_when_it_is_read(tmp_path):
    (tmp_path / "file").touch()

    done = run_command(["-c", "import stepscope; print('trained')"], tmp_path, {"STEPSCOPE_LOGDIR": "file/logs"})

    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert done.stderr.count("\n") == 1
    assert "nothing can be written here: Not a directory; training goes on without a capture" in done.stderr


def test_the_environment_of_a_job_does_not_concern_the_command_line(tmp_path):
    done = run_command(["-m", "stepscope", "--version"], tmp_path, {"STEPSCOPE_LOGDIR": "logs"})

    assert (done.returncode, done.stderr) == (0, "")


def test_an_autostart_without_a_logdir_says_that_nothing_is_captured(tmp_path):
    script = write(tmp_path, "script.py", "print('trained')")

    done = run_command(["-m", "stepscope.autostart", script], tmp_path)

    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert done.stderr == "stepscope: nothing is captured, because STEPSCOPE_LOGDIR is not set\n"


def test_looking_whether_a_logdir_can_be_written_makes_none(tmp_path):
    files.require_writable(tmp_path / "a" / "b")
    files.require_writable("gs://bucket/logs")

    assert not list(tmp_path.iterdir())


def test_a_script_that_captures_by_itself_is_told_where(tmp_path):
    script = write(tmp_path, "script.py", "import stepscope\nstepscope.start('own')\n" + textwrap.dedent(MARKING))

    done = run_command(["-m", "stepscope", "run", "--steps", "3", script], tmp_path)

    (path,) = profiles_below(tmp_path / "own")
    assert step_numbers(path) == list(range(12))
    told = f"stepscope: nothing more was captured, because the program captures by itself: {path.parent}"
    assert done.stderr.splitlines()[-1] == told


def test_stop_after_ends_the_script_there(tmp_path):
    script = write(tmp_path, "script.py", MARKING)

    done = run_command(["-m", "stepscope", "run", "--steps", "3", "--stop-after", script], tmp_path)

    assert (done.returncode, done.stdout) == (0, "")
    assert step_numbers(*profiles_below(tmp_path / "stepscope-logs")) == [5, 6, 7]


@pytest.mark.parametrize(("options", "status", "output"), [([], 0, "ran\n"), (["--stop-after"], 1, "")])
def test_where_nothing_can_be_written_a_program_that_is_stopped_after_does_not_start(tmp_path, options, status, output):
    script, logdir = write(tmp_path, "script.py", "print('ran')"), write(tmp_path, "file", "")

    done = run_command(["-m", "stepscope", "run", *options, "--logdir", f"{logdir}/logs", script], tmp_path)

    assert (done.returncode, done.stdout) == (status, output)
    assert "nothing can be written here" in done.stderr
    assert ("training goes on" in done.stderr) == (not options)


def test_of_a_script_that_is_not_there_nothing_is_recorded(tmp_path):
    done = run_command(["-m", "stepscope", "run", "nofile.py"], tmp_path)

    assert (done.returncode, "can't open file" in done.stderr, "stepscope:" in done.stderr) == (2, True, False)
    assert not (tmp_path / "stepscope-logs").exists()


def test_processes_that_a_script_starts_write_files_of_their_own(tmp_path):
    write(tmp_path, "rank.py", MARKING)
    script = write(
        tmp_path,
        "launch.py",
        """
        import multiprocessing, os, subprocess, sys, time

        def work(how):
            import stepscope
            for i in range(12):
                with stepscope.step(i):
                    time.sleep(0.001)

        if __name__ == "__main__":
            ranks = [subprocess.Popen([sys.executable, "-u", "rank.py"])]
            ranks += [subprocess.Popen(f"cd . && {sys.executable} rank.py 2>&1 | cat", shell=True)]
            for how in ("fork", "spawn"):
                child = multiprocessing.get_context(how).Process(target=work, args=(how,))
                child.start(); child.join()
            assert [rank.wait() for rank in ranks] == [0, 0]
        """,
    )

    done = run_command(["-m", "stepscope", "run", "--logdir", "logs", "--steps", "3", script], tmp_path)

    assert done.returncode == 0, done.stderr
    captured = [path for path in profiles_below(tmp_path / "logs") if step_numbers(path)]
    assert [step_numbers(path) for path in captured] == [[5, 6, 7]] * 4, done.stderr
    assert "captured steps 5-7 (as the program marks them) (in 4 processes" in done.stderr
    assert "4 processes wrote profiles: " in done.stderr


LAUNCHER = """
    import os, subprocess, sys
    ranks = [
        subprocess.Popen(
            [sys.executable, "rank.py"],
            env=os.environ | {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"},
        )
        for rank in range(3)
    ]
    sys.exit(max(rank.wait() for rank in ranks))
"""


def test_the_summary_of_a_launcher_is_that_of_the_session_its_ranks_wrote(tmp_path):
    write(tmp_path, "rank.py", MARKING)
    script = write(tmp_path, "launch.py", LAUNCHER)

    # The launcher's own window is over before its ranks have begun.
    done = run_command(["-m", "stepscope", "run", "--steps", "3", "--seconds", "0.01", script], tmp_path)

    (session,) = {path.parent for path in profiles_below(tmp_path / "stepscope-logs")}
    told = [line for line in done.stderr.splitlines() if "captured, " not in line or "in 3 processes" in line]
    assert told[0].startswith("stepscope: captured steps 5-7 (")
    assert [step_numbers(path) for path in profiles_below(tmp_path / "stepscope-logs")] == [[5, 6, 7]] * 3
    assert re.search(r"ms on [^()]*\([23] steps, ", done.stderr)  # the last one may lack the time to the next
    assert "3 processes" in done.stderr
    assert told[-1].startswith("stepscope: 3 processes wrote profiles: ")
    assert f"_rank2; the session is {session}; more: stepscope overview stepscope-logs" in told[-1]
    assert not list((tmp_path / "stepscope-logs" / "plugins" / ".stepscope").glob("children-*"))


def test_stop_after_ends_the_ranks_of_a_launcher_and_with_them_the_launcher(tmp_path):
    write(tmp_path, "rank.py", MARKING.replace("range(12)", "range(10**9)"))
    script = write(tmp_path, "launch.py", LAUNCHER)

    done = run_command(["-m", "stepscope", "run", "--steps", "3", "--seconds", "60", "--stop-after", script], tmp_path)

    assert done.returncode == 0, done.stderr
    assert [step_numbers(path) for path in profiles_below(tmp_path / "stepscope-logs")] == [[5, 6, 7]] * 3


def test_a_launcher_that_is_armed_by_the_environment_leaves_nothing_but_profiles(tmp_path):
    write(tmp_path, "rank.py", MARKING)
    script = write(tmp_path, "launch.py", LAUNCHER)

    run_command(["-m", "stepscope.autostart", script], tmp_path, {"STEPSCOPE_LOGDIR": "logs", "STEPSCOPE_STEPS": "3"})

    assert [step_numbers(path) for path in profiles_below(tmp_path / "logs")] == [[5, 6, 7]] * 3
    assert not list((tmp_path / "logs" / "plugins" / ".stepscope").glob("children-*"))


def test_a_script_that_ends_by_os_exit_keeps_its_profile_and_is_told_where_it_is(tmp_path):
    script = write(tmp_path, "script.py", "import os\n" + textwrap.dedent(MARKING) + "os._exit(4)\n")

    done = run_command(["-m", "stepscope", "run", "--steps", "3", script], tmp_path)

    (path,) = profiles_below(tmp_path / "stepscope-logs")
    assert (done.returncode, step_numbers(path)) == (4, [5, 6, 7])
    assert f"{path}; more: stepscope summary stepscope-logs" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", True),
        ("-c pass", True),
        ("a.py -I", True),
        ("-u -W ignore -Xdev a.py", True),
        ("-Wm -S a.py", False),
        ("-m torch.distributed.run a.py", True),
        ("-um train 3", True),
        ("-m stepscope run a.py", False),
        ("-mstepscope.autostart a.py", False),
        ("--check-hash-based-pycs always -E a.py", False),
        ("-S a.py", False),
        ("-uI a.py", False),
    ],
)
def test_a_python_that_a_program_starts_is_followed_unless_its_flags_keep_us_out(words, expected):
    assert lets_us_in(words.split()) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PYTHON a.py --name 'a $b'", True),
        ("cd src && LR=1 exec PYTHON -u a.py > out.txt 2>&1", True),
        ("echo starts; PYTHON a.py 2>/dev/null | tee log.txt", True),
        ("PYTHON a.py &", True),
        ("PYTHON -I a.py", False),
        ("PYTHON a.py; env", False),
        ("PYTHONPATH=. PYTHON a.py", False),
        ("echo $PYTHONPATH; PYTHON a.py", False),
        ('PYTHON "a $b"', False),
        ("./train.sh", False),
        ("echo PYTHON", False),
        ("PYTHON 'a.py", False),
    ],
)
def test_a_shell_is_followed_that_runs_this_python_and_shows_no_variables(text, expected):
    assert shell_runs_this_python(re.sub(r"PYTHON\b(?!=)", sys.executable, text)) is expected


def test_a_process_with_an_environment_of_its_own_runs_as_the_program_says(tmp_path):
    write(tmp_path, "helper.py", "import sys; print('helped', [name for name in sys.modules if 'stepscope' in name])")
    script = write(
        tmp_path,
        "script.py",
        """
        import subprocess, sys
        subprocess.run([sys.executable, "helper.py"], env={}, check=True)
        """,
    )

    done = run_command(["-m", "stepscope.autostart", script], tmp_path, {"STEPSCOPE_LOGDIR": "logs"})

    assert (done.returncode, done.stdout) == (0, "helped []\n")


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A package that can be imported, and is forgotten after the test."""
    write(tmp_path, "watched_package/__init__.py", "before = True\nfrom watched_package import inner\nafter = True\n")
    write(tmp_path, "watched_package/inner.py", "")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("watched_package")]:
        del sys.modules[name]


def test_an_import_is_told_when_the_module_is_complete(modules):
    told = []
    watch = ImportHook(
        {"watched_package": lambda module: told.append(module.after)}, on_start=lambda name: told.append(name)
    )
    watch.install()
    try:
        import watched_package

        assert told == ["watched_package", True]
        assert type(watched_package.__loader__).__name__ == "SourceFileLoader"
        assert watched_package.__loader__.get_source("watched_package") is not None
    finally:
        watch.remove()


def test_a_callback_that_fails_does_not_reach_the_import(modules, caplog):
    watch = ImportHook({"watched_package": lambda module: 1 / 0})
    watch.install()
    try:
        import watched_package

        assert watched_package.after
        assert "watching watched_package failed" in caplog.text
    finally:
        watch.remove()


def test_a_finder_of_old_that_finds_no_specs_is_stepped_over(modules, monkeypatch):
    told = []
    watch = ImportHook({"watched_package": told.append})
    monkeypatch.setattr(sys, "meta_path", [object(), *sys.meta_path])
    watch.install()

    found = watch.find_spec("watched_package")

    assert found is not None
    assert found.name == "watched_package"


def test_what_is_imported_already_is_told_at_once(modules):
    import watched_package

    told = []
    watch = ImportHook({"watched_package": told.append})
    watch.install()
    watch.remove()

    assert told == [watched_package]
    assert watch not in sys.meta_path
