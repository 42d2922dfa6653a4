"""Every profiling snippet of the guides that people learn from runs after changing one import."""

from __future__ import annotations

import json
import re
import socket

import guide_programs
import pytest
from conftest import _shared_or_skip
from program_runs import run_command, run_warm

import stepscope

# The numbers of the steps that each snippet's profile marks; a list for each profile.
STEPS = {
    "bottlenecks_callback": [[100, 101, 102]],
    "guide_callback": [[10, 11, 12, 13, 14, 15]],
    "guide_custom_loop": [[0, 1, 2, 3]],
    "guide_custom_loop_anti_pattern": [[0, 1, 2]],
    "guide_many_workers": [[], [], []],
    "tab_workers": [[], []],
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the snippets of a framework left, run once."""
    known: dict[str, dict[str, list[list[int]]]] = {}

    def answer(framework: str) -> dict[str, list[list[int]]]:
        if framework not in known:
            folder = tmp_path_factory.mktemp(framework)
            with socket.create_server(("localhost", 0)) as free:
                port = free.getsockname()[1]
            words = [guide_programs.__file__, framework, str(folder)]
            environment = {"GUIDE_PORT": str(port), "KERAS_BACKEND": "tensorflow"}
            if framework == "python":
                done = run_command(words, folder, environment)
            else:
                done = run_warm(framework, words, folder, environment)
            assert done.returncode == 0, done.stderr[-3000:]
            known[framework] = json.loads(done.stdout.splitlines()[-1])
        return known[framework]

    return answer


@pytest.mark.parametrize(
    ("framework", "snippet"),
    [(name, snippet.__name__) for name, snippets in guide_programs.SNIPPETS.items() for snippet in snippets],
)
def test_a_snippet_leaves_its_profile(answers, framework, snippet):
    assert answers(framework)[snippet] == STEPS.get(snippet, [[]])


def test_no_name_of_the_profilers_in_the_guides_is_missing():
    guide = _shared_or_skip("guide")
    used = set()
    for path in guide.glob("*.txt"):
        for block in re.findall(r"```python\n(.*?)```", path.read_text(errors="replace"), re.DOTALL):
            used |= set(re.findall(r"(?<!torch\.)(?<!python\.)profiler\.(?:experimental\.)?([A-Za-z]\w*)", block))
    used -= {"experimental"}

    assert {"start", "stop", "Profile", "Trace", "Profiler", "warmup", "server", "client"} <= used
    assert [name for name in sorted(used) if not hasattr(stepscope, name)] == []
