"""What leaves the portal: when, how often, with which id, and when it is given up."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from tests import factories
from tests.wms.notices.hearing import START, channel, failed_dag, happens, hears, later, told
from tests.wms.notices.receivers import Hook
from wms.core.actors import Actor
from wms.core.models import AuditEntry
from wms.notices import retention, sending, services
from wms.notices.models import Channel, Delivery, Notice, Outgoing

Configured = Callable[..., None]


@pytest.fixture(autouse=True)
def _configured(configured: Configured) -> None:
    """Every test here sends."""


def test_a_webhook_gets_what_happened_with_its_id(people: SimpleNamespace, hook: Hook) -> None:
    channel(people.alice, "webhook", url=hook.url)
    dag = failed_dag(people)

    later()

    [request] = hook.received
    delivery = Delivery.objects.get()
    assert delivery.state == "sent"
    assert request.path == "/in?token=hidden"
    assert request.headers["Pilotage-Delivery"] == str(delivery.pk)
    assert request.headers["Pilotage-Type"] == "notice"
    body = json.loads(request.body)
    assert body["id"] == str(delivery.pk)
    [notice] = body["notices"]
    assert notice["title"] == f"DAG {dag.pk} (analysis) has failed"
    assert notice["subject"] == {
        "kind": "dag", "id": str(dag.pk), "url": f"http://127.0.0.1:8000/dags/{dag.pk}/"
    }  # fmt: skip


@pytest.mark.slow
def test_a_delivery_is_tried_again_in_growing_pauses_with_the_same_id(
    people: SimpleNamespace, hook: Hook
) -> None:
    hook.status = 500
    channel(people.alice, "webhook", url=hook.url)
    failed_dag(people)

    for seconds in range(0, 600, 10):
        later(seconds=seconds)
    tries = len(hook.received)
    hook.status = 200
    for minutes in range(10, 20):
        later(minutes=minutes)

    assert tries == 5, "at once, then after 30 s, 1, 2 and 4 min"
    assert len({request.headers["Pilotage-Delivery"] for request in hook.received}) == 1
    assert len(hook.received) == 6
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("sent", 6, "")


@pytest.mark.slow
def test_after_a_day_in_vain_a_webhook_is_switched_off_and_its_user_told(
    people: SimpleNamespace, hook: Hook
) -> None:
    hook.status = 500
    made = channel(people.alice, "webhook", url=hook.url)
    failed_dag(people)
    later()
    failed_dag(people)

    for hours in range(1, 30):
        later(hours=hours)

    made.refresh_from_db()
    assert not made.is_enabled
    for fact in ("24 hours", "500"):
        assert fact in made.off_reason
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["dropped", "given-up"]
    assert not Outgoing.objects.filter(delivery=None).exists()
    notice = Notice.objects.get(user=people.alice, kind="switched-off")
    assert notice.text == made.off_reason


def test_one_dead_webhook_holds_nobody_up(
    people: SimpleNamespace, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_SENT_AT_ONCE", 2)
    dead = channel(people.alice, "webhook", url="http://127.0.0.1:9/")
    for _ in range(4):
        failed_dag(people)
    later()
    bobs = channel(people.bob, "webhook", url=hook.url)
    hears(people.bob, "dag", dag=(dag := factories.dag(people.bob)))
    happens("fail", dag)

    later()

    assert Delivery.objects.filter(channel=bobs, state="sent").count() == 1
    assert Delivery.objects.filter(channel=dead, state="sent").count() == 0


def test_with_another_key_of_the_portal_nothing_is_sent_and_the_log_says_why(
    people: SimpleNamespace, hook: Hook, configured: Configured
) -> None:
    made = channel(people.alice, "webhook", url=hook.url)
    failed_dag(people)
    configured(SECRET_KEY="another key " * 5)

    later()
    refused = Delivery.objects.get()
    services.renew_secret(made.pk, actor=Actor.person(people.alice))
    later(minutes=1)

    assert refused.last_error.endswith("renew the secret")
    assert len(hook.received) == 1
    assert Delivery.objects.get().state == "sent"


def test_what_is_old_is_forgotten_but_not_what_has_still_to_be_sent(
    people: SimpleNamespace,
) -> None:
    row = channel(people.alice)
    days = {"sent": (29, 31), "waiting": (31,)}
    for state, ages in days.items():
        for age in ages:
            at = START - timedelta(days=age)
            Delivery.objects.create(channel=row, state=state, created_at=at, next_at=at)
    for age in (89, 91):
        Notice.objects.create(
            user=people.alice, kind="banned", subject_kind="site", subject_id="UW", key=str(age),
            title="Site UW is banned", happened_at=START, created_at=START - timedelta(days=age),
        )  # fmt: skip

    retention.run_cycle(START)

    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["sent", "waiting"]
    assert Notice.objects.get().key == "89"


def test_a_test_is_sent_once_and_tells_why_it_failed(people: SimpleNamespace, hook: Hook) -> None:
    hook.status = 403
    made = channel(people.alice, "webhook", url=hook.url)

    with time_machine.travel(START, tick=False):
        services.send_test(made.pk, actor=Actor.person(people.alice), now=timezone.now())
    later()
    later(hours=30)

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.last_error) == ("given-up", "answered 403")
    assert [request.headers["Pilotage-Type"] for request in hook.received] == ["test"]
    made.refresh_from_db()
    assert made.is_enabled, "a test that fails switches nothing off"


def test_after_a_death_while_sending_it_is_sent_again_with_the_same_id(
    people: SimpleNamespace, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel(people.alice, "webhook", url=hook.url)
    failed_dag(people)

    def die(*_: object, **__: object) -> None:
        raise _Killed

    with monkeypatch.context() as context:
        context.setattr(sending, "record", die)
        with pytest.raises(_Killed):
            later()
    later(seconds=29)
    later(seconds=31)

    assert len(hook.received) == 2, "not before its pause is over"
    assert len({request.headers["Pilotage-Delivery"] for request in hook.received}) == 1
    assert Delivery.objects.get().state == "sent"


class _Killed(Exception):
    """The process is no more."""


@pytest.mark.slow
def test_a_sender_that_dies_at_any_statement_loses_nothing(
    people: SimpleNamespace, hook: Hook
) -> None:
    """Statement after statement, the process dies there; then it is started again."""
    channel(people.alice, "webhook", url=hook.url)
    place = 0
    while True:
        # Each time an hour later, so that nothing is held back as a flood.
        at = START + timedelta(hours=place)
        dag = failed_dag(people)
        told(people.alice, now=at)
        has_died = _dies_at(place, at)

        for minutes in range(1, 4):
            sending.run_cycle(at + timedelta(minutes=minutes))

        ids = {
            json.loads(request.body)["id"]
            for request in hook.received
            if f"DAG {dag.pk} " in request.body.decode()
        }
        assert len(ids) == 1, f"killed at statement {place}"
        if not has_died:
            break
        place += 1
    assert place > 5


def _dies_at(place: int, now: datetime) -> bool:
    seen = iter(range(10**6))

    def kill(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        if next(seen) == place:
            raise _Killed
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(kill):
            sending.run_cycle(now)
    except _Killed:
        return True
    return False


def test_secrets_and_addresses_are_in_no_log_and_no_audit(
    people: SimpleNamespace, hook: Hook, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.status = 500
    made = services.add_channel("webhook", url=hook.url, actor=Actor.person(people.alice))
    failed_dag(people)

    later()

    audit = " ".join(map(str, AuditEntry.objects.values_list("target", "facts")))
    written = capsys.readouterr()
    everything = audit + written.out + written.err + Delivery.objects.get().last_error
    assert "127.0.0.1" in audit
    assert "hidden" not in everything
    assert made.secret not in everything
    row = Channel.objects.get(pk=made.row.pk)
    assert made.secret not in str(vars(row)), "no table holds it"
