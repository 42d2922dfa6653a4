"""The page in TensorBoard: in its own WSGI app, and in a real server."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from browsing import store_profile
from draw import draw
from waiting import await_until
from werkzeug.test import Client

pytest.importorskip("tensorboard")

from tensorboard.backend import application
from tensorboard.plugins import base_plugin

from stepscope.web import tensorboard as plugin_module
from stepscope.web.tensorboard import ProfileWatch, StepscopePlugin, has_other_profile_plugin, roots_of

TRACE = draw("host main | M0--M1--M2--M3--")
ROOT = "/data/plugin/stepscope/"


def plugin(logdir: str = "", spec: str = "") -> StepscopePlugin:
    """The plugin as TensorBoard makes it."""
    return StepscopePlugin(base_plugin.TBContext(logdir=logdir, flags=SimpleNamespace(logdir_spec=spec)))


def tensorboard(made: StepscopePlugin, prefix: str = "") -> Client:
    """TensorBoard with this plugin alone."""
    return Client(application.TensorBoardWSGI([made], path_prefix=prefix))


def listing(client: Client, prefix: str = "") -> dict[str, object]:
    """What TensorBoard says of the tab."""
    found: dict[str, object] = client.get(f"{prefix}/data/plugins_listing").json["stepscope"]
    return found


@pytest.mark.parametrize("prefix", ["", "/some/prefix"])
def test_the_whole_app_is_below_the_plugins_root(tmp_path, prefix):
    store_profile(tmp_path, "r1", TRACE)
    client = tensorboard(plugin(str(tmp_path)), prefix)

    entry = client.get(f"{prefix}/data/plugin_entry.html?name=stepscope").text
    assert 'import("./index.js")' in entry
    assert 'new URL("./index.html", import.meta.url)' in client.get(f"{prefix}{ROOT}index.js").text
    assert client.get(f"{prefix}{ROOT}index.html").mimetype == "text/html"
    assert client.get(f"{prefix}{ROOT}api/config").json["embedded"] == "tensorboard"
    session = client.get(f"{prefix}{ROOT}api/sessions").json["sessions"][0]
    assert session["run"] == "r1"
    steps = client.get(f"{prefix}{ROOT}api/sessions/{session['id']}/tools/steps").json
    assert [row["step"] for row in steps["report"]["rows"]] == [0, 1, 2, 3]
    assert client.get(f"{prefix}{ROOT}api/nothing").status_code == 404


@pytest.mark.parametrize(
    ("host", "variable", "status"),
    [("localhost:6006", "", 200), ("192.0.2.7:6006", "", 403), ("evil.example", "", 403),
     ("hub.example", "hub.example,other", 200), ("hub.example", "*", 200)],
)  # fmt: skip
def test_under_a_name_that_is_not_tensorboards_nothing_is_answered(tmp_path, monkeypatch, host, variable, status):
    monkeypatch.setenv("STEPSCOPE_ALLOWED_HOSTS", variable)
    client = tensorboard(plugin(str(tmp_path)))

    answer = client.get(f"{ROOT}api/config", headers={"Host": host})
    assert answer.status_code == status
    assert status == 200 or "STEPSCOPE_ALLOWED_HOSTS" in answer.json["hint"]


def test_where_tensorboard_listens_everywhere_its_addresses_are_answered(tmp_path):
    flags = SimpleNamespace(logdir_spec="", host=None, bind_all=True)
    client = tensorboard(StepscopePlugin(base_plugin.TBContext(logdir=str(tmp_path), flags=flags)))

    assert client.get(f"{ROOT}api/config", headers={"Host": "192.0.2.7:6006"}).status_code == 200
    assert client.get(f"{ROOT}api/config", headers={"Host": "evil.example"}).status_code == 403


def test_the_tab_is_there_once_there_is_a_profile(tmp_path, monkeypatch):
    monkeypatch.setattr(plugin_module, "LEAST_SECONDS_BETWEEN_LOOKS", 0.0)
    client = tensorboard(plugin(str(tmp_path)))
    assert listing(client)["enabled"] is False

    store_profile(tmp_path / "train", "r1", TRACE)
    await_until(lambda: listing(client)["enabled"], 60, "the tab")
    assert client.get(f"{ROOT}api/sessions").json["sessions"][0]["run"] == "train/r1"


def test_looks_at_the_logdir_are_rare_and_hold_nobody_up(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(plugin_module, "_holds_profile", lambda path: bool(looks.append(path)))
    watch = ProfileWatch([str(tmp_path)])

    assert [watch.has_seen_one() for _ in range(5)] == [False] * 5
    assert looks == [str(tmp_path)]


def test_the_tab_is_told_from_another_profile_tab(tmp_path, monkeypatch):
    monkeypatch.setattr(plugin_module, "has_other_profile_plugin", lambda: False)
    assert listing(tensorboard(plugin(str(tmp_path))))["tab_name"] == "Profile"
    monkeypatch.setattr(plugin_module, "has_other_profile_plugin", lambda: True)
    assert listing(tensorboard(plugin(str(tmp_path))))["tab_name"] == "Profile (Stepscope)"


@pytest.mark.parametrize(("names", "answer"), [(["stepscope"], False), (["profile", "stepscope"], True)])
def test_another_profile_plugin_is_known_by_its_entry_point(names, answer):
    points = [SimpleNamespace(name=name) for name in names]

    assert has_other_profile_plugin(lambda group: points) is answer


@pytest.mark.parametrize(
    ("logdir", "spec", "roots"),
    [
        ("/logs", None, [("/logs", "")]),
        ("", "/one,/two", [("/one", ""), ("/two", "")]),
        ("", "a:/one,b:gs://bucket/x", [("/one", "a"), ("gs://bucket/x", "b")]),
        ("", "gs://bucket/x,/odd:path", [("gs://bucket/x", ""), ("/odd:path", "")]),
        (None, None, []),
    ],
    ids=["logdir", "two paths", "names", "url and colon", "nothing"],
)
def test_logdirs_are_those_that_tensorboard_was_given(logdir, spec, roots):
    assert roots_of(logdir, spec) == roots


def test_several_logdirs_name_their_runs(tmp_path):
    store_profile(tmp_path / "a", "r1", TRACE)
    store_profile(tmp_path / "b", "r1", TRACE)
    client = tensorboard(plugin(spec=f"one:{tmp_path}/a,two:{tmp_path}/b,{tmp_path}/absent"))

    found = client.get(f"{ROOT}api/sessions").json
    assert sorted(session["run"] for session in found["sessions"]) == ["one/r1", "two/r1"]
    assert len({session["id"] for session in found["sessions"]}) == 2
    assert [skipped["path"] for skipped in found["skipped"]] == [f"{tmp_path}/absent"]


def test_importing_the_plugin_loads_nothing_heavy():
    script = "import sys; before = set(sys.modules); import stepscope.web.tensorboard; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & {"pyarrow", "fsspec", "tensorflow", "jax", "torch"} == set()
