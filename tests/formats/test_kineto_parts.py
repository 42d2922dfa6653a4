"""Parts of a text, scanned by several threads, give what scanning in order gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stepscope.formats.kineto.scanning import PartScanner
from stepscope.kernels import trace_json as scan
from stepscope.model.arrays import U8


def event(number: int, **more: Any) -> dict[str, Any]:
    """An event that shares texts with those near it, and has some of its own."""
    args = {"External id": number, "shape": [number, 2], "of": f"op {number % 7}", f"only {number}": number / 3}
    place = {"pid": 1, "tid": number % 3, "ts": number}
    return {"ph": "X", "cat": "cpu_op", "name": f"op {number % 5}", **place, "args": args, **more}


def as_array(text: str) -> U8:
    return np.frombuffer(text.encode(), np.uint8)


def elements(*events: dict[str, Any]) -> str:
    """The elements of an array and its end, as torch.profiler lays them out."""
    return ",\n  ".join(json.dumps(each, indent=4) for each in events) + "\n  ]"


def scanned(text: str, threads: int, window: int | None = None) -> dict[str, Any]:
    """What a scanner has read of a text, in windows if wanted: columns, texts and damage."""
    scanner = PartScanner(part_bytes=200, threads=threads)
    whole, at, why = as_array(text), 0, scan.MORE
    end = min(window or len(whole), len(whole))
    while True:
        why = scanner.scan(whole, at, end)
        at = scanner.at
        if why == scan.CLOSED or end == len(whole):
            break
        end = min(end + (window or 0), len(whole))
    scanner.close()
    texts = [scanner.whole.text(row) for row in range(scanner.whole.texts)]
    columns = {name: np.asarray(column).tolist() for name, column in scanner.whole.take().items()}
    return {**columns, "texts": texts, "at": at, "why": why, "damaged": scanner.whole.damaged}


PLAIN = elements(*map(event, range(60)))
FLOWS = elements(*(event(n, id=f"0x{n:x}" if n % 2 else n, id2={"local": n % 4}) for n in range(60)))
# A list of objects in args looks like a list of events; the text of a string does not, but holds braces.
NESTED = elements(*(event(n, args={"list": [{"a": 1}, {"ph": "X"}, {"c": 3}] * 9}) for n in range(30)))
QUOTED = elements(*(event(n, name='}, {"ph": "X", "name": "no event"}' * 9) for n in range(30)))
CUT_NUMBERS = elements(*(event(n, args={"long": 0.12345678901234567890123, "n": n}) for n in range(60)))
DAMAGED = PLAIN[: len(PLAIN) // 2] + '"}}}{{{::' + PLAIN[len(PLAIN) // 2 :]
OPEN_ENDED = PLAIN[:-40]


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize(
    "text",
    [PLAIN, FLOWS, NESTED, QUOTED, CUT_NUMBERS, DAMAGED, OPEN_ENDED],
    ids=["plain", "flows", "nested", "quoted", "numbers", "damaged", "open-ended"],
)
def test_parts_give_what_reading_in_order_gives(text: str, threads: int) -> None:
    in_order = scanned(text, threads=1)

    assert in_order["phase"]
    assert scanned(text, threads) == in_order
    assert scanned(text, threads, window=2500) == in_order


def test_every_text_cut_anywhere_gives_the_same() -> None:
    for end in range(0, len(FLOWS), 97):
        assert scanned(FLOWS[:end], threads=3) == scanned(FLOWS[:end], threads=1)


def test_parts_are_taken_over_rather_than_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = PartScanner(part_bytes=200, threads=4)
    text = as_array(PLAIN)
    scanner.whole = CountingScanner()

    scanner.scan(text, 0, len(text))

    assert scanner.whole.absorbed == 3
    assert scanner.whole.read_until < len(text) // 3


class CountingScanner(scan.Scanner):
    """Counts what it takes over, and how far it reads itself."""

    absorbed = 0
    read_until = 0

    def absorb(self, part: scan.Scanner) -> None:
        self.absorbed += 1
        super().absorb(part)

    def scan(self, text: U8, at: int, end: int, stop: int) -> int:
        why = super().scan(text, at, end, stop)
        self.read_until = self.at
        return why


def test_wrong_guesses_end_the_guessing() -> None:
    scanner = PartScanner(part_bytes=200, threads=2)
    text = as_array(elements(event(1), event(2, args={"list": [{"ph": "X"}] * 2000}), event(3)))
    for _ in range(6):
        scanner.scan(text, 0, len(text))

    assert scanner._guess_starts(text, 0, len(text)) == []


# -- the loops ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "end"), [(-1, 3), (2, 1), (0, 4), (4, 4)])
def test_positions_outside_the_text_are_refused(at: int, end: int) -> None:
    text = as_array("[1]")

    with pytest.raises(ValueError, match="no part of 3 bytes"):
        scan.Scanner().scan(text, at, end, end)
    with pytest.raises(ValueError, match="no part of 3 bytes"):
        scan.skip_value(text, at, end)


@pytest.mark.parametrize(
    ("text", "after"),
    [("[1, {}] ", 7), ('"a\\"b" ', 6), ("12, ", 2), ("null]", 4), ('{"a": [}]', 9)],
)
def test_the_end_of_a_value_is_found(text: str, after: int) -> None:
    assert scan.skip_value(as_array(text), 0, len(text)) == after


@pytest.mark.parametrize("text", ["[1, ", '"abc', "12", "{", '"\\'])
def test_a_value_that_goes_on_is_not_ended(text: str) -> None:
    after = scan.skip_value(as_array(text), 0, len(text))

    assert after < 0
    assert after != scan.MALFORMED


def test_texts_have_one_id_each_and_are_found_again() -> None:
    scanner = scan.Scanner()
    names = [f"name {number}" for number in range(20_000)]

    first = [scanner.add_text(as_array(name)) for name in names]

    assert first == list(range(1, 20_001))
    assert [scanner.add_text(as_array(name)) for name in names] == first
    assert scanner.text(7) == b"name 6"
    assert scanner.text(0) == b""
    with pytest.raises(IndexError):
        scanner.text(20_001)


def test_a_scanner_that_forgets_starts_anew() -> None:
    text = as_array(PLAIN)
    scanner = scan.Scanner()
    scanner.scan(text, 0, len(text), len(text))
    before = [scanner.text(row) for row in range(scanner.texts)]

    scanner.forget()
    assert (scanner.rows, scanner.texts) == (0, 1)
    scanner.scan(text, 0, len(text), len(text))

    assert [scanner.text(row) for row in range(scanner.texts)] == before
    assert len(scanner.take()["phase"]) == 60
    assert scanner.rows == 0
