"""The route of `stepscope whatif`: the median step after some changes."""

from __future__ import annotations

from werkzeug import Request

from stepscope.web.answers import Answer, Refused, json_answer
from stepscope.web.site import Site

MOST_CHANGES = 20


def get_whatif(site: Site, request: Request, session: str) -> Answer:
    """Answers with the prediction for `scale=PART:FACTOR`, as often as there are parts; a factor of 0 removes one."""
    scales = dict(_read_change(text) for text in request.args.getlist("scale")[:MOST_CHANGES])
    if not scales:
        raise Refused(400, "no change to predict", "add scale=PART:FACTOR, such as scale=input:0")
    opened = site.opened(session)
    with opened.working():
        removed = [part for part, factor in scales.items() if factor == 0]
        kept = {part: factor for part, factor in scales.items() if factor != 0}
        return json_answer(opened.profile.whatif(removed, scales=kept).to_dict())


def _read_change(text: str) -> tuple[str, float]:
    """A part and the share of its time that stays.  The part may hold colons."""
    part, _, factor = text.rpartition(":")
    try:
        share = float(factor)
    except ValueError:
        share = -1.0
    if not part or not 0 <= share <= 100:
        raise Refused(400, f"{text!r} is no change", "write PART:FACTOR with a factor from 0 to 100")
    return part, share
