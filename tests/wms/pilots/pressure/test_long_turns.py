"""Turns in which a batch system takes its time: minutes pass between question and answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.utils import timezone

from tests.wms.pilots.directing import direct, reasons_of
from tests.wms.pilots.fake_element import FakeElement
from wms.core.actors import Actor
from wms.core.models import User
from wms.elements.protocol import PilotState, Unreachable
from wms.pilots.models import Pilot
from wms.pilots.monitoring import batch_poller
from wms.pilots.pressure import director, submitter
from wms.pilots.pressure_models import ElementContact, PilotLimit, PressureRequest
from wms.sites.models import Queue
from wms.sites.services import QueueSpec, SiteSpec, configure_site


class SlowElement(FakeElement):
    """Every call takes `takes_s`, and then `then` happens."""

    def __init__(self) -> None:
        super().__init__(slots=1000)
        self.clock_s = 0.0
        self.takes_s = 0.0
        self.then: Callable[[], Any] = lambda: None

    def clock(self) -> float:
        return self.clock_s

    def submit(self, count: int, script: str, *, name: str, **slot: Any) -> list[str]:
        self.clock_s += self.takes_s
        self.then()
        return super().submit(count, script, name=name, **slot)

    def status(self, ids: Collection[str]) -> Mapping[str, PilotState]:  # type: ignore[override]
        self.clock_s += self.takes_s
        self.then()
        return super().status(ids)


@pytest.fixture
def element(elements: dict[str, FakeElement]) -> SlowElement:
    elements["site-a"] = slow = SlowElement()
    return slow


@pytest.fixture
def queue(element: SlowElement, make_queue: Callable[..., Queue]) -> Queue:
    return make_queue(max_pilots=100, max_queued_pilots=100, batch_size=10)


def fail(error: BaseException) -> Callable[[], None]:
    def failing() -> None:
        raise error

    return failing


def test_a_turn_goes_on_only_with_what_is_still_asked_for(
    queue: Queue, element: SlowElement, add_jobs: Callable[..., Any]
) -> None:
    add_jobs(50)
    director.plan_requests(timezone.now())
    # The places are promised to another queue while the first batch is under way.
    element.then = lambda: PressureRequest.objects.update(granted=15, ceiling=15)

    turn = submitter.serve(queue.pk, timezone.now())

    assert turn is not None
    assert turn.submitted == Pilot.objects.count() == 15
    assert element.calls.count("submit") == 2
    assert any("less is asked" in reason for reason in turn.reasons)


def test_a_turn_ends_at_once_when_the_demand_has_gone(
    queue: Queue, element: SlowElement, add_jobs: Callable[..., Any]
) -> None:
    add_jobs(50)
    director.plan_requests(timezone.now())
    element.then = lambda: PressureRequest.objects.update(granted=0, ceiling=0)

    turn = submitter.serve(queue.pk, timezone.now())

    assert turn is not None
    assert turn.submitted == 10


def test_a_turn_begins_no_batch_when_it_has_taken_long(
    queue: Queue, element: SlowElement, add_jobs: Callable[..., Any]
) -> None:
    add_jobs(50)
    director.plan_requests(timezone.now())
    element.takes_s = 61.0

    turn = submitter.serve(queue.pk, timezone.now(), clock=element.clock)

    assert turn is not None
    assert turn.submitted == 20
    assert any("120 s" in reason for reason in turn.reasons)


def test_a_pause_begins_when_the_answer_was_given_up(
    queue: Queue, element: SlowElement, add_jobs: Callable[..., Any]
) -> None:
    add_jobs(1)
    now = timezone.now()
    director.plan_requests(now)
    element.takes_s, element.then = 60.0, fail(Unreachable("no answer within 60 s"))

    submitter.serve(queue.pk, now, clock=element.clock)

    contact = ElementContact.objects.get(queue=queue, kind="submit")
    assert contact.next_at is not None
    assert contact.next_at >= now + timedelta(seconds=60 + 12)
    direct(now + timedelta(seconds=70))
    assert element.clock_s == 60.0
    assert reasons_of(queue)[0].startswith("back-off until")


@pytest.mark.parametrize("kind", ["submit", "poll"])
def test_who_uses_up_the_time_of_a_whole_task_is_left_alone_for_a_while(
    queue: Queue, element: SlowElement, add_jobs: Callable[..., Any], kind: str
) -> None:
    add_jobs(1)
    now = timezone.now()
    director.plan_requests(now)
    if kind == "poll":
        submitter.serve(queue.pk, now)
    element.takes_s, element.then = 240.0, fail(SoftTimeLimitExceeded())

    turn = submitter.serve if kind == "submit" else batch_poller.poll
    with pytest.raises(SoftTimeLimitExceeded):
        turn(queue.pk, now, clock=element.clock)

    contact = ElementContact.objects.get(queue=queue, kind=kind)
    assert "240 s" in contact.reason
    assert contact.next_at is not None
    assert contact.next_at > now + timedelta(seconds=250)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ({"max_pilots": 12}, "site limit 12: 12 pilots are there"),
        ({"max_cores": 12}, "site limit 12 cores: 12 are there"),
    ],
)
def test_two_queues_that_were_promised_the_same_places_do_not_get_them_twice(
    make_queue: Callable[..., Queue],
    add_jobs: Callable[..., Any],
    olga: User,
    limit: dict[str, int],
    told: str,
) -> None:
    first = make_queue(max_pilots=50, max_queued_pilots=50)
    spec = QueueSpec("other", "fake", {"system": "b"}, max_pilots=50, max_queued_pilots=50)
    configure_site(SiteSpec(name="site-a"), [spec], actor=Actor.person(olga))
    second = Queue.objects.get(name="other")
    PilotLimit.objects.create(scope="site", site=first.site, **limit)
    add_jobs(40)
    now = timezone.now()
    director.plan_requests(now)
    # As if the second one had been planned before the pilots of the first were made.
    PressureRequest.objects.update(granted=8, ceiling=8)

    turns = [submitter.serve(queue.pk, now) for queue in (first, second)]

    assert [turn and turn.submitted for turn in turns] == [8, 4]
    assert Pilot.objects.count() == 12
    assert told.replace("12 pilots are", "8 pilots are").replace("12 are", "8 are") in (
        turns[1].reasons if turns[1] else []
    )
    again = submitter.serve(second.pk, now)
    assert again is not None
    assert (again.submitted, again.reasons) == (0, [told])


def test_a_batch_system_that_does_not_answer_is_asked_nothing_more_in_that_turn(
    queue: Queue, element: SlowElement, add_jobs: Callable[..., Any]
) -> None:
    add_jobs(2)
    now = timezone.now()
    director.plan_requests(now)
    submitter.serve(queue.pk, now)
    long_ago = now - timedelta(days=2)
    over, _ = Pilot.objects.all()
    Pilot.objects.filter(pk=over.pk).update(state="done", token_sha256="x", ended_at=long_ago)
    element.calls.clear()
    element.then = fail(Unreachable("time-out"))

    batch_poller.poll(queue.pk, now)
    assert element.calls == []

    element.then = lambda: None
    batch_poller.poll(queue.pk, now)
    assert element.calls == ["status", "forget"]
