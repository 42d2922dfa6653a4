"""The route of the lines of the program that an advice is about."""

from __future__ import annotations

from pathlib import Path

from werkzeug import Request

from stepscope.formats.session import written_ns_of
from stepscope.program_source import find_source
from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.site import Site

_MOST_FOLDERS = 6  # `PROGRAM/stepscope-logs/plugins/profile/RUN`, and logs one folder deeper


def get_source(site: Site, request: Request, session: str, advice: str) -> Answer:
    """Answers with the file, the number of the first line, the lines, and the number of the one that the advice is
    about; `path` is null where the file is not here.  It is looked for below the folders around the session, too, as a
    program writes its logs beside itself.

    Only what the session's own advice names is read, and only for the person at this machine: a server that others
    see answers with no folder and no file of it.
    """
    opened = site.opened(session)
    report = opened.report("advice", request.args.get("host") or None, request.args.get("steps") or None)
    found = next((each for each in report.to_dict()["advice"] if each["id"] == advice), None)
    if found is None:
        raise Refused(404, f"there is no advice {advice!r}", "reload the page", [])
    source = None
    if not site.options.is_shared:
        folders = _folders_around(opened.session.path)
        source = find_source(found["culprit"], folders, written_ns_of(opened.session, True))
    if source is None:
        return json_answer({"path": None, "line": None, "lines": [], "at": None, "is_edited": False})
    body = {"line": source.line, "lines": list(source.lines), "at": source.at, "is_edited": source.is_edited}
    return json_answer({"path": str(source.path), **body})


def _folders_around(session: str) -> tuple[Path, ...]:
    path = Path(session).absolute()
    return (path, *path.parents)[:_MOST_FOLDERS]
