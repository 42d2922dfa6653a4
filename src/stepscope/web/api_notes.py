"""Titles, labels, notes, stars, deletion and its undoing."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from werkzeug import Request

from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.auth.roles import Rights, visitor_of
from stepscope.web.notes.note_store import LONGEST_LABEL, LONGEST_NOTE, LONGEST_TITLE, MOST_LABELS, Words
from stepscope.web.routes import Route
from stepscope.web.site import Site

Title = Annotated[str, msgspec.Meta(max_length=LONGEST_TITLE)]
Note = Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)]
Label = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_LABEL)]
Labels = Annotated[list[Label], msgspec.Meta(max_length=MOST_LABELS)]


class NoteChange(msgspec.Struct, forbid_unknown_fields=True):
    """A change of what is said of a session; what is left out stays."""

    version: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    title: Title | msgspec.UnsetType = msgspec.UNSET
    note: Note | msgspec.UnsetType = msgspec.UNSET
    labels: Labels | msgspec.UnsetType = msgspec.UNSET
    starred: bool | msgspec.UnsetType = msgspec.UNSET
    deleted: bool | msgspec.UnsetType = msgspec.UNSET


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
            "has_login": site.options.is_shared,
        }
    )


def change(site: Site, request: Request, session: str) -> Answer:
    """Changes what is said of a session."""
    wanted = _decode(request, NoteChange)
    listed = site.listed(session)
    values = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not msgspec.UNSET}
    version = values.pop("version")
    if "labels" in values:
        values["labels"] = tuple(dict.fromkeys(label.strip() for label in values["labels"] if label.strip()))
    for name in ("title", "note"):
        if name in values:
            values[name] = values[name].replace("\0", "").strip()
    return json_answer(words_json(site.words.change(listed.id, version, values, visitor_of(request).name)))


def _decode(request: Request, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(request.get_data(), type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise Refused(400, f"this request cannot be read: {error}"[:300], "reload the page") from None


ROUTES = (
    Route("/api/words", all_words),
    Route("/api/sessions/<session>/words", change, "POST", Rights.LABEL),
)
