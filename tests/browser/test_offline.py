"""The page asks nobody but its own server."""

from __future__ import annotations

from browsing import until


def test_the_page_opens_and_asks_nobody_but_its_server(page, page_server, page_problems):
    page.goto(page_server.address)
    page.wait_for_load_state("networkidle")

    assert page.title()
    assert page_problems == []


def test_a_request_that_leaves_the_server_is_seen_and_stopped(page, page_server, page_problems):
    page.goto(page_server.address)
    page.evaluate("() => fetch('https://example.invalid/x.js').catch(() => null)")

    # The page's own policy stops it before it reaches the network, and says so; what the browser says arrives on a
    # way of its own, after the answer perhaps.
    until(page, lambda: any("example.invalid" in problem for problem in page_problems))
    page_problems.clear()


def test_no_text_runs_as_code(page, page_server, page_problems):
    page.goto(page_server.address)
    # Its end is awaited, so that what the browser says of it comes before the list is looked at.
    page.evaluate(
        """() => new Promise(done => {
            const script = document.createElement("script");
            script.textContent = "window.ran = 1";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", "<img src='data:,' onerror='window.ran = 2'>");
            document.body.lastElementChild.addEventListener("error", () => done());
        })"""
    )

    until(page, lambda: bool(page_problems))
    assert page.evaluate("() => window.ran") is None
    page_problems.clear()
