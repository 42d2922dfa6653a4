"""Selects the actions for a framework."""

from __future__ import annotations

from collections.abc import Mapping

Actions = Mapping[str, tuple[str, ...]]


def actions_for(framework: str, actions: Actions) -> tuple[str, ...]:
    """The actions for a framework; those under "" for any framework without its own."""
    return actions.get(framework, actions.get("", ()))
