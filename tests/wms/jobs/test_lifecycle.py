"""Transitions of jobs: one statement, whoever else is at the same jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, connections, transaction

from matching.task_queues.needs import Needs
from tests.statements import carried_out_by
from wms.core.actors import Actor
from wms.core.errors import ReasonRequired
from wms.core.models import InboxEntry, User
from wms.core.statemachine import Increment
from wms.jobs import lifecycle
from wms.jobs.models import Job, JobEvent, Workspace
from wms.jobs.operations import create_workspace, submission
from wms.jobs.specs import JobSpec

SYSTEM = Actor.system("test")


@pytest.fixture
def make_jobs(db: None) -> Callable[..., list[int]]:
    alice = User.objects.create_user("alice")
    workspace: Workspace = create_workspace(alice, {})
    spec = JobSpec(name="true", executable="/bin/true", needs=Needs.of("alice"))

    def make(number: int, topic: str = "") -> list[int]:
        about = {"owner": alice, "workspace": workspace, "actor": SYSTEM}
        with submission(**about, topic=topic, topic_key=7) as add:
            return add([spec] * number)

    return make


def test_many_jobs_move_with_their_events_in_one_statement(make_jobs) -> None:
    ids = make_jobs(3)
    facts = {ids[1]: {"why": "100 % sure"}}

    sent = carried_out_by(
        lambda: lifecycle.apply("kill", [*ids, 0], actor=SYSTEM, reason="50 %", facts=facts)
    )

    # The other one deletes their checkpoints.
    assert sent == ["SELECT", "DELETE"]
    assert set(Job.objects.values_list("state", "state_reason")) == {("killed", "50 %")}
    events = JobEvent.objects.filter(event="kill").order_by("pk")
    assert list(events.values_list("job_id", "from_state", "to_state", "reason", "facts")) == [
        (pk, "waiting", "killed", "50 %", facts.get(pk, {})) for pk in ids
    ]


def test_who_submitted_a_job_is_told_the_event_that_was_written(make_jobs) -> None:
    (told,) = make_jobs(1, topic="test")
    (silent,) = make_jobs(1)

    lifecycle.apply("kill", [told, silent], actor=SYSTEM, reason="test")

    event = JobEvent.objects.get(job_id=told, event="kill")
    entries = InboxEntry.objects.filter(topic="test")
    assert list(entries.values_list("key", "subject_id")) == [(7, event.pk)]


def test_a_reason_that_is_missing_spoils_no_transaction(make_jobs) -> None:
    (pk,) = make_jobs(1)

    with transaction.atomic():
        with pytest.raises(ReasonRequired):
            lifecycle.apply("hold", [pk], actor=SYSTEM)
        lifecycle.apply("hold", [pk], actor=SYSTEM, reason="given")

    assert Job.objects.get(pk=pk).state == "held"


def somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_jobs_of_another_transition_leaves_those_that_it_moved(make_jobs) -> None:
    """Given two of three jobs that are being killed, when all three are held meanwhile."""
    ids = make_jobs(3)
    applied = []

    def hold() -> None:
        try:
            applied.append(lifecycle.apply("hold", ids, actor=SYSTEM, reason="test"))
        finally:
            connections.close_all()

    waiting = threading.Thread(target=hold)
    with transaction.atomic():
        lifecycle.apply("kill", ids[:2], actor=SYSTEM, reason="test")
        waiting.start()
        while waiting.is_alive() and not somebody_waits_for_a_lock():
            pass
    waiting.join()

    assert (applied[0].changed, applied[0].skipped) == ([ids[2]], ids[:2])
    states = Job.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["killed", "killed", "held"]
    assert JobEvent.objects.filter(event="hold").count() == 1


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_a_job_changes_it_as_it_is_then(make_jobs) -> None:
    """Given a job that has been changed and not committed, when it is held."""
    (pk,) = make_jobs(1)

    def hold() -> None:
        try:
            lifecycle.apply("hold", [pk], actor=SYSTEM, reason="test", hold_count=Increment())
        finally:
            connections.close_all()

    waiting = threading.Thread(target=hold)
    with transaction.atomic():
        Job.objects.filter(pk=pk).update(hold_count=5)
        waiting.start()
        while waiting.is_alive() and not somebody_waits_for_a_lock():
            pass
    waiting.join()

    assert Job.objects.get(pk=pk).hold_count == 6
