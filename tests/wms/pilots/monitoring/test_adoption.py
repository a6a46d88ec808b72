"""Adoption of pilots whose submission's answer was lost: they get their ids, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests.wms.pilots.directing import direct, poll
from tests.wms.pilots.fake_element import FakeElement
from wms.elements.protocol import by_index
from wms.pilots.models import Pilot
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
