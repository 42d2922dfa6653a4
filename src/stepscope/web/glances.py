"""What the list of sessions shows of each beside its name, for sessions that were read before.

A glance is made when a session's first report is ready, and kept in the result cache: showing a thousand sessions reads
no profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from stepscope.cache import cache_key

if TYPE_CHECKING:
    from stepscope.cache import Cache
    from stepscope.report import Report
    from stepscope.web.catalogue import Listed

MOST_STEPS = 40
"""Step times in a glance, enough for a small line."""

_NAME = "glance"

Glance = dict[str, Any]


def glance_of(report: Report) -> Glance:
    """Framework, devices, verdict with its cause and share of the step, and step times, from the overview."""
    overview = report.to_dict()
    facts = overview["environment"]
    steps = [step["duration_ms"] for step in overview.get("steps", ())]
    every = -(-len(steps) // MOST_STEPS) or 1
    return {
        "framework": facts.get("framework"),
        "device_type": facts.get("device_type"),
        "device_count": facts.get("device_count"),
        "step_time_ms": overview["step_time_ms"]["mean"],
        "has_steps": overview["steps_source"] != "none",
        "verdict": overview["verdict"],
        "cause": overview["verdict_cause"],
        "cause_percent": overview["verdict_percent"],
        "steps_ms": steps[::every],
    }


def keep_glance(cache: Cache, listed: Listed, glance: Glance) -> None:
    """Stores a glance until one of the session's files changes."""
    cache.put_bytes(_key_of(listed), _NAME, msgspec.json.encode(glance))


def kept_glance(cache: Cache, listed: Listed) -> Glance | None:
    """The stored glance of a session as it is now; None if there is none."""
    content = cache.get_bytes(_key_of(listed), _NAME)
    if content is None:
        return None
    try:
        found = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _key_of(listed: Listed) -> str | None:
    """The key of the session's files; None if one has disappeared or could change unnoticed."""
    known = [identity for identity in listed.identities if identity is not None]
    return cache_key(known, _NAME) if len(known) == len(listed.identities) else None
