"""Notebooks: magics and the widget by a real kernel, and both as a browser shows them."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from draw import draw
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook
from planted_programs import write_programs
from traitlets.config import Config

import stepscope
from stepscope.errors import UsageError
from stepscope.notebook.magics import Summary, show_line, split_line
from stepscope.notebook.widget import timeline
from stepscope.notebook.window import describe_trace, window_slices
from stepscope.report.palette import CATEGORY_COLOURS

STEPS = draw("""
    host main | M0--------M1--------M2--------M3--------
    host main | a---b-----a---b-----a---b-----a---b-----
    gpu0 s    |  k---      k---      k---      k---
""")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    list(write_programs(folder))
    return folder


def execute(*cells: str) -> Any:
    """The notebook after its cells ran in a kernel of their own."""
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    # By files: of ports, another test might take one before the kernel does.
    config = Config(KernelManager={"transport": "ipc"})
    client = NotebookClient(notebook, timeout=240, startup_timeout=240, kernel_name="python3", config=config)
    return client.execute(env=dict(os.environ))


# -- a kernel --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def executed(logdir: Path) -> Any:
    """A notebook that uses all of it."""
    return execute(
        "%load_ext stepscope",
        f"%stepscope summary {logdir} --run slow_metrics",
        f"%stepscope op-stats {logdir} --run slow_input --sort=-total_self_us --top 1",
        f"import stepscope\nstepscope.timeline(stepscope.load('{logdir}', run='slow_input'))",
        "%%stepscope -o mine\nimport stepscope\nfor i in range(5):\n    with stepscope.step(i):\n"
        "        total = sum(range(200_000))\ntotal",
        "total, mine.overview().to_dict()['step_time_ms']['count']",
    )


def outputs(executed: Any, cell: int) -> list[dict[str, Any]]:
    """The data of a cell's results by type."""
    return [dict(each.data) for each in executed.cells[cell].outputs if "data" in each]


def test_a_line_shows_the_summary(executed: Any) -> None:
    [shown] = outputs(executed, 1)

    assert shown["text/plain"].startswith(
        "verdict    host-bound: 58.3 % of each step is Python in the loop, mostly `confusion_matrix`"
    )
    answer, chart, rest = (shown["text/html"].find(mark) for mark in ("<b>host-bound: 58.3 %", "<svg", "<pre"))
    assert 0 < answer < chart < rest
    assert "mostly <code>confusion_matrix</code></b>" in shown["text/html"]


def test_a_line_shows_a_tool_as_itself(executed: Any) -> None:
    [shown] = outputs(executed, 2)

    ops = shown["text/html"].partition("</table>")[0]
    assert "IteratorGetNext" in ops and "aten::mm" not in ops


def test_a_timeline_is_a_widget_whose_state_has_the_first_window(executed: Any) -> None:
    [shown] = outputs(executed, 3)
    state = executed.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]

    kept = state[shown["application/vnd.jupyter.widget-view+json"]["model_id"]]["state"]
    assert kept["_anywidget_id"].endswith("Timeline")
    assert "http" not in kept["_esm"] and "import(" not in kept["_esm"]
    colours = dict(zip(kept["slices"]["names"], kept["slices"]["colours"], strict=True))
    assert {"train", "aten::mm"} <= colours.keys()
    assert colours["aten::mm"] == CATEGORY_COLOURS["host_compute"]
    assert [track["name"] for track in kept["trace"]["tracks"]] == ["main"]


def test_a_cell_is_profiled_and_its_variables_stay(executed: Any) -> None:
    value, summary = outputs(executed, 4)
    [counted] = outputs(executed, 5)

    assert value["text/plain"] == str(sum(range(200_000)))
    assert "5 steps" in summary["text/plain"]
    assert counted["text/plain"] == f"({sum(range(200_000))}, 5)"


def test_an_error_of_a_profiled_cell_ends_the_notebook() -> None:
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute("%load_ext stepscope", "%%stepscope\n1 / 0", "print('not reached')")


def test_a_notebook_stays_valid(executed: Any) -> None:
    nbformat.validate(executed)


def test_a_notebook_sent_as_html_has_the_answer_the_chart_and_the_widget(executed: Any, browser: Any) -> None:
    exporter = pytest.importorskip("nbconvert").HTMLExporter()
    text, _ = exporter.from_notebook_node(executed)

    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.set_content(text)
        output = page.locator(".jp-OutputArea-output", has_text="host-bound: 58.3 %")
        assert output.locator("svg rect").count() >= 2
    assert "application/vnd.jupyter.widget-view+json" in text


# -- lines -----------------------------------------------------------------------------------------------------------


def test_lines_show_what_the_command_line_shows(logdir: Path) -> None:
    path = str(logdir)
    shown = show_line(["summary", path, "--run", "slow_input"])
    assert isinstance(shown, Summary)
    assert repr(shown).split("\n") == list(stepscope.load(logdir, run="slow_input").overview().summary_lines())
    assert show_line(["steps", path, "--run", "slow_input", "--where", "step=2"]).rows[0]["step"] == 2
    assert show_line(["compare", path, path]).TOOL == "compare"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "%stepscope summary logs"),
        ("nope x", "there is no report 'nope'; known: summary, timeline, compare, overview"),
        ("steps", "the following arguments are required: path"),
        ("steps x --top many", "invalid int value"),
        ("compare x", "takes two paths"),
    ],
)
def test_a_wrong_line_says_what_to_write(line: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        show_line(line.split())
    assert words in " ".join(str(error.value).replace("[usage]", "").split())


def test_an_open_quotation_mark_is_named() -> None:
    with pytest.raises(UsageError, match="a quotation mark is not closed"):
        split_line("summary 'logs")


# -- the widget ------------------------------------------------------------------------------------------------------


def test_a_window_has_its_slices_as_columns() -> None:
    found = window_slices(STEPS, 10, 20, 500)

    rows = zip(found["lane"], (found["names"][at] for at in found["name"]), found["start"], found["end"], strict=True)
    assert sorted(row for row in rows if row[2] < 20 and row[3] > 10) == [
        (0, "k", 11.0, 15.0), (1, "train", 10.0, 20.0), (2, "a", 10.0, 14.0), (2, "b", 14.0, 20.0),
    ]  # fmt: skip
    assert window_slices(STEPS, 90, 99, 500)["lane"] == []


def test_a_trace_is_described_once() -> None:
    described = describe_trace(STEPS)

    assert [(track["name"], track["rows"]) for track in described["tracks"]] == [("GPU 0 s", 1), ("main", 2)]
    assert described["steps"]["start_ms"] == [0.0, 10.0, 20.0, 30.0]
    assert (described["start_ms"], described["end_ms"]) == (0.0, 40.0)


def test_without_anywidget_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch, logdir: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'pip install "stepscope\[notebook\]"'):
        timeline(logdir)


# -- a browser -------------------------------------------------------------------------------------------------------

HOST_PAGE = """<!doctype html><meta charset="utf-8"><title>notebook</title><style>STYLE</style>
<body><div id="cell"></div><script type="module">
import widget from "./timeline.js";
const listeners = [], state = STATE;
window.sent = [];
const model = {
  get: (key) => state[key], set: (key, value) => { state[key] = value; }, save_changes: () => {},
  on: (_, listener) => listeners.push(listener), off: () => {},
  send: async (message) => {
    window.sent.push(message);
    const answer = window.ask_kernel && await window.ask_kernel(JSON.stringify(message));
    for (const listener of listeners) if (answer) listener(JSON.parse(answer));
  },
};
widget.render({ model, el: document.getElementById("cell") });
window.state = state;
</script>"""


def _fulfil(text: str, kind: str, route: Any) -> None:
    route.fulfill(body=text, content_type=kind)


def open_widget(context: Any, folder: Path, logdir: Path, ask: Any) -> Any:
    """A page that shows a widget as a notebook does, with its kernel if `ask` answers messages."""
    widget = timeline(stepscope.load(logdir, run="slow_input"))
    state = {"trace": widget.trace, "slices": widget.slices, "window": widget.window}
    page = context.new_page()
    content = {
        "/": HOST_PAGE.replace("STATE", json.dumps(state)).replace("STYLE", widget._css),
        "/timeline.js": widget._esm,
    }
    for path, text in content.items():
        kind = "text/javascript" if path.endswith(".js") else "text/html"
        page.route(f"http://127.0.0.1:1{path}", functools.partial(_fulfil, text, kind))
    if ask:
        sent: list[dict[str, Any]] = []
        widget.send = lambda message, buffers=None: sent.append(message)

        def answer(text: str) -> str:
            widget._handle_custom_msg(json.loads(text), [])
            return json.dumps(sent.pop())

        page.expose_function("ask_kernel", answer)
    page.goto("http://127.0.0.1:1/")
    page.wait_for_selector("canvas")
    return page


def test_the_widget_zooms_with_a_kernel_and_is_seen_without_one(browser, tmp_path: Path, logdir: Path) -> None:
    for scheme, has_kernel in (("light", True), ("dark", False)):
        with browser.new_context(color_scheme=scheme) as context:
            page = open_widget(context, tmp_path, logdir, has_kernel)
            problems: list[str] = []
            page.on("pageerror", lambda error, problems=problems: problems.append(str(error)))
            where = page.locator(".where")
            assert where.text_content() == "host: 24.000 to 48.000 ms (24.000 ms)"
            page.get_by_title("Zoom in (w)").click()
            assert where.text_content() == "host: 28.800 to 43.200 ms (14.400 ms)"
            page.wait_for_function("window.sent.length === 1")
            page.get_by_text("Whole trace").click()
            page.wait_for_function("window.sent.length === 2")
            assert page.evaluate("window.state.window") == [0, 48]
            box = page.locator("canvas").bounding_box()
            page.mouse.move(box["x"] + 150 + (box["width"] - 150) * 0.77, box["y"] + 30 + 16 + 8)  # 37 ms, second row
            page.wait_for_function("document.querySelector('.details').textContent.startsWith('IteratorGetNext')")
            assert page.locator(".details").text_content().endswith("7.000 ms, from 36.000000 ms")
            assert painted_colours(page) >= 3
            assert problems == []


def painted_colours(page: Any) -> int:
    """How many colours the canvas shows."""
    return int(
        page.evaluate("""() => {
        const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d"), seen = new Set();
        const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
        for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join());
        return seen.size;
    }""")
    )


def test_tables_of_a_report_sort_by_a_click(browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    session = tmp_path / "run"
    session.mkdir()
    from stepscope.formats.xspace.writer import write

    picture = "host main | M0--------M1--------\nhost main | a---b-----a---b-----\nhost main |     c--       c--"
    (session / "host.xplane.pb").write_bytes(write(draw(picture)))
    path.write_text("<!doctype html><meta charset=utf-8>" + stepscope.load(session).op_stats()._repr_html_())
    with browser.new_context(offline=True) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        heading = page.locator("th", has_text="avg self us").first

        def column() -> list[str]:
            found: list[str] = heading.evaluate(
                "head => [...head.closest('table').tBodies[0].rows].map(row => row.cells[head.cellIndex].textContent)"
            )
            return found

        values = sorted(map(number, column()))
        heading.click()
        assert list(map(number, column())) == values[::-1]
        heading.press("Enter")
        assert list(map(number, column())) == values
        assert heading.get_attribute("aria-sort") == "ascending"


def number(text: str) -> float:
    return float(text.replace(",", ""))
