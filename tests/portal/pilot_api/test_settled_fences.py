"""Fence `auto` of a queue is settled once: later software on nodes changes no payload."""

from __future__ import annotations

from typing import Any

import pytest

from tests.portal.pilot_api.pilot_client import NODE, SECRET, PilotClient
from wms.core.actors import Actor
from wms.core.models import AuditEntry
from wms.pilots.models import Pilot
from wms.pilots.protocol.registration import secret_digest
from wms.sites.models import Queue, SiteEvent
from wms.sites.services import save_queue

pytestmark = pytest.mark.django_db


def told_fence(queue: Queue, found: str) -> str:
    """What a new pilot is told whose node has this."""
    pilot = Pilot.objects.create(queue=queue, batch="batch", secret_sha256=secret_digest(SECRET))
    answer = PilotClient(pilot).register(node=NODE | {"fence": found})
    assert answer.status_code == 200
    return str(answer.json()["fence"])


def changed(queue: Queue, **values: Any) -> None:
    row = Queue.objects.get(pk=queue.pk)
    for name, value in values.items():
        setattr(row, name, value)
    save_queue(row, actor=Actor.system("test"))


@pytest.mark.parametrize(("first", "then"), [("none", "bwrap"), ("bwrap", "none")])
def test_what_the_first_pilot_finds_holds_for_those_that_find_something_else(
    queue: Queue, first: str, then: str
) -> None:
    told = [told_fence(queue, first), told_fence(queue, then)]

    assert told == [first, first]
    nodes = Pilot.objects.order_by("pk").values_list("node__fence", "node__fence_found")
    assert list(nodes) == [(first, first), (first, then)]


def test_that_it_is_settled_is_told_once_by_an_event_and_in_the_audit(queue: Queue) -> None:
    told_fence(queue, "none")
    told_fence(queue, "bwrap")

    [event] = SiteEvent.objects.filter(event="settle")
    assert event.facts == {"target": f"queue {queue}", "settled_fence": ["", "none"]}
    assert event.actor == f"pilot:{Pilot.objects.earliest('pk').uuid}"
    assert AuditEntry.objects.filter(action="settle fence").count() == 1


def test_a_network_that_only_a_fence_keeps_needs_no_pilot_to_settle_it(queue: Queue) -> None:
    Queue.objects.filter(pk=queue.pk).update(network="portal", settled_fence="none")

    assert told_fence(queue, "none") == "bwrap"


def test_a_person_who_chooses_another_fence_has_it_settled_anew(queue: Queue) -> None:
    told_fence(queue, "none")

    changed(queue, fence="bwrap")
    changed(queue, fence="auto")

    assert Queue.objects.get(pk=queue.pk).effective_fence == ""
    assert told_fence(queue, "bwrap") == "bwrap"


def test_a_change_of_something_else_leaves_it_settled(queue: Queue) -> None:
    seen_before = Queue.objects.get(pk=queue.pk)
    told_fence(queue, "none")

    seen_before.max_pilots = 77
    save_queue(seen_before, actor=Actor.system("test"))

    assert Queue.objects.get(pk=queue.pk).effective_fence == "none"


def test_a_pilot_that_tells_no_fence_settles_nothing(fresh: PilotClient) -> None:
    assert fresh.register().json()["fence"] == "auto"
    assert Queue.objects.get().settled_fence == ""
