"""Lifecycle of placement requests: applies their events, and announces ends to submitters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from wms.core.actors import Actor
from wms.core.inbox import announce
from wms.core.models import InboxEntry
from wms.core.statemachine import StateMachine
from wms.core.transitions import Applied
from wms.placement.models import PlacementEvent, PlacementRequest
from wms.placement.states import ALIVE, TRANSITIONS

_MACHINE = StateMachine(
    model=PlacementRequest,
    event_model=PlacementEvent,
    subject="request",
    transitions=TRANSITIONS,
)
#: Events that whoever submitted the request hears of through its inbox.
ANNOUNCED = frozenset({"complete", "fail", "remove"})


@transaction.atomic
def apply(
    event: str,
    request_ids: Collection[int],
    *,
    actor: Actor,
    reason: str = "",
    facts: Mapping[int, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Applied:
    """Move requests by one event; ends are announced to those who submitted them."""
    applied, _ = _MACHINE.apply(
        event, request_ids, actor=actor, reason=reason, facts=facts, **changes
    )
    if event in ANNOUNCED:
        _announce_ends(applied.changed)
    return applied


def _announce_ends(request_ids: Collection[int]) -> None:
    """Announce requests that ended alone, and the leaders of batches that ended as a whole.

    The caller has locked the leaders.
    """
    ended = PlacementRequest.objects.filter(pk__in=request_ids).exclude(topic="")
    heads = {leader or pk for pk, leader in ended.values_list("pk", "leader_id")}
    # Looked for by an index of those that have not ended: a batch may be long.
    followers = PlacementRequest.objects.filter(leader=OuterRef("pk"), state__in=ALIVE)
    told = PlacementRequest.objects.filter(~Exists(followers), pk__in=heads).exclude(
        state__in=ALIVE
    )
    announce(
        InboxEntry(topic=topic, key=key, kind=InboxEntry.Kind.REQUEST, subject_id=pk)
        for pk, topic, key in told.order_by("pk").values_list("pk", "topic", "topic_key")
    )
