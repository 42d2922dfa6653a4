"""Titles, labels, notes, stars, deletion and its undoing, and uploads."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from werkzeug import Request

from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.door.roles import Role, visitor_of
from stepscope.web.people.sharing import DEFAULT_DAYS, LONGEST_DAYS, LONGEST_VIEW, check_link, check_view, sign_link
from stepscope.web.people.words import LONGEST_LABEL, LONGEST_NOTE, LONGEST_TITLE, MOST_LABELS, Words
from stepscope.web.routes import Route, read_integer
from stepscope.web.site import Site

Title = Annotated[str, msgspec.Meta(max_length=LONGEST_TITLE)]
Note = Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)]
Label = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_LABEL)]
Labels = Annotated[list[Label], msgspec.Meta(max_length=MOST_LABELS)]


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """A change of what is said of a session; what is left out stays."""

    version: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    title: Title | msgspec.UnsetType = msgspec.UNSET
    note: Note | msgspec.UnsetType = msgspec.UNSET
    labels: Labels | msgspec.UnsetType = msgspec.UNSET
    starred: bool | msgspec.UnsetType = msgspec.UNSET
    deleted: bool | msgspec.UnsetType = msgspec.UNSET


class NewUpload(msgspec.Struct, forbid_unknown_fields=True):
    """The file that is to be uploaded."""

    name: Annotated[str, msgspec.Meta(max_length=200)]
    size: int


class NewLink(msgspec.Struct, forbid_unknown_fields=True):
    """A link that is to be shared.  `view` is what follows in the page's address, from the # on."""

    view: Annotated[str, msgspec.Meta(max_length=LONGEST_VIEW + 2)] = ""
    days: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_DAYS)] = DEFAULT_DAYS


def words_json(words: Words) -> dict[str, Any]:
    """What people said of a session, as the page gets it."""
    return vars(words) | {"labels": list(words.labels), "changed_at": words.changed_at or None}


def all_words(site: Site, request: Request) -> Answer:
    """Answers with what was said of all listed sessions, who asks, and what that person may do."""
    visitor = visitor_of(request)
    known = {listed.id for listed in site.catalogue.sessions()}
    said = {session: words_json(words) for session, words in site.words.all().items() if session in known}
    return json_answer(
        {
            "sessions": said,
            "person": visitor.name,
            "role": visitor.role.name.lower(),
            "can_upload": site.uploads.is_available and visitor.role >= Role.LABEL,
            "can_share": site.options.is_shared,
        }
    )


def change(site: Site, request: Request, session: str) -> Answer:
    """Changes what is said of a session."""
    wanted = _decode(request, Change)
    listed = site.listed(session)
    values = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not msgspec.UNSET}
    version = values.pop("version")
    if "labels" in values:
        values["labels"] = tuple(dict.fromkeys(label.strip() for label in values["labels"] if label.strip()))
    for name in ("title", "note"):
        if name in values:
            values[name] = values[name].replace("\0", "").strip()
    return json_answer(words_json(site.words.change(listed.id, version, values, visitor_of(request).name)))


def share(site: Site, request: Request, session: str) -> Answer:
    """Answers with a link to a view of a session, relative to the site's address, and when it ends.

    On a server that everybody may use, it is the address of the view itself, and does not end.
    """
    wanted = _decode(request, NewLink)
    listed = site.listed(session)
    view = check_view(wanted.view or f"#/?session={listed.id}")
    if not site.options.is_shared:
        return json_answer({"link": f"{request.script_root}/{view}", "expires": None}, 201)
    mark, expires = sign_link(site.words.link_key(), listed.id, view, wanted.days)
    link = f"{request.script_root}/share/{listed.id}/{mark}?view={quote(view, safe='/')}"
    return json_answer({"link": link, "expires": expires}, 201)


def open_shared(site: Site, request: Request, session: str, mark: str) -> Answer:
    """Leads to what a link shows.  The visitor has come in by the door, and sees with the own role."""
    view = check_view(request.args.get("view", ""))
    check_link(site.words.link_key(), session, view, mark)
    site.listed(session)
    return Answer(b"", "text/plain", 303, {"Location": f"{request.script_root}/{view}"})


def begin_upload(site: Site, request: Request) -> Answer:
    """Begins an upload; the answer has its id."""
    wanted = _decode(request, NewUpload)
    upload = site.uploads.begin(visitor_of(request).person, wanted.name, wanted.size)
    return json_answer({"id": upload.id, "done": 0, "size": upload.size}, 201)


def add_piece(site: Site, request: Request, upload: str) -> Answer:
    """Adds a piece of a file at `offset`."""
    offset = read_integer(request, "offset", 0, 1 << 62)
    found = site.uploads.add(visitor_of(request).person, upload, offset, request.get_data())
    return json_answer({"id": found.id, "done": found.done, "size": found.size})


def finish_upload(site: Site, request: Request, upload: str) -> Answer:
    """Ends an upload; the answer has the session."""
    from stepscope.web.api_capture import find_session

    folder = site.uploads.finish(visitor_of(request).person, upload)
    return json_answer({"session": find_session(site, str(folder))}, 201)


def cancel_upload(site: Site, request: Request, upload: str) -> Answer:
    """Forgets an upload."""
    site.uploads.cancel(visitor_of(request).person, upload)
    return json_answer({})


def _decode(request: Request, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(request.get_data(), type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise Refused(400, f"this request cannot be read: {error}"[:300], "reload the page") from None


ROUTES = (
    Route("/api/words", all_words),
    Route("/api/sessions/<session>/words", change, "POST", Role.LABEL),
    Route("/api/sessions/<session>/share", share, "POST"),
    Route("/share/<session>/<mark>", open_shared),
    Route("/api/uploads", begin_upload, "POST", Role.LABEL),
    Route("/api/uploads/<upload>", add_piece, "POST", Role.LABEL),
    Route("/api/uploads/<upload>/end", finish_upload, "POST", Role.LABEL),
    Route("/api/uploads/<upload>", cancel_upload, "DELETE", Role.LABEL),
)
