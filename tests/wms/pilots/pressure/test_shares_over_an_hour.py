"""Shares of two collaborations in three entries over an hour of load, on a clock of the test."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from matching.task_queues.needs import Needs
from tests.wms.pilots.directing import direct
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.operations import JobSpec, create_workspace, submit_jobs
from wms.pilots.models import Pilot
from wms.sites.models import Queue

#: Places and waiting pilots at most of each entry.
ENTRIES = {"one": (30, 10), "two": (12, 12), "three": (60, 6)}
SHARES = {"atlas": 2.0, "lsst": 1.0}
_TURN = timedelta(minutes=1)


@pytest.mark.slow
@pytest.mark.django_db
def test_each_has_its_share_of_each_entry_within_five_in_a_hundred(
    make_queue: Callable[..., Queue], collaboration: Callable[..., object], alice: User
) -> None:
    queues = [
        make_queue(name, max_pilots=most, max_queued_pilots=waiting)
        for name, (most, waiting) in ENTRIES.items()
    ]
    for name, share in SHARES.items():
        collaboration(name, *queues, share=share)
        _submit(alice, name, 200)
    draw, now, minutes = random.Random(1), timezone.now(), Counter[tuple[str, str]]()
    ends_at: dict[int, int] = {}

    for minute in range(60):
        direct(now + minute * _TURN)
        _live_a_minute(draw, minute, ends_at)
        running = Pilot.objects.filter(state="running")
        minutes.update(running.values_list("queue__site__name", "frontend__name"))

    for entry in ENTRIES:
        whole = sum(minutes[entry, name] for name in SHARES)
        for name, share in SHARES.items():
            assert minutes[entry, name] / whole == pytest.approx(
                share / sum(SHARES.values()), abs=0.05
            )
    # Neither is held down to have the right part of little.
    assert sum(minutes.values()) > 0.5 * 60 * sum(most for most, _ in ENTRIES.values())


def _submit(owner: User, group: str, count: int) -> None:
    needs = Needs.of(owner.username, owner_group=group)
    spec = JobSpec(name="run", executable="/bin/true", needs=needs)
    workspace = create_workspace(owner, {})
    submit_jobs([spec] * count, owner=owner, workspace=workspace, actor=Actor.person(owner))


def _live_a_minute(draw: random.Random, minute: int, ends_at: dict[int, int]) -> None:
    """Half of the pilots that wait begin, and those end whose time is up.

    They take no jobs any more, so that there are always enough for others.
    """
    over = [pk for pk, end in ends_at.items() if end <= minute]
    Pilot.objects.filter(pk__in=over).update(state="done", ended_at=timezone.now())
    for pk in over:
        del ends_at[pk]
    waiting = Pilot.objects.filter(state__in=("submitted", "queued")).order_by("pk")
    begun = [pk for pk in waiting.values_list("pk", flat=True) if draw.random() < 0.5]
    Pilot.objects.filter(pk__in=begun).update(state="running", token_sha256="x", is_draining=True)
    ends_at.update({pk: minute + draw.randint(5, 15) for pk in begun})
