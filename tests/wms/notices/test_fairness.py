"""One receiver's trouble is nobody else's; floods, and what was told while a channel was off."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests import factories
from tests.wms.notices.hearing import START, SYSTEM, channel, failed_dag, happens, hears, later
from tests.wms.notices.receivers import Hook
from wms.core.actors import Actor
from wms.core.database import locks
from wms.core.database.sql import TAKE_FREE_LOCK
from wms.core.models import InboxEntry, User
from wms.dags.models import DagEvent
from wms.notices import fanout, occurrences, retention, sending, services, webhooks
from wms.notices.models import Channel, Condition, Delivery, Notice, Outgoing
from wms.sites.downtimes.services import add_downtime, cancel_downtimes


@pytest.fixture(autouse=True)
def _configured(configured: Callable[..., None]) -> None:
    """Every test here sends."""


def _delivery(of: Channel, minutes: int = 0, **values: object) -> Delivery:
    at = START + timedelta(minutes=minutes)
    return Delivery.objects.create(channel=of, **{"next_at": at, "created_at": at, **values})


def _bob_hears_of_his_dag(people: SimpleNamespace, hook: Hook) -> Channel:
    made = channel(people.bob, "webhook", url=hook.url)
    dag = factories.dag(people.bob)
    hears(people.bob, "dag", dag=dag)
    happens("fail", dag)
    return made


def test_an_address_that_cannot_be_resolved_stops_nobody_elses_messages(
    people: SimpleNamespace, hook: Hook
) -> None:
    broken = channel(people.alice, "webhook", url="http://127.0.0.1:9/")
    # As it may stand there from before such names were refused.
    Channel.objects.filter(pk=broken.pk).update(url="http://hooks..example.org/")
    failed_dag(people)
    bobs = _bob_hears_of_his_dag(people, hook)

    later()

    assert Delivery.objects.get(channel=bobs).state == "sent"
    assert Delivery.objects.get(channel=broken).state == "waiting"
    assert "host" in Delivery.objects.get(channel=broken).last_error


def test_a_mistake_of_ours_with_one_message_stops_no_other(
    people: SimpleNamespace, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = channel(people.alice, "webhook", url="http://127.0.0.1:9/secret")
    failed_dag(people)
    bobs = _bob_hears_of_his_dag(people, hook)
    post = webhooks.post

    def fails(call: webhooks.WebhookCall, **how: tuple[str, ...]) -> webhooks.SendResult:
        if call.target.port == 9:
            raise ZeroDivisionError(call.target.path)
        return post(call, **how)

    monkeypatch.setattr(webhooks, "post", fails)

    later()

    assert Delivery.objects.get(channel=bobs).state == "sent"
    told = Delivery.objects.get(channel=broken)
    assert told.state == "waiting"
    assert told.last_error.endswith("ZeroDivisionError")


def test_an_event_that_cannot_be_told_keeps_no_other_back(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = failed_dag(people), failed_dag(people)
    of_event = occurrences._of_dag_event

    def breaks(event: DagEvent) -> occurrences.Occurrence:
        if event.dag_id == bad.pk:
            raise ZeroDivisionError
        return of_event(event)

    monkeypatch.setattr(occurrences, "_of_dag_event", breaks)

    fanout.run_cycle(START)

    assert [notice.subject_id for notice in Notice.objects.all()] == [str(good.pk)]
    assert not InboxEntry.objects.filter(topic__in=fanout.TOPICS).exists()


def test_a_channel_with_hundreds_of_messages_keeps_no_other_from_its_turn(
    people: SimpleNamespace,
) -> None:
    many, one = (channel(user) for user in (people.alice, people.bob))
    for _ in range(300):
        _delivery(many)
    _delivery(one, minutes=1)

    claimed = sending.claim(START + timedelta(minutes=2), [many.pk, one.pk])

    assert sorted(row.channel_id for row in claimed) == [many.pk, one.pk]


def test_a_channel_that_another_process_sends_to_is_left_to_it(people: SimpleNamespace) -> None:
    taken, free = (channel(user) for user in (people.alice, people.bob))
    for each in (taken, free, taken):
        _delivery(each)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            name = f"notice channel {taken.pk}"
            cursor.execute(TAKE_FREE_LOCK, [[locks._key(name)], locks._NAMESPACE])

        assert sending.send_due(START + timedelta(minutes=2)) == 1
    finally:
        other.close()

    tried = Delivery.objects.filter(attempts__gt=0)
    assert [row.channel_id for row in tried] == [free.pk]


def test_a_channel_that_fails_rests_as_a_whole_and_ever_longer(
    people: SimpleNamespace,
) -> None:
    dead = channel(people.alice, "webhook", url="http://127.0.0.1:9/")
    for _ in range(5):
        _delivery(dead, is_test=False)
    Outgoing.objects.bulk_create(
        Outgoing(notice=_notice(people.alice, str(n)), channel=dead, delivery=row, created_at=START)
        for n, row in enumerate(Delivery.objects.all())
    )

    tried = sum(sending.send_due(START + timedelta(seconds=10 * step)) for step in range(60))

    assert tried == 5, "at once, then after 30 s, 1, 2 and 4 min, whichever of them"
    assert set(Delivery.objects.values_list("attempts", flat=True)) == {1}


def _notice(user: User, key: str) -> Notice:
    dag = factories.dag(user, name=f"d{key}.dag")
    return Notice.objects.create(
        user=user, kind="failed", subject_kind="dag", subject_id=str(dag.pk), key=key,
        title="It failed", happened_at=START, created_at=START,
    )  # fmt: skip


def test_a_message_that_is_never_taken_switches_off_no_webhook_that_takes_others(
    people: SimpleNamespace,
) -> None:
    made = channel(people.alice, "webhook", url="http://127.0.0.1:9/")
    refused = _delivery(made)
    _delivery(made, state="sent", ended_at=START + timedelta(hours=20))

    sending.record(refused, webhooks.SendResult("answered 400"), now=START + timedelta(hours=25))

    refused.refresh_from_db()
    made.refresh_from_db()
    assert (refused.state, made.is_enabled) == ("given-up", True)


@pytest.mark.parametrize("pace", ["now", "hourly"])
def test_a_flood_is_one_message_however_many_there_are(
    people: SimpleNamespace, hook: Hook, monkeypatch: pytest.MonkeyPatch, pace: str
) -> None:
    monkeypatch.setattr(sending, "_PACKED", 3)
    made = channel(people.alice, "webhook", url=hook.url, pace=pace)
    since = START - timedelta(hours=1)
    Outgoing.objects.bulk_create(
        Outgoing(notice=_notice(people.alice, str(n)), channel=made, created_at=since)
        for n in range(7)
    )
    for _ in range(5):  # there is no room for single ones
        _delivery(made, minutes=-1, thread="dag:1", state="sent", ended_at=START)

    for seconds in (0, 10, 20):
        later(seconds=seconds)

    [request] = hook.received
    body = json.loads(request.body)
    assert len(body["notices"]) + body["left_out"] == 7


def test_what_was_told_while_a_channel_went_off_is_not_sent_when_it_is_on_again(
    people: SimpleNamespace, hook: Hook
) -> None:
    made = channel(people.alice, "webhook", url=hook.url)
    actor = Actor.person(people.alice)
    services.change_channel(made.pk, is_enabled=False, actor=actor)
    # A reader that had seen it on.
    notice = _notice(people.alice, "late")
    Outgoing.objects.create(notice=notice, channel=made, created_at=START)

    services.change_channel(made.pk, is_enabled=True, actor=actor)
    later()

    assert hook.received == []
    assert not Outgoing.objects.exists()


def test_much_that_is_old_is_forgotten_in_steps(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_AT_ONCE", 2)
    of = channel(people.alice)
    for _ in range(5):
        _delivery(of, minutes=-31 * 24 * 60, state="sent")

    assert retention.run_cycle(START) == {"notices": 0, "deliveries": 5}
    assert not Delivery.objects.exists()


def test_a_downtime_that_was_cancelled_long_ago_is_not_looked_at_for_ever(db: None) -> None:
    site = factories.site("UW")
    row = add_downtime(
        site.name, start=START, end=START + timedelta(days=60), reason="move", actor=SYSTEM,
        now=START,
    )  # fmt: skip
    fanout.run_cycle(START)
    cancel_downtimes([row.pk], actor=SYSTEM, now=START + timedelta(hours=1))
    fanout.run_cycle(START + timedelta(hours=1))

    fanout.run_cycle(START + timedelta(days=5))
    with CaptureQueriesContext(connection) as queries:
        fanout.run_cycle(START + timedelta(days=6))

    assert not Condition.objects.filter(kind="downtime").exists()
    assert not [each for each in queries if 'INTO "notices_condition"' in each["sql"]]
