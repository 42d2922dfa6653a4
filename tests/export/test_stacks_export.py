"""Stacks for pprof and flame graphs: opened by the readers that people open them with."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MS, draw
from places import ROOT
from sql_sessions import training

from stepscope.export import compress_pieces, pieces
from stepscope.export.stacks import find_stacks
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

READERS = ROOT / "frontend" / "node_modules"
SPEEDSCOPE = READERS / "speedscope" / "dist" / "release"

# Reads a profile as its users' tools do, and prints it with names in place of numbers.
DECODE = """
import { Profile } from "%s/pprof-format/dist/esm/index.js";
import { readFileSync } from "node:fs";
const found = Profile.decode(readFileSync(process.argv[2]));
const text = (at) => found.stringTable.strings[Number(at)];
const functions = new Map(found.function.map((one) => [one.id, one]));
const locations = new Map(found.location.map((one) => [one.id, one]));
const frame = (id) => {
  const line = locations.get(id).line[0], of = functions.get(line.functionId);
  return [text(of.name), text(of.filename), Number(line.line)];
};
console.log(JSON.stringify({
  types: found.sampleType.map((one) => [text(one.type), text(one.unit)]),
  samples: found.sample.map((one) => ({ stack: [...one.locationId].map(frame), value: [...one.value].map(Number) })),
  duration_ns: Number(found.durationNanos),
}));
"""


def written(form: str, *traces: HostTrace) -> bytes:
    return b"".join(pieces(traces, form, len(traces)))


def program() -> HostTrace:
    """A Python function that calls an op twice; each launches a kernel.

    main  | train.py(3): step ---------
    main  |   a----      a----
    main  |    L1         L2
    gpu0  |     K1-        K2--
    """
    builder = TraceBuilder("host")
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "stream 7", kind=LineKind.STREAM)
    main.event("train.py(3): step", 0, 20 * MS, EventKind.PYTHON_CALL)
    for at, number, length in ((2, 1, 2), (11, 2, 3)):
        main.event("a", at * MS, 5 * MS, EventKind.OP)
        main.event("launch", (at + 1) * MS, MS, EventKind.RUNTIME_CALL, {"correlation_id": number})
        stream.event("kernel", (at + 3) * MS, length * MS, EventKind.KERNEL, {"correlation_id": number})
    return builder.build()


# -- stacks ------------------------------------------------------------------------------------------------------------


def test_equal_stacks_are_one_node_and_times_add_up() -> None:
    trace = program()

    stacks = find_stacks(trace, below_launches=True)

    found = {
        tuple(stacks.frames[frame].name for frame in stacks.path(node))[::-1]: (
            int(stacks.calls[node]), int(stacks.host_ps[node]) // MS, int(stacks.device_ps[node]) // MS,
        )
        for node in range(len(stacks.parent))
    }  # fmt: skip
    root = "/host:CPU main"
    assert found == {
        (root,): (0, 0, 0),
        ("/device:GPU:0 stream 7",): (0, 0, 0),
        (root, "step"): (1, 10, 0),
        (root, "step", "a"): (2, 8, 0),
        (root, "step", "a", "launch"): (2, 2, 0),
        (root, "step", "a", "launch", "kernel"): (2, 0, 5),
    }


def test_a_node_comes_after_the_one_above_it() -> None:
    for trace in (program(), training()):
        stacks = find_stacks(trace, below_launches=True)

        assert (stacks.parent < np.arange(len(stacks.parent))).all()


def test_an_empty_trace_has_no_stacks() -> None:
    empty = TraceBuilder("host").build()

    assert written("collapsed", empty) == b""
    assert len(find_stacks(empty, below_launches=True).parent) == 0


# -- collapsed stacks --------------------------------------------------------------------------------------------------


def test_collapsed_stacks_are_lines_of_frames_and_nanoseconds() -> None:
    assert sorted(written("collapsed", program()).decode().splitlines()) == [
        "/device:GPU:0 stream 7;kernel 5000000",
        "/host:CPU main;step 10000000",
        "/host:CPU main;step;a 8000000",
        "/host:CPU main;step;a;launch 2000000",
    ]


def test_several_hosts_and_names_that_hold_separators() -> None:
    builder = TraceBuilder("a;b")
    builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main").event("x;y\nz", 0, MS)

    lines = written("collapsed", builder.build(), draw("host main | c", host="other")).decode().splitlines()

    assert lines == ["a:b;/host:CPU main;x:y z 1000000", "other;/host:CPU main;c 1000000"]


# -- pprof -------------------------------------------------------------------------------------------------------------


def decoded(tmp_path: Path, *traces: HostTrace) -> dict[str, Any]:
    """What the package `pprof-format` reads in the file."""
    if not (READERS / "pprof-format").is_dir() or shutil.which("node") is None:
        pytest.skip("needs Node.js and the packages of the page")
    script, target = tmp_path / "decode.mjs", tmp_path / "profile.pb"
    script.write_text(DECODE % READERS)
    target.write_bytes(written("pprof", *traces))
    said = subprocess.run(["node", script, target], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def test_pprof_reads_stacks_with_files_and_lines(tmp_path: Path) -> None:
    found = decoded(tmp_path, program())

    assert found["types"] == [["calls", "count"], ["host", "nanoseconds"], ["device", "nanoseconds"]]
    assert found["duration_ns"] == 20_000_000
    root, step = ["/host:CPU main", "", 0], ["step", "train.py", 3]
    a, launch, kernel = ["a", "", 0], ["launch", "", 0], ["kernel", "", 0]
    assert sorted(found["samples"], key=lambda sample: len(sample["stack"])) == [
        {"stack": [step, root], "value": [1, 10_000_000, 0]},
        {"stack": [a, step, root], "value": [2, 8_000_000, 0]},
        {"stack": [launch, a, step, root], "value": [2, 2_000_000, 0]},
        {"stack": [kernel, launch, a, step, root], "value": [2, 0, 5_000_000]},
    ]


def test_pprof_reads_several_hosts(tmp_path: Path) -> None:
    found = decoded(tmp_path, training("one"), training("two"))

    hosts = {sample["stack"][-1][0] for sample in found["samples"]}
    assert hosts == {"one", "two"}
    totals = np.array([sample["value"] for sample in found["samples"]]).sum(axis=0)
    single = np.array([sample["value"] for sample in decoded(tmp_path, training())["samples"]]).sum(axis=0)
    assert (totals == 2 * single).all()


# -- Speedscope --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "name", "taken_for"),
    [
        ("collapsed", "x.txt", "collapsed stack format"),
        ("pprof", "x.pb", "protobuf encoded pprof file"),
    ],
)
def test_speedscope_opens_the_file(browser: Any, form: str, name: str, taken_for: str) -> None:
    if not SPEEDSCOPE.is_dir():
        pytest.skip("needs the packages of the page")
    content, said = base64.b64encode(written(form, program())).decode(), []
    page = browser.new_page()
    page.route("http://speedscope.test/**", lambda route: route.fulfill(path=SPEEDSCOPE / page_file(route.request.url)))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.goto("http://speedscope.test/#localProfilePath=/none")  # which lets other programs hand files over

    page.wait_for_function("window.speedscope")
    page.evaluate("([name, content]) => { window.speedscope.loadFileFromBase64(name, content) }", [name, content])

    page.wait_for_function("document.title.endsWith(' - speedscope')")
    assert f"Importing as {taken_for}" in said
    assert not [text for text in said if text.startswith("error: ")]
    page.close()


def page_file(url: str) -> str:
    return url.partition("#")[0].rpartition("/")[2] or "index.html"


def test_a_compressed_file_is_one_gzip_stream() -> None:
    trace = program()

    assert gzip.decompress(b"".join(compress_pieces(pieces([trace], "pprof", 1)))) == written("pprof", trace)
