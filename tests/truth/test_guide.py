"""The user guide, item by item, in the order of its table of contents: what it describes works.

The captures are those of the guide's own snippets (`guide_programs.py`), recorded once for the whole file.  What only a
GPU or a TPU shows is drawn.  docs/guide-items.md lists all items, also those that nobody can test here.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import guide_programs
import pytest
from calm import contention_percent
from conftest import _shared_or_skip
from draw import Sort, draw
from places import ROOT
from ports import free_port
from program_runs import run_command, run_warm

import stepscope
from stepscope.analysis.advice.rule import own_rules
from stepscope.analysis.facts.augmentation import augmentation_of
from stepscope.analysis.facts.work import WorkFacts
from stepscope.analysis.registry import TOOLS, tool_named
from stepscope.analysis.steps.named_steps import mark_named_steps
from stepscope.analysis.trace.program_facts import OpThreads
from stepscope.analysis.trace.thread_labels import thread_label
from stepscope.capture.program_facts import examine_graph
from stepscope.capture.remote import addresses
from stepscope.capture.remote.running_servers import find_running_servers
from stepscope.cli.main import run
from stepscope.doctor import examine_logdir, examine_machine
from stepscope.errors import UsageError
from stepscope.model import EventKind
from stepscope.report import Report

K = EventKind

# The numbers of the steps that each snippet's profile marks; a list for each profile.  Other snippets mark none.
STEPS = {
    "bottlenecks_callback": [[100, 101, 102]],
    "bottlenecks_graph_statistics": [[0, 1, 2, 3]],
    "guide_callback": [[10, 11, 12, 13, 14, 15]],
    "guide_custom_loop": [[0, 1, 2, 3]],
    "guide_custom_loop_anti_pattern": [[0, 1, 2]],
    "guide_keras_own_callback": [[9, 10, 11, 12, 13, 14]],  # Keras' own mark counts from 0
    "guide_many_workers": [[], [], []],
    "tab_workers": [[], []],
    "wrong_batch_range": [],
    "wrong_batches_that_never_come": [],
    "wrong_eager_callback": [[3, 4, 5]],
    "wrong_logdir": [],
    "wrong_port": [],
    "wrong_stop_before_start": [],
    "wrong_two_callbacks": [[3, 4, 5]],
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """What the snippets of a framework left and said, run once: a folder, and an answer for each snippet."""
    known: dict[str, tuple[Path, dict[str, Any]]] = {}

    def ran(framework: str) -> tuple[Path, dict[str, Any]]:
        if framework not in known:
            folder = tmp_path_factory.mktemp(framework)
            words = [guide_programs.__file__, framework, str(folder)]
            environment = {"GUIDE_PORT": str(free_port()), "KERAS_BACKEND": "tensorflow"}
            if framework == "python":
                done = run_command(words, folder, environment)
            else:
                done = run_warm(framework, words, folder, environment)
            assert done.returncode == 0, done.stderr[-3000:]
            known[framework] = folder, json.loads(done.stdout.splitlines()[-1])
        return known[framework]

    return ran


@pytest.fixture(scope="module")
def profile_of(programs):
    """The profile that a snippet left."""
    loaded: dict[str, Any] = {}

    def load(snippet: str, framework: str = "tensorflow") -> Any:
        if snippet not in loaded:
            loaded[snippet] = stepscope.load(programs(framework)[0] / snippet)
        return loaded[snippet]

    return load


def report_of(name: str, trace: Any) -> Report:
    """A tool's report on one drawn trace."""
    tool = tool_named(name)
    return tool.merge([tool.partial(trace)])


# -- install the profiler and GPU prerequisites ------------------------------------------------------------------------


def test_doctor_checks_what_the_guide_asks_of_a_machine():
    found = {check.check for check in examine_machine().checks}

    assert {"python", "tensorflow", "write access"} <= found
    assert {"gpu"} <= found  # with a GPU also CUPTI's library and permission: tests/doctor


# -- profiler tools ----------------------------------------------------------------------------------------------------


def test_the_overview_page(profile_of):
    overview = profile_of("guide_callback").overview().to_dict()

    parts = ("compilation", "input", "output", "kernel_launch", "host_compute", "device_to_device", "device_compute")
    assert {*parts, "device_collectives", "other"} == set(overview["breakdown_ms"])
    assert set(overview["device_compute_precision_percent"]) == {"16bit", "32bit"}
    assert len(overview["top_ops"]) == 10
    assert {"self_percent", "cumulative_percent", "category", "name"} <= set(overview["top_ops"][0])
    assert {"host_count", "device_type", "device_count"} <= set(overview["environment"])
    assert overview["advice"]


def test_the_input_pipeline_analyzer(profile_of):
    found = profile_of("guide_callback").input_pipeline().to_dict()

    assert {"read_on_demand", "read_in_advance", "preprocessing", "enqueue"} <= set(found["host_breakdown_ms"])
    assert {"mean", "std", "min", "max"} <= set(found["step_time_ms"])
    columns = {"op", "count", "total_ms", "total_percent", "self_ms", "self_percent", "category"}
    assert found["rows"]
    assert columns <= set(found["rows"][0])


@pytest.mark.parametrize("snippet", ["guide_callback", "guide_custom_loop", "guide_custom_loop_anti_pattern"])
def test_the_input_pipeline_analyzer_and_the_summary_agree(profile_of, snippet):
    overview, analyzer = (profile_of(snippet).overview().to_dict(), profile_of(snippet).input_pipeline().to_dict())

    # The analyzer calls a share of input a bottleneck that need not be the largest one.
    assert analyzer["verdict"] == "input_bound" or overview["verdict"] != "input_bound"
    # Both are shares of the step, without contention where that is worth a word; copying data in counts too, as the
    # input page says.
    busy = contention_percent(overview)
    of_step = sum(row["percent"] for row in overview["account"] if row["cause"] in ("input", "transfer"))
    of_program = 100 * of_step / (100 - busy) if busy >= 3 else of_step
    assert analyzer["input_percent"] == pytest.approx(of_program, abs=0.01)
    assert overview["input_bound_percent"] == analyzer["input_percent"]


def test_tensorflow_stats_with_idle_time(profile_of):
    report = profile_of("guide_callback").op_stats()

    with_idle = [row["self_percent_with_idle"] for row in report.rows if row["side"] == "host"]
    without = [row["self_percent"] for row in report.rows if row["side"] == "host"]
    assert sum(with_idle) < sum(without)


def test_idle_time_has_a_row_among_the_ops():
    picture = "gpu0 s    | A----B--        C-\ngpu0 t    | C-"
    trace = draw(picture, {name: Sort(K.KERNEL, f"kernel_{name}") for name in "ABC"})
    report = report_of("op-stats", trace).to_dict()
    idle = next(row for row in report["idle"] if row["side"] == "device")
    ops = [row for row in report["rows"] if row["side"] == "device"]

    assert idle["total_self_us"] == report["totals"]["device_idle_us"]
    shares = [row["self_percent_with_idle"] for row in (*ops, idle)]
    assert sum(shares) == pytest.approx(100.0, abs=1e-3)
    longer = [row for row in ops if row["total_self_us"] > idle["total_self_us"]]
    before = sum(row["self_percent_with_idle"] for row in longer)
    assert idle["rank_with_idle"] == len(longer) + 1
    assert idle["cumulative_self_percent_with_idle"] == pytest.approx(before + idle["self_percent_with_idle"], abs=1e-3)


THREADS = {
    "B": Sort(K.PYTHON_CALL, "$threading.py:988 _bootstrap"),
    "R": Sort(K.PYTHON_CALL, "$threading.py:971 run"),
    "F": Sort(K.PYTHON_CALL, "$train.py:8 load"),
    "T": Sort(K.PYTHON_CALL, "$train.py:30 train"),
}


def test_threads_have_names_in_python_traces_that_call_all_of_them_python():
    trace = draw("host python  | T---\nhost python3 | B---\nhost python3 |  RF-", THREADS)

    assert [thread_label(trace, line) for line in range(2)] == ["main thread", "load (train.py:8)"]


def test_the_trace_viewer_shows_python_calls(profile_of):
    trace = profile_of("guide_python_tracing").trace()

    names = {trace.name_of(row) for row in (trace.events.kind == K.PYTHON_CALL).nonzero()[0].tolist()}
    assert any(name.startswith("$guide_programs.py:") and name.endswith(" train") for name in names)


@pytest.mark.usefixtures("only_objects_of_this_test")
@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has", "ran out of memory: asked for 20.00 MiB in"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.", "asked for 8 bytes in"),
        (
            "OOM when allocating tensor with shape[8,8] and type float [[{{node dense/MatMul}}]]",
            "memory in dense/MatMul",
        ),
    ],
)
def test_an_allocation_that_failed_is_named(message, told, tmp_path):
    with pytest.raises(RuntimeError), stepscope.Profile(str(tmp_path)):
        raise RuntimeError(message)

    assert any(told in warning for warning in stepscope.load(tmp_path).memory_profile().warnings)


def test_the_pod_viewer_breaks_every_step_down_on_every_worker(programs):
    profile = stepscope.load(
        [programs("tensorflow")[0] / "guide_callback", programs("tensorflow")[0] / "guide_custom_loop"]
    )
    rows = profile.pod_viewer().to_dict()["rows"]

    assert len({row["host"] for row in rows}) == 2
    assert {"step", "duration_ms", "input", "kernel_launch", "device_compute"} <= set(rows[0])


def test_tf_data_long_names(profile_of):
    found = profile_of("guide_long_names").tf_data().to_dict()

    names = {row["long_name"] for row in found["graph"]}
    assert any(name.startswith("Iterator::") and name.endswith("Range") for name in names)
    assert {"calls", "slow_calls", "min_us", "mean_us", "max_us"} <= set(found["pipelines"][0])
    assert {"start_ms", "total_us", "self_us", "calls", "critical", "bottleneck"} <= set(found["graph"][0])


# -- collect performance data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("framework", "snippet"),
    [(name, snippet.__name__) for name, snippets in guide_programs.SNIPPETS.items() for snippet in snippets],
)
def test_a_snippet_leaves_its_profile(programs, framework, snippet):
    assert programs(framework)[1][snippet]["steps"] == STEPS.get(snippet, [[]])


def test_no_name_of_the_profilers_in_the_guides_is_missing():
    guide = _shared_or_skip("guide")
    used = set()
    for path in guide.glob("*.txt"):
        for block in re.findall(r"```python\n(.*?)```", path.read_text(errors="replace"), re.DOTALL):
            used |= set(re.findall(r"(?<!torch\.)(?<!python\.)profiler\.(?:experimental\.)?([A-Za-z]\w*)", block))
    used -= {"experimental"}

    assert {"start", "stop", "Profile", "Trace", "Profiler", "warmup", "server", "client"} <= used
    assert [name for name in sorted(used) if not hasattr(stepscope, name)] == []


def test_a_running_server_is_found_without_its_address():
    port = stepscope.server.start(0, address="localhost")
    try:
        assert f"localhost:{port}" in [server.address for server in find_running_servers()]
    finally:
        stepscope.server.stop()
    assert f"localhost:{port}" not in [server.address for server in find_running_servers()]


SELF_CAPTURE = """
import stepscope
from stepscope.capture.remote.running_servers import find_running_servers
found = next(server for server in find_running_servers() if server.program == "captures_itself.py")
# With the token of the note, and once the window that `run` captures of a program without steps is over.
stepscope.client.trace(found.address, "asked", 100, num_tracing_attempts=20)
print(stepscope.server.start(0) is not None)  # the program's own server takes its place
print(found.address in [server.address for server in find_running_servers()])
"""


def test_a_program_under_stepscope_run_is_found_and_captured_without_its_address(tmp_path):
    script = "captures_itself.py"  # as no program of another test is called
    (tmp_path / script).write_text(SELF_CAPTURE)
    done = run_command(["-m", "stepscope", "run", "--logdir", "logs", "--seconds", "0.1", script], tmp_path)

    assert done.stdout.split() == ["True", "False"], done.stderr
    assert list((tmp_path / "asked").rglob("*.xplane.pb"))


class FakeCloud(BaseHTTPRequestHandler):
    """Google's metadata server and its API of TPUs in one."""

    ANSWERS: ClassVar = {
        "/computeMetadata/v1/project/project-id": "project-1",
        "/computeMetadata/v1/instance/zone": "projects/123/zones/zone-a",
        "/computeMetadata/v1/instance/service-accounts/default/token": '{"access_token": "right"}',
        "/v2/projects/project-1/locations/zone-a/nodes/pod": '{"state": "READY", "networkEndpoints":'
        ' [{"ipAddress": "10.0.0.2"}, {"ipAddress": "10.0.0.3"}]}',
        "/v2/projects/project-1/locations/zone-a/nodes/off": '{"state": "STOPPED"}',
    }

    def do_GET(self) -> None:
        is_allowed = self.headers.get("Authorization", "Bearer right") == "Bearer right"
        answer = self.ANSWERS.get(self.path, "") if is_allowed else ""
        self.send_response(200 if answer else 404)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        """Nothing in the output of the tests."""


@pytest.fixture
def cloud(monkeypatch):
    """A machine of a project with TPUs."""
    with ThreadingHTTPServer(("localhost", 0), FakeCloud) as server:
        place = f"localhost:{server.server_address[1]}"
        monkeypatch.setenv("GCE_METADATA_HOST", place)
        monkeypatch.setenv("TPU_API_ENDPOINT", f"http://{place}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


@pytest.mark.parametrize("name", ["tpu://pod", "tpu://project-1/zone-a/pod"])
def test_a_tpu_name_stands_for_its_workers(cloud, name):
    assert [str(address) for address in addresses.parse(f"{name},localhost:6009")] == [
        "10.0.0.2:8466",
        "10.0.0.3:8466",
        "localhost:6009",
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("tpu://a/b", "is not a TPU name"), ("tpu://unknown", "cannot find the TPU"), ("tpu://off", "it is STOPPED")],
)
def test_a_tpu_that_cannot_be_asked_ends_in_one_clear_line(cloud, name, reason):
    with pytest.raises(UsageError, match=reason):
        stepscope.client.trace(name, "logs", 100)


# -- the first sentence on every snippet is true -----------------------------------------------------------------------

FIRST_CALLS = "compiling: .* traces and compiles, and no later call was recorded"
OF_STEP = r"(?!unknown|compile).* of (?:each (?:long )?|the (?:median|average) )step"
OF_CAPTURE = r"(?:host|compute|launch|input)-bound: .* of the capture|unknown: .* of the capture is unexplained"
FIRST_SENTENCES = {
    "agents_basic_trace": OF_CAPTURE,
    "agents_selective_trace": OF_CAPTURE,
    "bottlenecks_callback": OF_STEP,
    "bottlenecks_function": OF_STEP,
    "bottlenecks_graph": FIRST_CALLS,
    "bottlenecks_graph_statistics": OF_STEP,
    "tab_profiler_object": FIRST_CALLS,
    "guide_callback": OF_STEP,
    "guide_function_api": OF_CAPTURE,
    "guide_context_manager": OF_CAPTURE,
    "guide_custom_loop": OF_STEP,
    "guide_custom_loop_anti_pattern": OF_STEP,
    "post_warmup": OF_CAPTURE,
}


@pytest.mark.parametrize(("snippet", "sentence"), FIRST_SENTENCES.items())
def test_the_first_sentence_is_true(profile_of, snippet, sentence):
    assert re.match(sentence, profile_of(snippet).overview().verdict.sentence)


@pytest.mark.parametrize("snippet", ["bottlenecks_graph", "tab_profiler_object"])
def test_a_capture_of_first_calls_says_so_and_promises_nothing(profile_of, snippet):
    overview = profile_of(snippet).overview()

    assert [item.id for item in overview.advice] == ["capture.first-calls"]
    assert overview.advice[0].predicted_speedup is None
    assert "run a few steps before the capture starts" in overview.advice[0].actions[0]


@pytest.mark.parametrize(
    ("picture", "first_only"),
    [
        ("host main | M0------\nhost main |  X----", True),
        ("host main | F-------\nhost main |  X----", True),
        ("host main | M0------M1--\nhost main |  X----", False),  # a later step was recorded, too
        ("host main | M0------------------\nhost main |  X-", False),  # usual
    ],
)
def test_first_calls_are_those_before_any_other(picture, first_only):
    overview = report_of("overview", draw(picture))

    assert (overview.to_dict()["verdict_text"].startswith("compiling: ")) is first_only


def test_a_few_calls_after_the_first_change_the_words_only():
    sorts = {
        "F": Sort(K.TRACED_FUNCTION, "train_step", stats={"tf_function_call": "traced-nonXla"}),
        "G": Sort(K.TRACED_FUNCTION, "train_step"),
    }
    overview = report_of("overview", draw("host main | F-------G-\nhost main |  X----", sorts)).to_dict()

    assert overview["verdict_text"].endswith("traces and compiles, and hardly a later call was recorded")


def test_a_first_step_that_compiles_is_no_advice_about_every_step():
    overview = report_of(
        "overview", draw("host main | M0----------M1--M2--\nhost main |  X-------    m-  m-")
    ).to_dict()

    assert "recompilation" not in [item["class"] for item in overview["advice"]]
    assert any("leave out this warm-up" in warning for warning in overview["warnings"])


def test_without_steps_the_first_advice_is_to_record_some():
    assert "stepscope.step(i)" in report_of("overview", draw("host main | a-- b--")).advice[0].actions[0]


# -- profiling custom training loops -----------------------------------------------------------------------------------


def test_a_fetch_outside_of_the_mark_is_said_and_counted_as_input(profile_of):
    wrong, right = (profile_of(name).overview() for name in ("guide_custom_loop_anti_pattern", "guide_custom_loop"))

    assert any("fetches its batch outside the step marks" in warning for warning in wrong.warnings)
    assert not any("outside the step marks" in warning for warning in right.warnings)
    assert wrong.to_dict()["breakdown_ms"]["input"] > 0


RANGES = {"A": Sort(K.ANNOTATION, "train_step"), "B": Sort(K.ANNOTATION, "backward"), "E": Sort(K.ANNOTATION, "epoch")}


def test_repeated_ranges_of_the_program_are_its_steps(profile_of):
    found = profile_of("tab_torch", "torch").overview().to_dict()

    assert found["steps_source"] == "markers"
    assert found["step_time_ms"]["count"] in (5, 6)  # of six, the first may be a warm-up
    assert "train_step" in found["steps_how"]


@pytest.mark.parametrize(
    ("picture", "steps"),
    [
        ("host main | A---A---A---\nhost main |  m-  m-  m-", 3),
        ("host main | A---A---A---\nhost main | mB- mB- mB-", 3),  # the outer one
        ("host main | M0--A---A---A---\nhost main |  m-  m-  m-", 1),  # marks of the profiler come first
        ("host main | A-m---A-m---A-m---\nhost main |", 0),  # they hold less than half of the work
    ],
)
def test_what_counts_as_a_named_step(picture, steps):
    trace = mark_named_steps(draw(picture, RANGES))

    assert int((trace.events.kind == K.STEP_MARK).sum()) == steps


def test_ranges_have_a_table_of_their_own(profile_of):
    rows = profile_of("tab_torch", "torch").annotations().to_dict()["rows"]

    own = [row for row in rows if not row["is_library"]]
    assert [(row["name"], row["occurrences"], row["is_step"]) for row in own] == [
        ("train_step", 6, True),
        ("backward_pass", 6, False),
    ]


def test_the_pause_between_two_epochs_is_no_step():
    loader = {"l": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")}
    epoch = "lm-lm-lm-lm-lm-l--"  # five batches, and a fetch that gets none
    found = report_of("steps", draw(f"host main | {epoch}{epoch}", loader)).to_dict()

    assert (found["steps_source"], len(found["rows"])) == ("inferred", 10)


# -- profiling use cases: workers --------------------------------------------------------------------------------------


def test_folders_of_workers_are_one_session(programs, capsys):
    folder = programs("python")[0] / "tab_workers" / "logs"
    pattern = str(folder / "profile_worker_*")

    assert len(stepscope.load(pattern).hosts) == len(stepscope.load(sorted(folder.iterdir())).hosts) == 2
    assert run(["summary", *map(str, sorted(folder.iterdir()))]) == 0
    assert "2 hosts" in capsys.readouterr().out


def test_jobs_without_a_step_number_in_common_still_answer():
    pictures = ["host main | M0----M1----M2----", "host main | M50-----M51-----M52-----"]
    tool = tool_named("overview")
    report = tool.merge([tool.partial(draw(text, host=name)) for name, text in zip("ab", pictures, strict=True)])

    assert report.to_dict()["step_time_ms"]["count"] == 3
    assert "straggler" not in [item["class"] for item in report.to_dict()["advice"]]


# -- which session was read --------------------------------------------------------------------------------------------


def test_the_summary_says_which_session_it_read(programs, capsys):
    assert run(["summary", str(programs("tensorflow")[0])]) == 0

    said = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("recorded "))
    assert re.search(r"; from \S+ \(the newest of \d+ sessions; --run NAME reads another\)", said)


def test_a_profile_under_another_name_is_named_not_passed_over(tmp_path):
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]
    for name in ("a.pt.trace.json", "control.json"):
        (tmp_path / name).write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))

    assert any(
        "control.json" in warning and "passed over" in warning for warning in stepscope.load(tmp_path).steps().warnings
    )


# -- what goes wrong ends in one clear line ----------------------------------------------------------------------------

WRONG = {
    (
        "tensorflow",
        "wrong_batches_that_never_come",
    ): "profile_batch='100,102' was not reached: the loop ended after 64 steps",
    ("tensorflow", "wrong_batch_range"): "profile_batch='15, 10' does not name batches",
    ("tensorflow", "wrong_two_callbacks"): "a capture is already running",
    ("tensorflow", "wrong_start_inside_a_function"): "start() was called while TensorFlow traced a tf.function",
    ("python", "wrong_stop_before_start"): "no capture is running; call start(logdir) first",
    ("python", "wrong_second_start"): "call stop() before the next start()",
    ("python", "wrong_logdir"): "nothing can be written here",
    ("python", "wrong_port"): "another program or worker of this job may use the port",
}


@pytest.mark.parametrize(("program", "line"), WRONG.items(), ids=[name for _, name in WRONG])
def test_a_mistake_ends_in_one_clear_line(programs, program, line):
    framework, name = program
    said = programs(framework)[1][name]["said"]

    assert [text for text in said if line in text] == said[:1]


def test_a_window_that_was_never_reached_is_explained_by_doctor_and_summary(programs, capsys):
    logdir = str(programs("tensorflow")[0] / "wrong_batches_that_never_come")

    problem = examine_logdir(logdir).checks[0]
    assert "was not reached: the loop ended after 64 steps" in problem.found
    assert "profile_batch=(10, 15)" in problem.remedy
    assert run(["summary", logdir]) == 1
    assert "was not reached" in capsys.readouterr().err


def test_a_window_without_a_step_says_so_in_the_profile(profile_of):
    warnings = profile_of("wrong_window_without_steps", "python").overview().warnings

    assert any("no step ended inside the capture" in warning for warning in warnings)


def test_a_callback_that_no_trainer_called_says_so(tmp_path):
    program = (
        "import sys\nfrom stepscope.capture.callbacks.batches import BatchCallback\n"
        "callback = BatchCallback(log_dir=sys.argv[1])\n"
    )
    done = run_command(["-c", program, str(tmp_path)], tmp_path)

    assert "no trainer called it" in done.stderr
    assert "pass it to the trainer" in examine_logdir(str(tmp_path)).checks[0].remedy


# -- best practices ----------------------------------------------------------------------------------------------------


def test_every_practice_that_a_trace_shows_names_a_rule():
    text = (ROOT / "docs/best-practices.md").read_text(encoding="utf-8")
    known = {rule.id for rule in own_rules()} | {
        "input.crowds",
        "input.reading-competes",
        "input.python-competes",
    }  # all of the rule `input`

    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line.rsplit("|", 2)[-2]]
    named = {name for row in rows for name in re.findall(r"`([a-z.-]+)`", row.rsplit("|", 2)[-2])}
    assert len(rows) >= 19
    assert named <= known


def stage(name: str, self_us: float, **more: Any) -> dict[str, Any]:
    return {"name": name.rpartition("::")[2], "long_name": name, "self_us": self_us, "total_us": self_us, **more}


def seen(**more: Any) -> Any:
    """What a rule sees of a run, as far as the rules below ask."""
    return SimpleNamespace(
        **{"has_device": False, "framework": "tensorflow", "device_type": "", "period_ms": 100.0, "infers": False}
        | more
    )


@pytest.mark.parametrize(
    ("stages", "advised"),
    [
        (("Iterator::Batch", "Iterator::Batch::Shard", "Iterator::Batch::Shard::Map"), True),
        (("Iterator::Batch", "Iterator::Batch::Map", "Iterator::Batch::Map::Shard"), False),
        (("Iterator::Batch", "Iterator::Batch::Map"), False),
    ],
)
def test_sharding_after_the_work_is_advice(stages, advised):
    rule = next(rule for rule in own_rules() if rule.id == "input.shard-late")
    graph = tuple(stage(name, 100.0) for name in stages)
    context = seen(read=lambda tool: SimpleNamespace(graph=graph) if tool == "tf-data" else None)

    assert (rule(context) is not None) is advised


def op_row(where: str, name: str, kind: str, self_us: float) -> dict[str, Any]:
    return {"side": where, "name": name, "type": kind, "total_self_us": self_us}


@pytest.mark.parametrize(
    ("bias_us", "norm", "advised"),
    [(50.0, "FusedBatchNormV3", True), (50.0, "Relu", False), (1.0, "FusedBatchNormV3", False)],
)
def test_biases_before_batch_normalization_are_advice(bias_us, norm, advised):
    rule = next(rule for rule in own_rules() if rule.id == "compute.bias-before-norm")
    rows = [
        op_row("host", "conv/BiasAdd", "BiasAdd", bias_us),
        op_row("host", "bn", norm, 100.0),
        op_row("host", "c", "Conv2D", 500.0),
    ]
    context = seen(read=lambda _: SimpleNamespace(rows=rows), has_device=False, framework="tensorflow")

    assert (rule(context) is not None) is advised


def test_graph_statistics_find_an_unused_layer(profile_of):
    profile = profile_of("bottlenecks_graph_statistics")

    graph = next(row for row in profile.op_stats().to_dict()["graphs"] if row["graph"] == "train_step")
    assert (graph["unused_layers"], graph["nodes"] > graph["unused_nodes"] > 0) == ("auxiliary", True)
    assert "MatMul" in graph["op_types"]
    advice = next(item for item in profile.overview().advice if item.id == "graph.unused-layers")
    assert "no result of train_step depends on auxiliary" in advice.evidence


def node(name: str, kind: str, *inputs: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, op=kind, input=inputs)


def test_a_graph_node_is_used_if_a_result_or_an_effect_depends_on_it():
    nodes = [
        node("a/MatMul", "MatMul", "x"),
        node("read", "ReadVariableOp", "v"),
        node("b/MatMul", "MatMul", "a/MatMul:product:0"),
        node("assign", "AssignVariableOp", "v", "read:value:0", "^b/MatMul"),
        node("c/MatMul", "MatMul", "x"),
        node("gradient_tape/d/MatMul", "MatMul", "x"),
        node("add", "AddV2", "x", "y"),
    ]
    whole, part = (
        SimpleNamespace(attr={"_output_shapes": SimpleNamespace(list=SimpleNamespace(shape=[shape]))})
        for shape in (
            SimpleNamespace(dim=[SimpleNamespace(size=size) for size in sizes]) for sizes in ((300, 400), (4, 8))
        )
    )
    function = SimpleNamespace(
        node_def=nodes, ret={"out": "a/MatMul:product:0"}, control_ret={"assign": "assign", "add": "add"},
        signature=SimpleNamespace(input_arg=[SimpleNamespace(name="y"), SimpleNamespace(name="x")]),
        arg_attr={0: part, 1: whole},
    )  # fmt: skip

    found = examine_graph("f", function)
    assert found.takes == dict.fromkeys(("a/MatMul", "c/MatMul", "gradient_tape/d/MatMul"), "300,400")
    assert (found.nodes, found.unused, found.unused_layers) == (7, 2, ["c"])


PIXELS = {
    "Q": Sort(K.OP, "Cast:Cast"),
    "F": Sort(K.OP, "flip/ReverseV2:ReverseV2"),
    "Z": Sort(K.ALLOCATION, "MemoryAllocation", stats={"data_type": 1, "requested_bytes": 4000}),  # floats
    "Y": Sort(K.ALLOCATION, "MemoryAllocation", stats={"data_type": 4, "requested_bytes": 1000}),  # bytes
}


@pytest.mark.parametrize(
    ("ops", "made", "moved_us"), [("Q-F---", "Z Z   ", 4000.0), ("F---Q-", "Y   Z ", None), ("F-----", "Z     ", None)]
)
def test_pixels_that_are_moved_after_the_cast_are_found(ops, made, moved_us):
    line = "host tf_data_private_threadpool"
    found = augmentation_of(draw(f"host main | M0------M1------\n{line} | {ops}\n{line} | {made}", PIXELS))

    assert (found and found.wide_ps / 1e6) == moved_us


@pytest.mark.parametrize(
    ("threads", "cores", "busy", "advised"),
    [(1, 8, 20.0, True), (8, 8, 20.0, False), (1, 8, 95.0, False), (None, 8, 20.0, False)],
)
def test_fewer_threads_than_cores_are_advice_where_the_host_computes(threads, cores, busy, advised):
    rule = next(rule for rule in own_rules() if rule.id == "threads.few")
    context = seen(
        counter={"CPU machine %": busy}.get, has_device=False, framework="pytorch", cores=cores,
        work=WorkFacts(steps=1, compute_ps=80 * 10**9), percent=lambda ms: ms,
        pace=SimpleNamespace(op_threads=OpThreads(cores, threads)),
    )  # fmt: skip

    assert (rule(context) is not None) is advised


@pytest.mark.parametrize(
    ("memory", "peak", "framework", "advised"),
    [
        ("GPU_0_bfc", 20, "tensorflow", "set_memory_growth"),
        ("GPU_0_bfc", 20, "pytorch", "raise the batch size"),
        ("GPU_0_bfc", 60, "pytorch", ""),
        ("mklcpu", 20, "pytorch", ""),
    ],
)
def test_free_memory_is_advice(memory, peak, framework, advised):
    rule = next(rule for rule in own_rules() if rule.id == "memory.free")
    memories = [{"id": memory, "capacity_bytes": 100, "peak": {"stack_bytes": 0, "heap_bytes": peak}}]
    context = seen(
        read=lambda _: SimpleNamespace(memories=memories), has_device=True, framework=framework,
        hosts=[SimpleNamespace(settings=(), purposes={})],
    )  # fmt: skip
    advice = rule(context)

    assert advised in advice.actions[-1] if advised else advice is None


@pytest.mark.parametrize(("kind", "advised"), [("DecodeJpeg", True), ("Cast", False)])
def test_decoding_that_a_device_waits_for_is_advice(kind, advised):
    rule = next(rule for rule in own_rules() if rule.id == "input.decoding")
    rows = [op_row("host", "decode", kind, 80.0), op_row("host", "resize", "ResizeBilinear", 20.0)]
    context = seen(
        read=lambda _: SimpleNamespace(rows=rows), has_device=True, framework="tensorflow",
        cause_ms=lambda *_: 50.0, percent=lambda ms: ms,
    )  # fmt: skip

    assert (rule(context) is not None) is advised


def test_gpu_kernel_stats():
    trace = draw("host main | M0----M1----\nhost main |  L1    L2\ngpu0 s    |   K1--  K2--")
    rows = report_of("kernel-stats", trace).to_dict()["rows"]

    wanted = (
        "rank kernel registers_per_thread shared_memory_bytes block_dim grid_dim tensor_core_eligible uses_tensor_core"
        " op occurrences total_us avg_us min_us max_us"
    )
    assert set(wanted.split()) <= set(rows[0])


def test_batches_10_to_15_are_steps_10_to_15_whoever_marked_them(profile_of):
    numbers = [
        [row["step"] for row in profile_of(name).steps().to_dict()["rows"]]
        for name in ("guide_callback", "guide_keras_own_callback")
    ]

    assert numbers == [[10, 11, 12, 13, 14, 15]] * 2


def test_every_op_is_in_the_csv(profile_of, capsys):
    profile = profile_of("guide_callback")
    assert run(["op-stats", str(profile.path), "--format", "csv"]) == 0

    assert len(capsys.readouterr().out.splitlines()) == 1 + len(profile.op_stats().rows)


@pytest.mark.parametrize("workers", ["grpc:/localhost:80", "localhost", "grpc://a:1,grpc//b:2", ""])
def test_a_mistyped_list_of_workers_is_refused(workers, tmp_path):
    with pytest.raises(UsageError, match="is not a worker address; write host:port"):
        stepscope.client.trace(workers, str(tmp_path), 100)


def test_every_tool_of_the_guide_is_a_command():
    names = {tool.name for tool in TOOLS}

    assert {
        "overview",
        "input-pipeline",
        "op-stats",
        "kernel-stats",
        "memory-profile",
        "pod-viewer",
        "tf-data",
    } <= names


def test_tensorflow_stats_count_no_share_of_the_other_side(profile_of):
    rows = profile_of("guide_callback").op_stats().to_dict()["rows"]

    host = [row for row in rows if row["side"] == "host"]
    assert host
    assert all(not row["device_self_percent"] and not row["device_cumulative_self_percent"] for row in host)
    assert all(row["total_self_us"] <= row["total_us"] + 1e-6 for row in rows)


def test_the_memory_profile_tool(profile_of):
    memory = profile_of("guide_callback").memory_profile().to_dict()

    assert (
        "memories" in memory
    )  # this capture's host may record no allocation; the columns: docs/tools/memory-profile.md
    fields = (ROOT / "docs/tools/memory-profile.md").read_text(encoding="utf-8")
    for name in (
        "peak_heap_bytes",
        "fragmentation_percent",
        "requested_bytes",
        "region",
        "dtype",
        "shape",
        "in_use_bytes",
    ):
        assert name in fields


def test_no_suggestion_is_contradicted_by_the_file(profile_of):
    suggestion = str((profile_of("guide_long_names").tf_data().to_dict()["bottleneck"] or {}).get("suggestion", ""))

    assert "py_function" not in suggestion
