"""The timeline in a real browser: it opens, keys and mouse move it, and what it says is what the trace holds."""

from __future__ import annotations

import urllib.parse
from typing import Any

import pytest
from browsing import HOSTILE, PageServer, await_address, settle, store_profile, until
from draw import MS
from playwright.sync_api import expect

from stepscope.analysis.timeline import search
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

CORPUS = ("tpu-inference", "torch-v100-resnet50-workers0")


def show(page: Any, server: PageServer, run: str, **params: str) -> None:
    """Opens the timeline of a session and waits until all of it is drawn."""
    query = urllib.parse.urlencode({"session": server.session(run), **params})
    page.goto(f"{server.address}#/timeline?{query}")
    settle(page)
    page.wait_for_load_state("networkidle")


def trace_of(server: PageServer, run: str) -> HostTrace:
    opened = server.site.opened(server.session(run))
    return opened.trace(opened.listed.session.hosts[0])


def param(page: Any, name: str) -> str | None:
    """A parameter of the page's address."""
    query = urllib.parse.parse_qs(page.evaluate("() => location.hash.split('?')[1] ?? ''"))
    return query.get(name, [None])[0]


def window(page: Any) -> tuple[float, float]:
    """The window in ms, once the address tells it."""
    until(page, lambda: param(page, "begin") is not None)
    return float(param(page, "begin") or "nan"), float(param(page, "end") or "nan")


def resting(page: Any) -> tuple[float, float]:
    """The window in ms once it glides no more: two looks in a row see the same."""
    seen = [window(page)]

    def rests() -> bool:
        page.wait_for_timeout(250)  # longer than the address takes to follow
        seen.append(window(page))
        return seen[-1] == seen[-2]

    until(page, rests)
    return seen[-1]


def colours(page: Any, selector: str) -> int:
    """How many different colours a canvas shows."""
    return page.evaluate(  # type: ignore[no-any-return]
        """selector => {
            const canvas = document.querySelector(selector);
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            const seen = new Set();
            for (let at = 0; at < data.length; at += 4 * 7) {
                seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
            }
            return seen.size;
        }""",
        selector,
    )


@pytest.mark.parametrize("run", CORPUS)
def test_it_opens_on_real_profiles_and_draws_them(page, page_server, corpus, run):
    show(page, page_server, run)

    expect(page.locator(".tl-label").nth(2)).to_be_attached()
    until(page, lambda: colours(page, ".tl-tracks") > 10)
    until(page, lambda: colours(page, ".tl-overview") > 3)


def test_a_link_shows_the_same_picture_again(page, page_server):
    show(page, page_server, "drawn", begin="2", end="12", find="kernel", pinned="t0")

    expect(page.locator(".tl-count")).to_contain_text("4")
    expect(page.locator(".tl-pinned .tl-label")).to_have_count(1)
    assert (param(page, "begin"), param(page, "end"), param(page, "find")) == ("2", "12", "kernel")


def test_keys_zoom_and_move(page, page_server):
    show(page, page_server, "drawn", begin="10", end="20")
    before = window(page)

    for key, grows, moves in (("w", -1, 0), ("s", 1, 0), ("d", 0, 1), ("a", 0, -1), ("ArrowRight", 0, 1)):
        page.keyboard.press(key)
        until(page, lambda before=before: window(page) != before)
        (begin, end), (earlier, later) = resting(page), before
        longer = (end - begin) - (later - earlier)
        assert (longer > 0.001) - (longer < -0.001) == grows, key
        if moves:
            assert (begin > earlier) - (begin < earlier) == moves, key
        before = (begin, end)


def test_a_page_that_follows_at_once_keeps_its_address(page, page_server):
    show(page, page_server, "drawn", begin="10", end="20")

    for key in ("d", "g", "o"):  # the timeline moves, and writes that down a moment later
        page.keyboard.press(key)
    await_address(page, "#/compute/op?")
    settle(page)
    page.wait_for_timeout(400)

    assert param(page, "begin") is None


def test_the_wheel_zooms_at_the_cursor_and_dragging_pans(page, page_server):
    show(page, page_server, "drawn", begin="10", end="20")
    box = page.locator(".tl-tracks").bounding_box()

    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 60)
    page.mouse.wheel(0, -300)
    until(page, lambda: window(page) != (10.0, 20.0))
    begin, end = resting(page)
    assert end - begin < 10
    assert begin + (end - begin) / 4 == pytest.approx(12.5, abs=0.05)

    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4 - 200, box["y"] + 60, steps=4)
    page.mouse.up()
    until(page, lambda: window(page)[0] > begin)
    moved = resting(page)
    assert moved[0] - begin == pytest.approx((end - begin) * 200 / box["width"], rel=0.05)


def test_search_counts_all_and_walks_them_in_order(page, page_server, page_problems):
    show(page, page_server, "drawn")
    trace = trace_of(page_server, "drawn")
    expected = search.find_events(trace, "kernel").rows.tolist()

    page.keyboard.press("/")
    page.keyboard.type("kernel")
    expect(page.locator(".tl-count")).to_have_text(str(len(expected)))
    walked = []
    for number in range(1, 3):
        page.keyboard.press("Enter")
        expect(page.locator(".tl-count")).to_have_text(f"{number} of {len(expected)}")
        until(page, lambda: param(page, "selected") not in (None, *walked))
        walked.append(param(page, "selected"))

    assert [int(event) for event in walked] == expected[:2]


def test_details_are_those_of_the_trace(page, page_server):
    trace = trace_of(page_server, "drawn")
    kernel = int(search.find_events(trace, "kernel").rows[1])
    show(page, page_server, "drawn", selected=str(kernel))
    expect(page.locator(".tl-path").first).to_contain_text("Launched from")

    facts = dict(
        page.locator(".tl-facts > div").evaluate_all(
            "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
        )
    )
    expect(page.locator(".tl-details h2")).to_contain_text("kernel")
    assert facts["Start"] == f"{trace.events.start_ps[kernel] / MS:.3f} ms"
    assert facts["Duration"] == f"{trace.events.duration_ps[kernel] / MS:.3f} ms"
    assert facts["Step"] == "train 1"
    assert page.locator(".tl-path .tl-spot").last.inner_text().endswith("launch")
    assert page.locator(".tl-pane").bounding_box()["height"] == 160


def test_a_dragged_selection_adds_up_and_a_click_selects(page, page_server):
    show(page, page_server, "drawn", begin="0", end="30")
    box = page.locator(".tl-tracks").bounding_box()

    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 40, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 40, box["y"] + 90, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    names = page.locator("#workbench-panel .grid-row .cell:first-child")
    until(page, lambda: {"kernel", "launch", "IteratorGetNext"} <= set(names.all_inner_texts()))
    page.get_by_role("button", name="Track", exact=True).click()
    until(page, lambda: any(name.startswith("GPU:0 ·") for name in names.all_inner_texts()))

    page.keyboard.press("Escape")
    page.wait_for_selector(".tl-pane", state="detached")


def test_collapse_hide_and_pin_are_in_the_address(page, page_server):
    show(page, page_server, "drawn")
    group = page.locator(".tl-group", has_text="Host threads")

    group.locator(".tl-fold").click()
    until(page, lambda: param(page, "collapsed") is not None)
    gpu = page.locator(".tl-group", has_text="GPU:0")
    gpu.hover()
    gpu.get_by_role("button", name="Hide GPU:0").click()
    until(page, lambda: param(page, "hidden") is not None)
    page.get_by_role("button", name="Show 1 hidden").click()
    until(page, lambda: param(page, "hidden") is None)


def test_hosts_are_chosen_here_where_there_are_several(page, page_server):
    show(page, page_server, "two-hosts")

    picker = page.get_by_role("button", name="Choose a host")
    expect(picker).to_contain_text("one")  # the one that is shown
    picker.click()
    page.get_by_role("button", name="two", exact=True).click()
    until(page, lambda: param(page, "host") == "two")
    page.wait_for_selector(".tl-tracks")
    picker.click()
    page.get_by_role("button", name="All 2, one step").click()
    expect(page.locator(".stacked-lanes .lane")).to_have_count(2)


def test_hostile_names_are_shown_as_text(page, page_server):
    show(page, page_server, "hostile", selected="1")

    expect(page.locator(".tl-details h2")).to_contain_text(HOSTILE[:20])
    assert page.evaluate("() => window.hostile") is None


def deep_trace() -> HostTrace:
    """Forty calls, each inside the one before, on the last of thirty threads."""
    builder = TraceBuilder(host="vm")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    for thread in range(30):
        line = builder.line(plane, f"thread {thread}", thread)
        for depth in range(40 if thread == 29 else 1):
            line.event(f"call {depth} of {thread}", depth * MS, (100 - 2 * depth) * MS, EventKind.OP)
    return builder.build()


@pytest.mark.parametrize("by", ["find", "selected"])
def test_an_event_that_is_found_is_in_view_beside_its_pane(page, page_server, by):
    if not (page_server.logdir / "plugins" / "profile" / "deep").exists():
        store_profile(page_server.logdir, "deep", deep_trace())
    event = int(search.find_events(trace_of(page_server, "deep"), "call 30 of 29").rows[0])
    show(page, page_server, "deep", **({"find": "call 30 of 29"} if by == "find" else {"selected": str(event)}))
    expect(page.locator(".tl-details h2")).to_have_attribute("title", "call 30 of 29")

    until(page, lambda: page.locator(".tl-scroll").evaluate("box => box.scrollTop") > 0)
    assert param(page, "selected") == str(event)
    top, low, row = page.locator(".tl-scroll").evaluate(
        """box => {
            const thread = [...box.querySelectorAll('.tl-label')].find(each => each.textContent.includes('thread 29'));
            const { top, height } = box.getBoundingClientRect();
            return [top, top + height, thread.getBoundingClientRect().top + 30 * 18 + 9];
        }"""
    )
    assert top < row < low


def test_what_a_link_looks_for_stays_in_the_address_while_it_is_looked_for(page, page_server):
    held: list[Any] = []
    page.route("**/timeline/search*", lambda route: held.append(route))  # playwright wants a function of its own
    query = urllib.parse.urlencode({"session": page_server.session("drawn"), "find": "kernel"})
    page.goto(f"{page_server.address}#/timeline?{query}")
    settle(page)
    until(page, lambda: bool(held))
    page.wait_for_timeout(500)  # longer than the address takes to follow

    assert param(page, "find") == "kernel"
    expect(page.get_by_label("Find events by name")).to_have_value("kernel")
    held.pop().continue_()
    expect(page.locator(".tl-count")).to_have_text("4")


def test_escape_leaves_the_search_and_keeps_what_it_found(page, page_server):
    show(page, page_server, "drawn")
    page.keyboard.press("/")
    page.keyboard.type("kernel")
    page.keyboard.press("Enter")
    expect(page.locator(".tl-count")).to_have_text("1 of 4")

    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator(".tl-count")).to_have_text("2 of 4")
    for _ in range(2):  # the event, then the search
        page.keyboard.press("Escape")
    expect(page.get_by_label("Find events by name")).to_have_value("")


def test_a_click_on_a_scope_of_a_program_sums_up_its_kernels_and_a_search_finds_it(page, page_server):
    builder = TraceBuilder("vm")
    line = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU), "Stream #7", 7, LineKind.STREAM)
    for at, (scope, kernel) in enumerate((("encoder", "conv"), ("encoder", "relu"), ("decoder", "gemm"))):
        stats = {"tf_op": f"jit(f)/{scope}/dot_general:"}
        line.event(kernel, 4 * at * MS, 3 * MS, EventKind.KERNEL, stats)
    store_profile(page_server.logdir, "scoped", builder.build())
    show(page, page_server, "scoped")
    label = page.locator(".tl-label", has_text="Scopes")
    expect(label).to_be_visible()
    row, picture = label.bounding_box(), page.locator(".tl-tracks").bounding_box()
    page.mouse.click(picture["x"] + 0.25 * picture["width"], row["y"] + 9)

    panel = page.locator("#workbench-panel")
    expect(panel).to_contain_text("relu")
    expect(panel).to_contain_text("conv")
    expect(panel).not_to_contain_text("gemm")

    page.keyboard.press("/")
    page.keyboard.type("decod")
    page.keyboard.press("Enter")
    expect(page.locator(".tl-count")).to_have_text("1 of 1")
    expect(panel).to_contain_text("A named scope of the compiled program")
    page.get_by_role("button", name="Sum up").click()
    expect(panel).to_contain_text("gemm")


def ribbon_place(page: Any, ms: float) -> tuple[float, float]:
    """Where the ribbon of the first device shows a time, in pixels of the page."""
    begin, end = 0.0, 32.0  # the drawn session as it opens
    tracks, group = page.locator(".tl-tracks").bounding_box(), page.locator(".tl-group").first.bounding_box()
    return tracks["x"] + tracks["width"] * (ms - begin) / (end - begin), group["y"] + group["height"] / 2


def test_a_gap_of_a_device_says_what_it_waits_for(page, page_server, page_problems):
    show(page, page_server, "drawn")
    until(page, lambda: page.locator(".tl-legend li").count() > 1)
    expect(page.locator(".tl-legend")).to_contain_text("Input")

    page.mouse.move(*ribbon_place(page, 9.5))
    expect(page.locator(".tl-tip")).to_contain_text("waits")
    expect(page.locator(".tl-tip")).to_contain_text("for input")
    page.mouse.click(*ribbon_place(page, 9.5))
    expect(page.locator(".tl-asked h2")).to_contain_text("GPU:0 waits")
    expect(page.locator(".tl-asked h2")).to_contain_text("for input")
    until(page, lambda: "r1_input" in (param(page, "stretch") or ""))
    link = page.url

    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".tl-asked h2")).to_contain_text("for input")
    page.keyboard.press("Escape")
    expect(page.locator(".tl-asked")).to_have_count(0)

    stream = page.locator(".tl-label:not(.tl-group)").nth(1).bounding_box()  # below its annotations
    x, _ = ribbon_place(page, 9.5)
    page.mouse.click(x, stream["y"] + stream["height"] / 2)  # the gap of the stream itself
    expect(page.locator(".tl-asked h2")).to_contain_text("for input")
    assert not page_problems


def test_it_opens_on_all_steps_and_a_link_that_finds_something_fades_nothing(page, page_server):
    show(page, page_server, "drawn", find="kernel", begin="0", end="32")
    before = colours(page, ".tl-tracks")
    page.goto(f"{page_server.address}#/timeline?session={page_server.session('drawn')}")
    settle(page)
    page.wait_for_load_state("networkidle")

    assert param(page, "begin") is None
    assert colours(page, ".tl-tracks") == before


def test_a_recording_that_starts_long_before_its_steps_opens_on_them(page, page_server):
    builder = TraceBuilder("late")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main", 1, LineKind.THREAD)
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU), "Stream #7", 7, LineKind.STREAM)
    main.event("import", 0, 10 * MS, EventKind.PYTHON_CALL)
    for step in range(3):
        at = (800 + 20 * step) * MS
        main.event("train", at, 20 * MS, EventKind.STEP_MARK, {"step_num": step})
        stream.event("gemm", at + 5 * MS, 16 * MS, EventKind.KERNEL)
    store_profile(page_server.logdir, "late", builder.build())
    show(page, page_server, "late")

    assert param(page, "begin") is None
    expect(page.locator(".tl-window")).to_have_text("63.44 ms")
    page.keyboard.press("f")
    assert resting(page)[0] <= 0, "once more shows all that was recorded"
    page.keyboard.press("f")
    until(page, lambda: param(page, "begin") is None)
