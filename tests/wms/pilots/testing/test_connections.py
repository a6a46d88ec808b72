"""Tests of a queue's connection: asked for once, answered with a cause, audited."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.utils import timezone

from tests.wms.pilots.fake_element import FakeElement
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound, NotPermitted
from wms.core.models import AuditEntry, User
from wms.elements.protocol import BadSettings, Refused, Unreachable
from wms.pilots.connection_models import ConnectionTest
from wms.pilots.testing.connections import ask_connection_test, run_connection_test
from wms.sites.models import Queue


def test_a_batch_system_that_answers_tells_its_places(
    make_queue: Callable[..., Queue], elements: dict[str, FakeElement], sam: User
) -> None:
    queue = make_queue()

    ask_connection_test(queue.pk, actor=Actor.person(sam), reason="new login")
    run_connection_test(queue.pk)

    test = ConnectionTest.objects.get()
    assert (test.outcome, test.total, test.free) == ("answered", 100, 100)
    assert elements["site-a"].calls == ["capacity"]
    entry = AuditEntry.objects.get(action="test connection")
    assert (entry.target, entry.actor, entry.reason) == ("queue site-a/main", "sam", "new login")


@pytest.mark.parametrize(
    ("error", "outcome", "words"),
    [
        (Refused("no such partition"), "refused", "no such partition"),
        (Unreachable("no route to it"), "unreachable", "no route to it"),
        (BadSettings("partition", "is not there"), "settings", "partition: is not there"),
        (SoftTimeLimitExceeded(), "timeout", "no answer within 50 s"),
        (ValueError("odd"), "fault", "ValueError: odd"),
    ],
)
def test_a_test_that_fails_tells_its_cause(
    make_queue: Callable[..., Queue], elements: dict[str, FakeElement], sam: User,
    error: Exception, outcome: str, words: str,
) -> None:  # fmt: skip
    queue = make_queue()
    elements["site-a"] = FakeElement()
    elements["site-a"].fail_with = error

    ask_connection_test(queue.pk, actor=Actor.person(sam))
    run_connection_test(queue.pk)

    test = ConnectionTest.objects.get()
    assert (test.outcome, test.detail, test.is_good) == (outcome, words, False)


def test_a_second_test_is_refused_until_the_first_ends_or_is_lost(
    make_queue: Callable[..., Queue], sam: User
) -> None:
    queue, now = make_queue(), timezone.now()
    ask_connection_test(queue.pk, actor=Actor.person(sam), now=now)

    with pytest.raises(Conflict):
        ask_connection_test(queue.pk, actor=Actor.person(sam), now=now + timedelta(seconds=99))
    again = ask_connection_test(queue.pk, actor=Actor.person(sam), now=now + timedelta(seconds=101))

    assert again.asked_at == now + timedelta(seconds=101)


def test_one_that_no_worker_took_is_told_to_be_lost(
    make_queue: Callable[..., Queue], sam: User
) -> None:
    queue, now = make_queue(), timezone.now()

    fresh = ask_connection_test(queue.pk, actor=Actor.person(sam), now=now)
    assert not fresh.is_lost
    fresh.asked_at = now - timedelta(seconds=101)
    assert fresh.is_lost
    run_connection_test(queue.pk)
    assert not ConnectionTest.objects.get().is_lost


def test_who_may_not_steer_the_site_tests_nothing(
    make_queue: Callable[..., Queue], alice: User, elements: dict[str, FakeElement]
) -> None:
    queue = make_queue()

    with pytest.raises(NotPermitted):
        ask_connection_test(queue.pk, actor=Actor.person(alice))
    with pytest.raises(NotFound):
        ask_connection_test(queue.pk + 1, actor=Actor.system("test"))
    run_connection_test(queue.pk)

    assert not ConnectionTest.objects.exists()
    assert "site-a" not in elements or elements["site-a"].calls == []
