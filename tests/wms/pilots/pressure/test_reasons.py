"""The reasons on a queue's page are those of now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests.wms.pilots.directing import direct
from wms.core.models import User
from wms.elements.protocol import Unreachable
from wms.pilots.models import Pilot
from wms.pilots.pressure import director
from wms.pilots.pressure.selectors import find_pressure
from wms.pilots.pressure_models import ElementContact


def test_a_back_off_is_told_once_and_not_after_it_is_over(
    make_queue: Callable[..., Any],
    add_jobs: Callable[..., Any],
    elements: dict[str, Any],
    olga: User,
) -> None:
    make_queue()
    add_jobs(1)
    now = timezone.now()
    elements["site-a"].fail_with = Unreachable("time-out")

    def told() -> list[str]:
        return [
            each
            for each in find_pressure(olga, "site-a", "main").reasons
            if each.startswith("back-off until")
        ]

    direct(now)
    director.plan_requests(now + timedelta(seconds=2))
    assert len(told()) == 1

    # Others have taken the job since, and no turn has been due.
    ElementContact.objects.all().delete()
    director.plan_requests(now + timedelta(hours=3))
    assert told() == []
    assert not Pilot.objects.exists()


def test_what_a_turn_was_told_a_moment_ago_is_told(
    make_queue: Callable[..., Any],
    add_jobs: Callable[..., Any],
    olga: User,
) -> None:
    make_queue(max_submits=2)
    add_jobs(9)
    now = timezone.now()

    direct(now)
    director.plan_requests(now + timedelta(seconds=2))

    assert "at most 2" in str(find_pressure(olga, "site-a", "main").reasons)
