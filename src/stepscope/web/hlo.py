"""The graphs of XLA programs, for the page: a part of one at a time, and a whole program as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from werkzeug import Request

from stepscope.analysis.hlo.programs import programs_of
from stepscope.analysis.xla import picture
from stepscope.analysis.xla.graph_export import dot, program_text
from stepscope.analysis.xla.graph_viewer_tool import HOPS, GraphNode, find_program, graph_around
from stepscope.model import HostTrace
from stepscope.web.answers import Answer, Refused, binary_answer, json_answer
from stepscope.web.routes import read_integer
from stepscope.web.site import Site

MOST_HOPS = 20
MOST_OPEN = 30


def get_programs(site: Site, request: Request, session: str) -> Answer:
    """Answers with all programs of a host, those that took most time first."""
    with _trace(site, request, session) as trace:
        programs = picture.list_programs(trace)
    return json_answer([
        {"program": each.label, "bytes": each.bytes, "self_us": each.self_ps / 1e6} for each in programs
    ])  # fmt: skip


def get_graph(site: Site, request: Request, session: str) -> Answer:
    """Answers with the expensive path of a program (`view=path`), or what is around `node` within `hops`; `open` holds
    the ids of nodes whose inside is wanted."""
    program, node = request.args.get("program", ""), request.args.get("node", "")
    hops, opened = read_integer(request, "hops", 0, MOST_HOPS, HOPS), _opened(request)
    with _trace(site, request, session) as trace:
        if request.args.get("view") == "path":
            found = picture.draw_path(trace, program, opened)
        else:
            found = picture.draw_around(trace, program, node, hops, opened)
    return json_answer({
        "program": found.program,
        "instructions": found.instructions,
        "self_us": found.self_ps / 1e6,
        "path_us": found.path_ps / 1e6,
        "centre": found.centre,
        **_part_json(found.part),
        "inside": {str(row): _part_json(part) for row, part in found.inside.items()},
    })  # fmt: skip


def get_search(site: Site, request: Request, session: str) -> Answer:
    """Answers with the instructions of a program that hold the text `find`."""
    text = request.args.get("find", "")
    if not text.strip():
        raise Refused(400, "there is no text to find", "add find=TEXT")
    with _trace(site, request, session) as trace:
        nodes = picture.find_nodes(trace, request.args.get("program", ""), text.strip())
    return json_answer({"nodes": [_node_json(node) for node in nodes], "cut": len(nodes) == picture.MOST_FOUND})


def get_text(site: Site, request: Request, session: str) -> Answer:
    """Answers with a program as text, as a file."""
    with _trace(site, request, session) as trace:
        place = find_program(trace, request.args.get("program", ""))
        entry = programs_of(trace).entries[place]
        content = "".join(program_text(programs_of(trace).module(place))).encode()
    return binary_answer(content, "text/plain; charset=utf-8", _download_headers(f"{entry.label}.hlo.txt"))


def get_dot(site: Site, request: Request, session: str) -> Answer:
    """Answers with the surroundings of an instruction in Graphviz's language, as a file."""
    hops = read_integer(request, "hops", 0, MOST_HOPS, HOPS)
    with _trace(site, request, session) as trace:
        found = graph_around(trace, request.args.get("program", ""), request.args.get("node", ""), hops).graphs[0]
    headers = _download_headers(f"{found.program}.dot")
    return binary_answer(dot(found).encode(), "text/vnd.graphviz; charset=utf-8", headers)


@contextmanager
def _trace(site: Site, request: Request, session: str) -> Iterator[HostTrace]:
    """The trace of the host that a request names, while nobody else computes on the session."""
    opened = site.opened(session)
    trace = opened.trace(request.args.get("host") or None)
    with opened.working():
        yield trace


def _opened(request: Request) -> list[int]:
    ids = [text for text in request.args.get("open", "").split(",") if text]
    if len(ids) > MOST_OPEN or not all(text.isdecimal() and len(text) < 10 for text in ids):
        raise Refused(400, "open has to be a list of node ids", f"at most {MOST_OPEN}, as in open=12,40")
    return [int(text) for text in ids]


def _part_json(part: picture.GraphPart) -> dict[str, Any]:
    return {
        "nodes": [_node_json(node) for node in part.nodes],
        "edges": [[edge.start, edge.end, edge.bytes, edge.skipped] for edge in part.edges],
        "cut": part.cut,
    }


def _node_json(node: GraphNode) -> dict[str, Any]:
    found = node._asdict()
    found["self_us"] = found.pop("self_ps") / 1e6
    return found


def _download_headers(name: str) -> dict[str, str]:
    kept = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
    return {"Content-Disposition": f'attachment; filename="{kept}"'}
