"""Notebooks: magics and the widget by a real kernel, and both as a browser shows them."""

from __future__ import annotations

import base64
import functools
import json
import os
import re
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
from stepscope.web.kernel_site import KernelSite
from stepscope.web.timeline import unpack


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
    marks = (": host-bound</b>", "58.3 % of each step is Python", "display:flex", "<ol", "<pre")
    places = [shown["text/html"].find(mark) for mark in marks]
    assert places[0] > 0 and places == sorted(places)
    assert "mostly <code>confusion_matrix</code>" in shown["text/html"]
    assert shown["text/html"].count("58.3 % of each step") == 1


def test_a_line_shows_a_tool_as_itself(executed: Any) -> None:
    [shown] = outputs(executed, 2)

    ops = shown["text/html"].partition("</table>")[0]
    assert "IteratorGetNext" in ops and "aten::mm" not in ops


def test_a_timeline_is_a_widget_whose_state_has_the_first_window(executed: Any) -> None:
    [shown] = outputs(executed, 3)
    state = executed.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]

    model = shown["application/vnd.jupyter.widget-view+json"]["model_id"]
    kept = state[model]["state"]
    assert kept["_anywidget_id"].endswith("Timeline")
    assert "http" not in kept["_esm"] and "import(" not in kept["_esm"]
    answers = {each["path"][1]: base64.b64decode(each["data"]) for each in state[model]["buffers"]}
    tracks = json.loads(answers["tracks?code=own"])
    assert [track["name"] for group in tracks["groups"] for track in group["tracks"]] == ["main"]
    assert {"train", "aten::mm"} <= {*json.loads(answers["names/0?code=own"])["names"]}


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
        output = page.locator(".jp-OutputArea-output", has_text="58.3 % of each step is Python")
        assert output.locator("div[title^='python']").count() == 1
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
        ("op-stat x", "did you mean 'op-stats'?"),
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


def test_a_kernel_answers_as_the_server_does(logdir: Path) -> None:
    site = KernelSite(stepscope.load(logdir, run="slow_input"), "host")

    assert json.loads(site.answer("steps?code=own").body)["number"] == [0, 1, 2, 3]
    assert json.loads(site.answer("events/0").body)["spot"]["event"] == 0
    assert (site.answer("events/99999").status, site.answer("nothing").status) == (404, 404)
    assert (
        json.loads(site.answer("window?begin=5&end=5&width=10").body)["error"] == "the window from 5 to 5 ps is empty"
    )


def test_a_saved_notebook_has_the_rows_loads_and_ribbons_of_the_window_that_is_shown_first(logdir: Path) -> None:
    site = KernelSite(stepscope.load(logdir, run="slow_input"), "host")

    kept = site.first_answers((12.0, 24.0))

    windows = [unpack(body) for url, body in kept.items() if url.startswith("window?")]
    held = {name for _, columns in windows for name, values in columns.items() if len(values)}
    assert {"row_line", "load", "causes"} <= held
    [head] = [head for head, columns in windows if len(columns["row_line"])]
    assert 0 <= 12 * 10**9 - head["begin_ps"] < 1 << head["level"]


def test_without_anywidget_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch, logdir: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'pip install "stepscope\[notebook\]"'):
        timeline(logdir)


# -- a browser -------------------------------------------------------------------------------------------------------

HOST_PAGE = """<!doctype html><meta charset="utf-8"><title>notebook</title>
<body style="COLOURS"><div id="cell"></div><script type="module">
import widget from "./frame.js";
const listeners = [], state = STATE;
const view = (text) => new DataView(Uint8Array.from(atob(text), (each) => each.charCodeAt(0)).buffer);
state.kept = Object.fromEntries(Object.entries(state.kept).map(([url, text]) => [url, view(text)]));
const model = {
  get: (key) => state[key], on: (_, listener) => listeners.push(listener), off: () => {},
  send: async (message) => {
    const [answer, body] = window.ask_kernel ? await window.ask_kernel(message) : [];
    for (const listener of listeners) if (answer) listener(answer, [view(body)]);
  },
};
widget.render({ model, el: document.getElementById("cell") });
</script>"""
LOOKS = {"light": "color: #111; background: #fff", "dark": "color: #eee; background: #111"}


def _fulfil(text: str, kind: str, route: Any) -> None:
    route.fulfill(body=text, content_type=kind)


def open_widget(page: Any, logdir: Path, look: str, has_kernel: bool) -> Any:
    """A page that shows a widget as a notebook does; returns its frame."""
    widget = timeline(stepscope.load(logdir, run="slow_input"))
    kept = {url: base64.b64encode(body).decode() for url, body in widget.kept.items()}
    state = {name: getattr(widget, name) for name in ("title", "page", "rules", "params")} | {"kept": kept}
    text = json.dumps(state).replace("</", "<\\/")
    content = {"/": HOST_PAGE.replace("STATE", text).replace("COLOURS", LOOKS[look]), "/frame.js": widget._esm}
    for path, body in content.items():
        kind = "text/javascript" if path.endswith(".js") else "text/html"
        page.route(f"http://127.0.0.1:1{path}", functools.partial(_fulfil, body, kind))
    if has_kernel:
        sent: list[Any] = []
        widget.send = lambda message, buffers: sent.append([message, base64.b64encode(buffers[0]).decode()])

        def ask(message: dict[str, Any]) -> Any:
            widget._handle_custom_msg(message, [])
            return sent.pop()

        page.expose_function("ask_kernel", ask)
    page.goto("http://127.0.0.1:1/")
    frame = page.frame_locator("iframe")
    frame.locator(".tl-tracks").wait_for()
    return frame


@pytest.mark.parametrize(("look", "has_kernel"), [("light", True), ("dark", False)])
def test_the_widget_is_the_pages_own_timeline(browser: Any, logdir: Path, look: str, has_kernel: bool) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        frame = open_widget(page, logdir, look, has_kernel)

        inside = page.frames[1]
        inside.wait_for_function("document.querySelector('.tl-legend')?.textContent.includes('Input')")
        assert inside.evaluate("document.documentElement.dataset.theme") == look
        assert painted_colours(inside) >= 3
        assert frame.locator(".tl-window").text_content() == "48.00 ms"
        frame.get_by_role("button", name="Zoom in").click()
        inside.wait_for_function("document.querySelector('.tl-window').textContent === '34.56 ms'")
        main = frame.locator(".tl-label", has_text="main").bounding_box()
        page.mouse.click(main["x"] + main["width"] + 200, main["y"] + 8)
        if has_kernel:
            expect = "document.querySelector('.tl-details h2')?.title === 'train'"
        else:
            expect = "document.querySelector('.tl-problem')?.textContent.includes('kernel')"
        inside.wait_for_function(expect)
        assert page.url == "http://127.0.0.1:1/"
        assert problems == []


def painted_colours(page: Any) -> int:
    """How many colours the canvas shows."""
    return int(
        page.evaluate("""() => {
        const canvas = document.querySelector(".tl-tracks"), pen = canvas.getContext("2d"), seen = new Set();
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


def test_an_answer_in_words_stands_open_and_its_tables_are_folded(logdir: Path) -> None:
    profile = stepscope.load(logdir, run="slow_input")
    answer, table = profile.overview()._repr_html_(), profile.op_stats()._repr_html_()

    first = answer.split("<details>")[0]
    assert "Each step takes" in first and "display:flex" in first and "<ol" in first
    assert "<table" not in re.sub("<details>.*?</details>", "", answer)
    assert "<table" in table.split("<details")[0]
    assert len(answer) < 60_000 and len(table) < 200_000


def number(text: str) -> float:
    return float(text.replace(",", ""))
