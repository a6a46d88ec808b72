"""Adoption of pilots whose submission's answer was lost: they get their ids, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests import factories
from tests.wms.pilots.directing import direct, poll
from tests.wms.pilots.fake_element import FakeElement
from wms.elements.protocol import BatchState, by_index
from wms.pilots.models import Pilot
from wms.pilots.monitoring import monitor
from wms.pilots.services import remove_pilot
from wms.sites.models import Queue


class Forgetful(FakeElement):
    """Knows the first pilot of a batch no more: it has ended some time ago."""

    def adopt(self, name: str) -> list[str]:
        ids = {index: pilot for index, pilot in enumerate(super().adopt(name)) if index}
        return by_index(ids)


def test_a_pilot_that_is_forgotten_leaves_its_id_to_no_other(
    elements: dict[str, FakeElement],
    make_queue: Callable[..., Queue],
    add_jobs: Callable[..., Any],
) -> None:
    elements["site-a"] = element = Forgetful()
    make_queue()
    element.loses_answer = True
    add_jobs(3)
    now = timezone.now()
    direct(now)
    element.loses_answer = False

    poll(now + timedelta(seconds=121))
    before = [pilot.state for pilot in Pilot.objects.order_by("pk")]
    poll(now + timedelta(seconds=601))

    first, second, third = Pilot.objects.order_by("pk")
    assert before == ["submitted"] * 3
    assert (first.state, first.native_id) == ("aborted", "")
    assert "not know" in first.state_reason
    assert [second.native_id, third.native_id] == [f"{first.batch}.1", f"{first.batch}.2"]
    assert {second.state, third.state} == {"queued"}


def test_a_removed_pilot_whose_id_was_lost_is_found_and_cancelled(
    elements: dict[str, FakeElement],
    make_queue: Callable[..., Queue],
    add_jobs: Callable[..., Any],
) -> None:
    queue, element = make_queue(), elements["site-a"]
    element.loses_answer = True
    add_jobs(1)
    now = timezone.now()
    direct(now)
    remove_pilot(Pilot.objects.get().uuid, actor=factories.SYSTEM, reason="a mistake")

    assert monitor.queues_due(now + timedelta(seconds=60)) == []
    assert monitor.queues_due(now + timedelta(seconds=121)) == [queue.pk]
    poll(now + timedelta(seconds=121))

    removed = Pilot.objects.get()
    assert (removed.state, removed.native_id) == ("removed", f"{removed.batch}.0")
    assert element.states[removed.native_id].state == BatchState.CANCELLED
    poll(now + timedelta(seconds=150))
    assert monitor.queues_due(now + timedelta(seconds=180)) == []


def test_a_removed_pilot_that_was_never_started_is_not_looked_for_any_more(
    elements: dict[str, FakeElement],
    make_queue: Callable[..., Queue],
    add_jobs: Callable[..., Any],
) -> None:
    make_queue()
    element = elements["site-a"]
    element.loses_answer = True
    add_jobs(1)
    now = timezone.now()
    direct(now)
    element.states.clear()
    remove_pilot(Pilot.objects.get().uuid, actor=factories.SYSTEM, reason="a mistake")

    for minutes in (3, 11, 12):
        poll(now + timedelta(minutes=minutes))

    assert element.calls.count("adopt") == 2
    assert monitor.queues_due(now + timedelta(minutes=13)) == []
    assert Pilot.objects.get().state == "removed"
