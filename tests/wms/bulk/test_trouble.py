"""What comes between an operation and its objects: other sessions, limits, mistakes of ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests import factories
from tests.wms.bulk.conftest import finish, outcomes
from wms.actions.actions import Action, InBulk
from wms.actions.arguments import Order
from wms.actions.jobs import JOBS
from wms.bulk import execution, services
from wms.bulk.models import BulkOperation
from wms.bulk.preview import preview_of
from wms.bulk.pruning import forget
from wms.bulk.services import Confirmation, Selection, confirm, freeze, retry, stop
from wms.core.actors import Actor
from wms.core.errors import Conflict, NotFound
from wms.core.models import User
from wms.jobs.models import Job

Make = Callable[..., BulkOperation]
_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def _frozen(owner: User, by: User, count: int) -> BulkOperation:
    jobs = [factories.job(owner, name=f"job{number}") for number in range(count)]
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs])
    return freeze(Selection("jobs", rows), action="hold", actor=Actor.person(by))


def _confirmed(by: User, operation: BulkOperation) -> BulkOperation:
    said = Confirmation(reason="wait", typed=operation.frozen_count)
    return confirm(operation.pk, said, actor=Actor.person(by))


def _wait_until_locked_out() -> None:
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_WAITING)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)


def test_samples_of_a_preview_say_what_one_may_not_do(people: SimpleNamespace) -> None:
    operation = _frozen(people.bob, people.alice, 2)

    found = preview_of(operation, people.alice)

    assert (found.fitting, found.skipped) == (0, [(JOBS.refusal, 2)])
    assert [sample.obstacle for sample in found.samples] == [JOBS.refusal] * 2


def test_what_is_gone_is_skipped(people: SimpleNamespace, order: Make) -> None:
    site = factories.site("Gone")
    operation = order(people.ada, "sites", [site], "ban")
    type(site).objects.filter(pk=site.pk).delete()

    [(outcome, reason)] = outcomes(finish(operation)).values()
    assert outcome == "skipped"
    assert "no such site" in reason


def test_a_service_that_tells_of_more_than_it_was_asked_for_is_not_counted_twice(
    people: SimpleNamespace,
) -> None:
    jobs = [factories.job(people.alice, name=f"job{number}") for number in range(2)]

    def call(ids: object, order: Order) -> dict[int, str]:
        return {job.pk: "" for job in jobs}

    action = Action("hold", "Hold", bulk=InBulk("", call))
    order = Order(Actor.person(people.alice), "wait")

    assert execution._act_on_batch(JOBS, action, [jobs[0].pk], order).keys() == {jobs[0].pk}


def test_a_preview_that_was_forgotten_meanwhile_is_told_and_not_begun(
    people: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = _frozen(people.alice, people.alice, 1)
    # As a sixth preview does it, between the look at this one and its lock.
    monkeypatch.setattr(services, "_skip_unmatched", lambda *_: forget([operation.pk]))

    with pytest.raises(NotFound, match=str(operation.pk)):
        _confirmed(people.alice, operation)


def test_a_batch_that_always_goes_wrong_gets_smaller_until_it_is_one_object_that_failed(
    people: SimpleNamespace, order: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [factories.job(people.alice, name=f"job{number}") for number in range(2)]
    operation = order(people.alice, "jobs", jobs, "hold")
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=5)
    outcomes_of = execution._outcomes

    def broken(kind: object, action: object, ids: list[int], order: object) -> object:
        if jobs[0].pk in ids:
            raise ZeroDivisionError
        return outcomes_of(kind, action, ids, order)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "_outcomes", broken)
    for _ in range(4):
        execution.run_cycle(timezone.now())

    operation.refresh_from_db()
    assert (operation.state, operation.done_count, operation.failed_count) == ("done", 1, 1)
    outcome, reason = outcomes(operation)[jobs[0].pk]
    assert (outcome, reason) == ("failed", execution._INTERNAL_ERROR)


@pytest.mark.django_db(transaction=True)
def test_what_the_last_batch_of_a_stopped_operation_has_is_not_tried_again() -> None:
    people = factories.people()
    operation = _confirmed(people.alice, _frozen(people.alice, people.alice, 4))
    actor = Actor.person(people.alice)
    BulkOperation.objects.filter(pk=operation.pk).update(batch_limit=2, state="running")
    taken, go_on = threading.Event(), threading.Event()

    def one_batch() -> None:
        with transaction.atomic():
            pending = operation.items.filter(outcome="pending").order_by("pk")
            list(pending.select_for_update()[:2])
            taken.set()
            go_on.wait()
            execution.run_batch(operation.pk)
        connection.close()

    thread = threading.Thread(target=one_batch)
    thread.start()
    taken.wait()
    try:
        stop(operation.pk, actor=actor)
        with pytest.raises(Conflict, match="under way"):
            retry(operation.pk, actor=actor)
    finally:
        go_on.set()
        thread.join()

    assert retry(operation.pk, actor=actor).frozen_count == 4


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_was_stopped_before_it_had_its_objects_leaves_them() -> None:
    people = factories.people()
    operation = _confirmed(people.alice, _frozen(people.alice, people.alice, 2))

    def one_batch() -> None:
        execution.run_batch(operation.pk)
        connection.close()

    thread = threading.Thread(target=one_batch)
    with transaction.atomic():
        stop(operation.pk, actor=Actor.person(people.alice))
        thread.start()
        _wait_until_locked_out()  # the batch has read that the operation goes on
    thread.join()

    operation.refresh_from_db()
    assert (operation.state, operation.done_count) == ("stopped", 0)
    assert not Job.objects.filter(state="held").exists()


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_the_database_cuts_off_is_tried_with_fewer_objects() -> None:
    people = factories.people()
    operation = _confirmed(people.alice, _frozen(people.alice, people.alice, 2))
    locked, go_on = threading.Event(), threading.Event()

    def have_the_jobs() -> None:
        with transaction.atomic():
            list(Job.objects.select_for_update())
            locked.set()
            go_on.wait()
        connection.close()

    thread = threading.Thread(target=have_the_jobs)
    thread.start()
    locked.wait()
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '100ms'")
    try:
        execution.run_cycle(timezone.now())
    finally:
        go_on.set()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")

    operation.refresh_from_db()
    assert (operation.batch_limit, operation.done_count) == (100, 0)
    assert finish(operation).done_count == 2
