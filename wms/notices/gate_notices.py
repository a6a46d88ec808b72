"""Notices that a gate waits: their keys, and the gates that their reader may still decide."""

from __future__ import annotations

from collections.abc import Iterable

from wms.core.models import User
from wms.dags.reading.gate_selectors import WaitingGate, gates_by_event
from wms.notices.models import Notice

_BEGINNING = "node-event:"


def key_of(event_id: int) -> str:
    """Key of the notice of an event by which a gate began to wait."""
    return f"{_BEGINNING}{event_id}"


def gates_of(user: User, notices: Iterable[Notice]) -> dict[int, WaitingGate]:
    """Gates that wait still and that the user may open or close, by their notices.

    Two queries, or none without such notices.
    """
    events = {
        notice.pk: (int(notice.subject_id), int(notice.key.removeprefix(_BEGINNING)))
        for notice in notices
        if notice.kind == Notice.Kind.WAITING and notice.key.startswith(_BEGINNING)
    }
    gates = gates_by_event(user, set(events.values()))
    return {pk: gates[event] for pk, (_, event) in events.items() if event in gates}
