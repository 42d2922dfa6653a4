"""An advice on the page: the command that proves it, and what a proof measured."""

from __future__ import annotations

import pytest
from browsing import running, store_profile, watched_page

from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder
from stepscope.proof.record import ABLATION, Proof, write_proofs

INPUT = Proof("train.py", ABLATION, "input", step_ms=19.4, changed_ms=12.1, value=1.6, least=1.52, most=1.69, steps=240)
COMMAND = "stepscope prove --ablate input SCRIPT"


def waiting_trace() -> HostTrace:
    """Steps of 20 ms whose first 8 wait for a batch."""
    builder = TraceBuilder("host")
    loop = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python", kind=LineKind.THREAD)
    fetch = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    for number in range(6):
        start = number * 20_000_000_000
        loop.event("train", start, 20_000_000_000, EventKind.STEP_MARK, {"step_num": number})
        loop.event(fetch, start, 8_000_000_000, EventKind.INPUT_WAIT)
        loop.event("aten::mm", start + 8_000_000_000, 12_000_000_000, EventKind.OP)
    return builder.build()


@pytest.mark.parametrize(
    ("proofs", "gain", "commands"),
    [([], "about 1.67\u00d7 faster", [COMMAND]), ([INPUT], "1.60\u00d7 faster measured 1.52\u00d7 to 1.69\u00d7", [])],
    ids=["predicted", "proved"],
)
def test_what_was_measured_stands_in_place_of_the_prediction_and_of_the_command(
    browser, tmp_path, page_problems, proofs, gain, commands
):
    folder = store_profile(tmp_path, "run", waiting_trace())
    if proofs:
        write_proofs(proofs, folder / "proofs.json")
    with running(tmp_path) as server, watched_page(browser, server.address, page_problems) as page:
        page.goto(f"{server.address}#/advice?session={server.session('run')}")
        card = page.locator(".advice-card").first
        card.wait_for()

        assert gain in " ".join(card.locator(".gain").inner_text().split())
        assert card.locator(".prove code").all_inner_texts() == commands
