"""The page's server, asked as a browser asks it but without a network."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from browsing import DRAWN, store_profile
from draw import draw
from waiting import await_until
from werkzeug.test import Client

import stepscope
from stepscope import api
from stepscope.analysis.compare.compare import DEFAULT_TOOLS, comparable_tools, compare
from stepscope.analysis.compare.sides import Side, side_of
from stepscope.analysis.registry import TOOLS
from stepscope.engines import host_work
from stepscope.export import pieces
from stepscope.export.registry import export_named
from stepscope.formats.session import HostFile
from stepscope.formats.xspace import writer
from stepscope.report import (
    Field,
    Report,
    Role,
    Rows,
)
from stepscope.report.export import to_csv, to_json
from stepscope.runs import compare_runs, list_runs
from stepscope.web import api_tools, static
from stepscope.web import opened as opened_module
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.hosts import own_names
from stepscope.web.site import MOST_WAITING, Site, SiteOptions, import_ahead
from stepscope.web.summaries import READING


def client_of(*logdirs: Path, **options: Any) -> Client:
    """A browser at the page of some logdirs."""
    return Client(App(Site(SiteOptions([Root(str(logdir)) for logdir in logdirs], **options))))


def site_of(client: Client) -> Site:
    """The site behind a client."""
    site: Site = client.application.site
    return site


def fresh(client: Client) -> Client:
    """The same, sure to see what was written this moment."""
    site_of(client).catalogue.forget()
    return client


def session_id(client: Client, run: str) -> str:
    """The id of a run."""
    return next(one["id"] for one in fresh(client).get("/api/sessions").json["sessions"] if one["run"] == run)


def loaded(client: Client, session: str) -> Any:
    """What a session says of itself when all is done in the background."""

    def told() -> Any:
        said = client.get(f"/api/sessions/{session}").json
        is_done = said["state"] == "failed" or all(tool["has_data"] is not None for tool in said["tools"])
        return said if is_done else None

    return await_until(told, 60, "a session whose tools are all known")


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """A logdir with the sessions `drawn` and `two`, the latter of two hosts."""
    folder = tmp_path / "logs"
    store_profile(folder, "drawn", draw(DRAWN))
    store_profile(folder, "two", draw(DRAWN, host="one"), draw("host main | M0-M1-M2-M3-", host="other"))
    return folder


@pytest.fixture
def client(logdir: Path) -> Iterator[Client]:
    """A browser at the page of that logdir."""
    made = client_of(logdir)
    yield made
    site_of(made).close()


# -- what there is -----------------------------------------------------------------------------------------------------


def test_the_tools_are_those_of_the_registry(client):
    config = client.get("/api/config").json

    assert [tool["name"] for tool in config["tools"]] == [tool.name for tool in TOOLS]
    assert {tool["title"] for tool in config["tools"]} >= {"Overview", "Op stats", "tf.data"}
    assert (config["version"], config["embedded"]) == (stepscope.__version__, None)


def test_a_folder_whose_name_is_no_text_hides_no_session(client, logdir):
    store_profile(logdir, os.fsdecode(b"caf\xe9"), draw(DRAWN))

    found = {one["run"]: one["path"] for one in fresh(client).get("/api/sessions").json["sessions"]}

    assert len(found) >= 2
    assert found["caf?"].endswith("/caf?")


def test_sessions_come_newest_first_with_their_hosts(client, logdir):
    store_profile(logdir, "2026_01_02_03_04_05", draw(DRAWN))
    store_profile(logdir, "2099_01_02_03_04_05", draw(DRAWN))

    found = fresh(client).get("/api/sessions").json

    assert found["sessions"][0]["run"] == "2099_01_02_03_04_05"
    two = next(one for one in found["sessions"] if one["run"] == "two")
    assert (two["hosts"], two["formats"]) == (["one", "other"], ["xspace"])
    assert two["bytes"] == sum(path.stat().st_size for path in (logdir / "plugins/profile/two").iterdir())
    assert (found["searched"], found["skipped"]) == ([str(logdir)], [])


def test_an_id_stays_the_same_and_goes_into_an_address(logdir):
    store_profile(logdir / "a b" / "\u00fc&?#%", "r/1".replace("/", "_"), draw(DRAWN))
    first, second = (client_of(logdir).get("/api/sessions").json["sessions"] for _ in range(2))

    assert [one["id"] for one in first] == [one["id"] for one in second]
    assert all(one["id"].replace("-", "").replace("_", "").replace(".", "").isalnum() for one in first)
    assert len({one["id"] for one in first}) == len(first) == 3


def test_without_a_profile_the_page_says_where_it_looked_and_what_to_do(tmp_path):
    logdir = tmp_path / "away" / "from" / "others"  # whose profiles it would point to
    logdir.mkdir(parents=True)
    (logdir / "events.out.tfevents.1").write_bytes(b"x")
    found = client_of(logdir).get("/api/sessions").json

    assert (found["sessions"], found["searched"]) == ([], [str(logdir)])
    assert "TensorBoard events" in found["skipped"][0]["reason"]
    assert "record one" in found["skipped"][0]["hint"]


def test_a_file_can_be_given_in_place_of_a_logdir(tmp_path):
    path = tmp_path / "only.xplane.pb"
    path.write_bytes(writer.write(draw(DRAWN)))
    client = client_of(path)

    session = client.get("/api/sessions").json["sessions"][0]
    assert loaded(client, session["id"])["facts"]["step_count"] == 4


# -- a session ---------------------------------------------------------------------------------------------------------


def test_a_session_is_loaded_in_the_background_and_says_how_far_it_is(client, logdir):
    told = loaded(client, session_id(client, "two"))

    assert told["state"] == "ready"
    assert told["progress"]["done_bytes"] == told["progress"]["total_bytes"] == told["bytes"]
    assert told["progress"]["events"] > 0
    assert [(host["name"], host["state"], host["error"]) for host in told["hosts"]] == [
        ("one", "ready", None),
        ("other", "ready", None),
    ]
    assert (told["facts"]["host_count"], told["facts"]["steps_source"]) == (2, "markers")


@pytest.mark.parametrize("profile", ["tf-gpu-multi-worker", "torch-v100-resnet50-workers0"])
def test_progress_moves_within_one_file(corpus, monkeypatch, profile):
    seen: list[int] = []
    note = host_work.HostWork._note_read

    def look(self: host_work.HostWork, file: HostFile, nbytes: int) -> None:
        note(self, file, nbytes)
        seen.append(self.bytes_read[file.host])

    monkeypatch.setattr(host_work.HostWork, "_note_read", look)
    monkeypatch.setattr(host_work, "_LARGE_FILE_BYTES", 1)
    loaded = stepscope.load(corpus / profile, host=stepscope.load(corpus / profile).hosts[0])
    loaded.trace()

    size = loaded._files[0].size or 0
    assert seen == sorted(seen)
    assert size / 2 < seen[-1] <= size == loaded.bytes_read(loaded.hosts[0])


def test_those_who_wait_for_one_session_do_not_hold_up_the_rest(client, monkeypatch):
    held = threading.Event()
    monkeypatch.setattr(opened_module.OpenSession, "_load_hosts", lambda self: held.wait(120))
    session = session_id(client, "two")
    with ThreadPoolExecutor(MOST_WAITING) as waiting:
        answers = [waiting.submit(client.get, f"/api/sessions/{session}?wait=1000") for _ in range(MOST_WAITING)]
        assert client.get("/api/sessions").status_code == 200
        held.set()
    assert all(answer.result().status_code == 200 for answer in answers)


def test_the_state_of_a_ready_session_does_not_wait_for_the_work_that_follows(client, monkeypatch):
    goes_on = threading.Event()
    monkeypatch.setattr(opened_module.OpenSession, "_load_timelines", lambda opened, hosts: work_on(opened))

    def work_on(opened: opened_module.OpenSession) -> None:
        with opened._turns.background():
            goes_on.wait(30)

    address = f"/api/sessions/{session_id(client, 'drawn')}"
    state = await_until(lambda: (said := client.get(address).json)["state"] == "ready" and said, 10, "a ready session")

    assert not goes_on.is_set()
    assert {tool["name"] for tool in state["tools"] if tool["has_data"]} >= {"overview", "trust"}
    goes_on.set()


def test_the_newest_session_is_loaded_before_somebody_asks(logdir):
    client = client_of(logdir, opens_newest=True)
    newest = client.get("/api/sessions").json["sessions"][0]["id"]
    site = site_of(client)
    site.warm_up()
    await_until(lambda: newest in site._opened, 60, "the newest session")
    opened = site.opened(newest)
    opened.wait(120)
    assert opened.state == "ready"
    site.close()


def test_what_cannot_be_imported_beforehand_is_logged(caplog):
    caplog.set_level(logging.WARNING)
    import_ahead("overview")

    assert caplog.text == ""
    import_ahead("no such tool")
    assert "will open more slowly" in caplog.text


def test_a_tool_without_data_says_what_is_missing(client, logdir):
    store_profile(logdir, "bare", draw("gpu0 s | ab--c-ab--c-"))
    told = loaded(client, session_id(client, "bare"))
    states = {tool["name"]: tool for tool in told["tools"]}

    assert states["overview"] == {"name": "overview", "has_data": True, "missing": None, "lacks": []}
    assert states["kernel-stats"]["has_data"] is True
    for tool in ("input-pipeline", "tf-data", "memory-profile"):
        assert states[tool]["has_data"] is False
        assert len(states[tool]["missing"].split()) > 5, states[tool]


def test_a_host_that_cannot_be_read_is_named_and_the_others_are_shown(client, logdir):
    (logdir / "plugins/profile/two/other.xplane.pb").write_bytes(b"no profile at all")
    told = loaded(fresh(client), session_id(client, "two"))

    assert told["state"] == "ready"
    assert [host["state"] for host in told["hosts"]] == ["ready", "failed"]
    assert "other.xplane.pb" in told["hosts"][1]["error"]["error"]


def test_a_session_that_cannot_be_read_says_why(client, logdir):
    (logdir / "plugins/profile/drawn/host.xplane.pb").write_bytes(b"no profile at all")
    told = loaded(fresh(client), session_id(client, "drawn"))

    assert (told["state"], told["facts"]) == ("failed", None)
    assert "host.xplane.pb" in told["error"]["error"]
    answer = client.get(f"/api/sessions/{told['id']}/tools/overview")
    assert answer.status_code == 409
    assert "host.xplane.pb" in answer.json["error"]


def test_a_replaced_profile_is_read_anew(client, logdir):
    session = session_id(client, "drawn")
    address = f"/api/sessions/{session}/tools/steps"
    before = client.get(address)
    assert len(before.json["report"]["rows"]) == 4

    store_profile(logdir, "drawn", draw("host main | M0--M1--M2--"))

    after = client.get(address, headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, len(after.json["report"]["rows"])) == (200, 3)


def test_a_profile_that_is_deleted_while_open_is_gone_and_the_others_are_named(client, logdir):
    session = session_id(client, "drawn")
    loaded(client, session)
    for path in (logdir / "plugins/profile/drawn").iterdir():
        path.unlink()

    answer = client.get(f"/api/sessions/{session}/tools/steps")
    assert answer.status_code in (404, 409, 410)  # the listing of a moment ago may still name it
    answer = fresh(client).get(f"/api/sessions/{session}")
    assert answer.status_code == 410 or answer.json["state"] == "failed"

    def is_gone() -> Any:
        last = fresh(client).get(f"/api/sessions/{session}")
        return last if last.status_code == 404 else None

    answer = await_until(is_gone, 60, "a listing without the deleted profile")
    assert answer.json["choices"] == [session_id(client, "two")]


def test_nothing_is_written_beside_a_profile(client, logdir):
    def tree() -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_mtime_ns) for path in logdir.rglob("*"))

    before = tree()
    for run in ("drawn", "two"):
        loaded(client, session_id(client, run))
    assert tree() == before


def test_the_report_of_a_session_is_a_file_to_send_where_the_server_makes_it(logdir):
    session = "/api/sessions/{}/report"
    client = client_of(logdir, report=lambda profile, place: f"{profile.run} in {place}")
    one = client.get("/api/sessions").json["sessions"][0]
    answer = client.get(session.format(one["id"]))

    assert answer.headers["Content-Disposition"] == 'attachment; filename="report.html"'
    assert answer.text == f"{one['run']} in {one['path']}"
    assert client_of(logdir).get(session.format(one["id"])).status_code == 404


# -- the tools ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_numbers_are_those_of_the_command_line(client, logdir, tool):
    answer = client.get(f"/api/sessions/{session_id(client, 'drawn')}/tools/{tool}").json
    report = stepscope.load(logdir, run="drawn").report(tool)

    assert answer["report"] == json.loads(to_json(report))
    tables = [section for section in report.sections() if isinstance(section, Rows)]
    shown = [section for section in answer["sections"] if section["kind"] == "table"]
    for table, section in zip(tables, shown, strict=True):
        assert (section["id"], section["row_count"]) == (table.id, len(table.rows))
        if section["key"] is not None:
            assert [row.keys() >= set(section["columns"]) for row in answer["report"][section["key"]]] == [True] * len(
                table.rows
            )
        for field, told in zip(table.fields, section["fields"], strict=True):
            assert told == {key: getattr(field, key) for key in ("name", "label", "unit", "doc", "kind", "role")}
            assert section["columns"][field.name] == [row[field.name] for row in table.rows]


def test_tables_say_under_which_key_the_json_has_them(client):
    session = session_id(client, "drawn")

    def keys(tool: str) -> dict[str, str | None]:
        sections = client.get(f"/api/sessions/{session}/tools/{tool}").json["sections"]
        return {section["id"]: section["key"] for section in sections if section["kind"] == "table"}

    assert keys("idle") == {name: name for name in ("causes", "rows", "gaps", "devices", "queues")}
    tables = ("top_ops", "purpose", "excess", "filled")
    assert keys("overview") == {"step_account": None} | {name: name for name in tables}


def test_exports_are_those_of_the_command_line(client, logdir):
    session = session_id(client, "drawn")
    report = stepscope.load(logdir, run="drawn").report("op-stats")
    base = f"/api/sessions/{session}/tools/op-stats"

    csv = client.get(f"{base}.csv")
    assert (csv.data, csv.mimetype) == (to_csv(report), "text/csv")
    assert csv.headers["Content-Disposition"] == f'attachment; filename="{session}-op-stats.csv"'
    assert client.get(f"{base}.json").data == to_json(report)
    assert client.get(f"{base}.parquet").data.startswith(b"PAR1")
    table = pa.ipc.open_stream(client.get(f"{base}.arrow").data).read_all()
    assert table.to_pylist() == report.to_arrow().to_pylist()


def test_a_comparison_is_that_of_the_command_line(client, logdir):
    two, drawn = (session_id(client, run) for run in ("two", "drawn"))
    answer = client.get(f"/api/sessions/{drawn}/compare?with={two}&with_host=other&with_steps=1-2&steps=0-1").json
    report = compare(
        side_of_steps(stepscope.load(logdir, run="two"), "other", "1-2"),
        side_of_steps(stepscope.load(logdir, run="drawn"), None, "0-1"),
    )

    assert answer["report"] == json.loads(to_json(report))
    stream = client.get(f"/api/sessions/{drawn}/compare/tables/rows.arrow?with={two}")
    whole = client.get(f"/api/sessions/{drawn}/compare?with={two}").json["report"]
    assert pa.ipc.open_stream(stream.data).read_all().num_rows == len(whole["rows"]) > 0


def side_of_steps(profile: api.LoadedProfile, host: str | None, steps: str) -> Side:
    """A session with the reports that a comparison needs, for some hosts and steps of it."""

    def ask(names: Sequence[str], within_steps: bool) -> dict[str, Report]:
        return {name: profile.report(name, host, "all" if within_steps else steps) for name in names}

    return side_of(profile.run, profile.path, ask, DEFAULT_TOOLS)


def test_a_comparison_is_of_the_tools_that_were_asked_for(client, logdir):
    two, drawn = (session_id(client, run) for run in ("two", "drawn"))
    answer = client.get(f"/api/sessions/{drawn}/compare?with={two}&tool=advice&tool=idle").json

    report = stepscope.compare(
        stepscope.load(logdir, run="two"), stepscope.load(logdir, run="drawn"), tools=["advice", "idle"]
    )
    assert answer["report"] == json.loads(to_json(report))
    assert [table["id"] for table in answer["report"]["tables"]] == ["advice", "idle"]
    assert client.get("/api/comparable").json["tools"] == [tool.name for tool in comparable_tools()]
    refused = client.get(f"/api/sessions/{drawn}/compare?with={two}&tool=zork")
    assert (refused.status_code, "zork" in refused.json["error"]) == (400, True)


def test_several_sessions_are_compared_as_the_command_does(client, logdir):
    two, drawn = (session_id(client, run) for run in ("two", "drawn"))
    answer = client.get(f"/api/compared?session={two}&session={drawn}&session={two}").json

    report = compare_runs([stepscope.load(logdir, run=run) for run in ("two", "drawn", "two")])
    assert answer["report"] == json.loads(to_json(report))
    assert client.get(f"/api/compared?session={two}").status_code == 400


def test_a_figure_of_the_sessions_that_were_read_is_had_as_by_the_command(client, logdir):
    figure = "op-stats.rows.occurrences"
    drawn = session_id(client, "drawn")
    await_until(lambda: client.get(f"/api/glances?sessions={drawn}").json[drawn] not in (None, READING), 60, "it")

    rows = client.get(f"/api/runs?figure={figure}").json["report"]["rows"]

    wanted = {row["run"]: row for row in list_runs(logdir, [figure]).rows}
    assert {row["run"]: row[figure] for row in rows} == {row["run"]: wanted[row["run"]][figure] for row in rows}
    assert "drawn" in [row["run"] for row in rows]
    refused = client.get("/api/runs?figure=op-stats.rows.nonsense")
    assert (refused.status_code, "nonsense" in refused.json["error"]) == (400, True)


@pytest.mark.parametrize("form", ["perfetto", "chrome"])
def test_the_trace_is_had_as_a_file_for_other_viewers(client, logdir, form):
    session = session_id(client, "two")
    profile = stepscope.load(logdir, run="two")
    for query, hosts in (("", profile.hosts), ("?host=other", ["other"])):
        answer = client.get(f"/api/sessions/{session}/trace/{form}{query}")
        assert gzip.decompress(answer.data) == b"".join(pieces([profile.trace(host) for host in hosts], form))
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{session}{export_named(form).suffix}.gz"'
    assert "Content-Encoding" not in answer.headers
    assert client.get(f"/api/sessions/{session}/trace/{form}?host=nobody").json["choices"] == ["one", "other"]


def test_long_tables_are_arrow_and_nothing_is_lost(client, monkeypatch):
    monkeypatch.setattr(api_tools, "INLINE_ROWS", 3)
    base = f"/api/sessions/{session_id(client, 'drawn')}/tools"
    answer = client.get(f"{base}/steps").json

    assert (answer["left_out"], "rows" in answer["report"]) == ({"rows": 4}, False)
    section = answer["sections"][0]
    assert (section["columns"], section["row_count"]) == (None, 4)
    table = pa.ipc.open_stream(client.get(f"{base}/steps/{section['arrow']}").data).read_all()
    assert table["step"].to_pylist() == [0, 1, 2, 3]


def test_one_host_and_some_steps_can_be_chosen(client):
    base = f"/api/sessions/{session_id(client, 'two')}/tools/steps"

    assert {row["host"] for row in client.get(f"{base}?host=one").json["report"]["rows"]} == {"one"}
    rows = client.get(f"{base}?host=one&steps=1-2").json["report"]["rows"]
    assert [row["step"] for row in rows] == [1, 2]
    assert client.get(f"{base}?steps=").json == client.get(base).json


def test_each_host_has_its_own_numbers_in_whatever_order_they_are_asked(client):
    base = f"/api/sessions/{session_id(client, 'two')}/tools/overview"
    forth = [client.get(f"{base}{query}").json["report"] for query in ("", "?host=one", "?host=other")]
    site_of(client).close()
    back = [client.get(f"{base}{query}").json["report"] for query in ("?host=other", "?host=one", "")]

    assert forth == back[::-1]
    assert len({json.dumps(report["step_time_ms"]) for report in forth[1:]}) == 2


# -- wrong requests ----------------------------------------------------------------------------------------------------

WRONG = [
    ("/api/sessions/nothing", 404, "there is no session 'nothing'"),
    ("/api/sessions/nothing/tools/overview", 404, "there is no session 'nothing'"),
    ("/api/sessions/{id}/tools/nothing", 404, "there is no tool 'nothing'"),
    ("/api/sessions/{id}/tools/steps?host=nothing", 404, "there is no host 'nothing'"),
    ("/api/sessions/{id}/tools/steps?steps=9-1", 400, "'9-1' is not a range of steps"),
    ("/api/sessions/{id}/tools/steps?steps=77", 400, "there is no step 77"),
    ("/api/sessions/{id}/tools/steps/tables/nothing.arrow", 404, "there is no table 'nothing'"),
    ("/api/sessions/{id}/tools/steps.exe", 404, "there is no tool 'steps.exe'"),
    ("/api/sessions/{id}/compare", 400, "no session to compare with"),
    ("/api/sessions/{id}/compare?with=nothing", 404, "there is no session 'nothing'"),
    ("/api/sessions/{id}/compare?with={id}&host=nothing", 404, "there is no host 'nothing'"),
    ("/api/sessions/{id}/compare/tables/nothing.arrow?with={id}", 404, "there is no table 'nothing'"),
    ("/api/nothing", 404, "there is no file 'api/nothing'"),
    ("/api/capture/9", 404, "there is no capture '9'"),
]


@pytest.mark.parametrize(("address", "status", "error"), WRONG, ids=[address for address, _, _ in WRONG])
def test_what_there_is_not_is_told_with_what_there_is(client, address, status, error):
    answer = client.get(address.format(id=session_id(client, "drawn")))

    assert (answer.status_code, answer.mimetype) == (status, "application/json")
    assert answer.json["error"].startswith(error)
    assert set(answer.json) == {"error", "hint", "choices"}


OUTSIDE = [
    "/../../../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
    "/assets/../../app.py", "/api/sessions/../../etc/passwd", "/api/sessions/..%2f..%2fetc%2fpasswd",
    "/api/sessions/%2fetc%2fpasswd/tools/steps", "/C:/Windows/win.ini", "/..\\..\\secret", "/%00",
    "/assets/%0d%0aSet-Cookie:x=1",
]  # fmt: skip


@pytest.mark.parametrize("address", OUTSIDE)
def test_no_address_leads_out_of_the_logdir_or_the_page(client, address, caplog):
    caplog.set_level(logging.WARNING)
    answer = client.get(address)

    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text
    assert "Set-Cookie" not in answer.headers
    if "..%2f" in address:
        assert "outside the site" in caplog.text


def test_a_defect_is_a_plain_500_and_the_log_has_the_rest(client, monkeypatch, caplog):
    monkeypatch.setattr(api_tools, "_drop_long_lists", lambda body: 1 / 0)
    answer = client.get(f"/api/sessions/{session_id(client, 'drawn')}/tools/steps")

    assert (answer.status_code, answer.json["error"]) == (500, "ZeroDivisionError: division by zero")
    assert "Traceback" in caplog.text


# -- who may ask -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8090", 200), ("127.0.0.1", 200), ("[::1]:8090", 200), ("LOCALHOST", 200), ("evil.example", 403),
     ("127.0.0.1.evil.example", 403), ("", 403)],
)  # fmt: skip
def test_on_loopback_no_other_name_is_answered_to(logdir, host, status):
    client = client_of(logdir, host_names=own_names("127.0.0.1"))

    assert client.get("/api/config", headers={"Host": host}).status_code == status


def test_what_changes_something_needs_the_header_that_other_sites_cannot_send(client):
    assert client.post("/api/capture", json={"addresses": ["a:1"]}).status_code == 403
    assert client.delete("/api/capture/1").status_code == 403
    assert client.post("/api/config", headers={"X-Stepscope": "1"}).status_code == 405


# -- what goes with an answer ------------------------------------------------------------------------------------------


def test_every_answer_has_the_security_headers(client):
    for address in ("/", "/api/config", "/nothing", "/api/sessions"):
        headers = client.get(address).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "script-src" not in headers["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in headers


def test_an_unchanged_answer_is_not_sent_again(client):
    address = f"/api/sessions/{session_id(client, 'drawn')}/tools/overview"
    first = client.get(address)
    again = client.get(address, headers={"If-None-Match": first.headers["ETag"]})

    assert (again.status_code, again.data) == (304, b"")
    assert client.head(address).headers["ETag"] == first.headers["ETag"]


def test_long_answers_are_packed_for_those_who_can_unpack_them(client):
    address = f"/api/sessions/{session_id(client, 'drawn')}/tools/overview"
    plain, packed = client.get(address), client.get(address, headers={"Accept-Encoding": "gzip"})

    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert packed.headers["Vary"] == "Accept-Encoding"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built front end."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><script type=module src=./assets/x-1.js></script>")
    (folder / "assets" / "x-1.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.setattr(static, "FOLDER", folder)
    return folder


def test_files_whose_name_tells_their_content_are_kept_by_browsers(client, built):
    script = client.get("/assets/x-1.js")

    assert (script.mimetype, script.text) == ("text/javascript", "export {}")
    assert "immutable" in script.headers["Cache-Control"]
    assert client.get("/").headers["Cache-Control"] == "no-cache"
    assert client.get("/index.html").data == client.get("/").data
    assert client.get("/../secret.txt").status_code == 404


def test_where_the_front_end_was_not_built_the_page_says_how_to(client, built):
    (built / "index.html").unlink()
    answer = client.get("/")

    assert (answer.status_code, answer.mimetype) == (503, "text/html")
    assert "npm run build" in answer.text


# -- many at a time ----------------------------------------------------------------------------------------------------


def test_of_many_who_ask_at_once_one_reads_the_file(client, monkeypatch):
    reads: list[str] = []
    read = host_work._read_trace
    monkeypatch.setattr(host_work, "_read_trace", lambda file, pool: reads.append(file.host) or read(file, pool))
    session = session_id(client, "drawn")
    gate = threading.Barrier(6)

    def ask(tool: str) -> int:
        gate.wait()
        status: int = client.get(f"/api/sessions/{session}/tools/{tool}").status_code
        return status

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, ["overview", "op-stats"] * 3))

    assert (answers, reads) == ([200] * 6, ["host"])


def test_traces_that_do_not_fit_are_let_go(logdir):
    client = client_of(logdir, trace_bytes=1)
    for run in ("drawn", "two"):
        loaded(client, session_id(client, run))
    shelf = site_of(client).shelf

    assert len(shelf._traces) == 1
    session = session_id(client, "drawn")
    assert client.get(f"/api/sessions/{session}/tools/steps?steps=1").status_code == 200


def test_sessions_that_nobody_looks_at_any_more_are_let_go(tmp_path, monkeypatch):
    monkeypatch.setattr("stepscope.web.site.MOST_OPEN", 2)
    for run in ("a", "b", "c"):
        store_profile(tmp_path, run, draw(DRAWN))
    client = client_of(tmp_path)
    for run in ("a", "b", "c"):
        loaded(client, session_id(client, run))

    assert len(site_of(client)._opened) == 2
    assert loaded(client, session_id(client, "a"))["state"] == "ready"


def test_a_table_of_any_section_becomes_arrow():
    fields = (Field("a", "ms", "one"), Field("b", "text", "two", "str", Role.NAME), Field("c", "", "three", "ints"))
    table = Rows("t", "T", fields, ({"a": 1.5, "b": None, "c": [1, 2]}, {"a": None, "b": "x", "c": None}))
    read = pa.ipc.open_stream(io.BytesIO(api_tools.table_to_arrow(table))).read_all()

    assert read.to_pylist() == list(table.rows)
    assert read.schema.metadata == {b"id": b"t"}
    described = {b"unit": b"ms", b"role": b"duration", b"label": b"A", b"meaning": b"one"}
    assert read.schema.field("a").metadata == described
