"""Return of the database to an earlier state: pilots and ids of what it does not know any more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests import factories
from tests.factories import claim
from tests.wms.pilots.claiming import beat
from wms.core.actors import Actor
from wms.core.errors import InvalidInput
from wms.core.models import AuditEntry
from wms.core.restoration_models import Restoration
from wms.core.storage.current import current_store
from wms.jobs.models import Job, JobEvent
from wms.jobs.states import JobState
from wms.pilots.models import Pilot, PilotEvent
from wms.pilots.monitoring import monitor
from wms.pilots.pressure.backoff import Kind
from wms.pilots.pressure_models import ElementContact
from wms.pilots.protocol.attempt_refs import AttemptRef
from wms.pilots.states import PilotState
from wms.recovery import returning
from wms.recovery.account import reconcile
from wms.recovery.returning import note_return, tell_jobs

pytestmark = pytest.mark.django_db
ACTOR = Actor.system("test")


def test_a_return_keeps_apart_what_came_after_it_and_tells_each_open_job_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a job in the hands of a pilot, one that has ended, and two that wait.
    alice = factories.person("alice")
    pilot = factories.pilot()
    pending = factories.queued_pilot()
    over = factories.job(alice)
    factories.run_job(pilot)
    made_jobs = [factories.job(alice) for _ in range(3)]
    taken = claim(pilot)
    assert taken is not None
    held = taken.job
    waiting = [job for job in made_jobs if job.pk != held.pk]
    attempts = held.max_attempts
    ElementContact.objects.create(queue=pilot.queue, kind=Kind.POLL, seen_pilots=7)
    now = timezone.now()
    monkeypatch.setattr(returning, "_TOLD_AT_ONCE", 2)

    # When the database has gone back to a time of two days before, and that is noted twice.
    made = note_return(now, origin="a test", actor=ACTOR, now=now + timedelta(days=2))
    same = note_return(now, origin="a test", actor=ACTOR, now=now + timedelta(days=2))
    assert [tell_jobs(made, actor=ACTOR), tell_jobs(same, actor=ACTOR)] == [3, 0]

    # Then ids go on far behind those that were given since, once.
    later = factories.job(alice)
    assert (
        made_jobs[-1].pk + 3 * returning.IDS_OF_A_DAY
        < later.pk
        < made_jobs[-1].pk + 4 * returning.IDS_OF_A_DAY
    )
    # Each open job is told once; what has ended, and what came later, is not.
    told = JobEvent.objects.filter(event="restored").order_by("job_id")
    assert list(told.values_list("job_id", flat=True)) == [job.pk for job in made_jobs]
    assert over.pk not in told.values_list("job_id", flat=True)
    assert (Restoration.objects.count(), Restoration.objects.get().is_told) == (1, True)
    assert AuditEntry.objects.filter(action="go back in time").count() == 1
    # The pilot goes on with its job, takes no other, and its loss costs the job no attempt.
    assert Job.objects.get(pk=held.pk).max_attempts == attempts + 1
    answer = beat(pilot, [AttemptRef(held.pk, 1)])
    assert (answer.kill, answer.is_drained) == ((), True)
    assert claim(pilot) is None
    assert PilotEvent.objects.filter(event="drain").count() == 1
    assert Pilot.objects.get(pk=pending.pk).drain_reason == ""
    # Nor is a batch system doubted that does not know what it knew then.
    assert ElementContact.objects.get().seen_pilots == 0

    # The account names each open job of before, where it is.
    doubts = reconcile(current_store(), actor=ACTOR).doubts
    assert doubts is not None
    assert (doubts.in_hand.ids, doubts.silent.ids) == ((), (held.pk,))
    assert doubts.waiting.ids == tuple(job.pk for job in waiting)
    assert doubts.pending_pilots.ids == (pending.pk,)


def test_pilots_that_were_silent_then_have_their_time_again() -> None:
    pilot = factories.pilot()
    factories.job(factories.person("alice"))
    taken = claim(pilot)
    assert taken is not None
    Pilot.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    monitor.stall_silent(timezone.now())
    assert Job.objects.get(pk=taken.job.pk).state == JobState.STALLED

    note_return(timezone.now(), origin="a test", actor=ACTOR, now=timezone.now())

    assert Pilot.objects.get().state == PilotState.RUNNING
    assert Job.objects.get(pk=taken.job.pk).state == JobState.RUNNING
    assert monitor.give_up_stalled(timezone.now()) == 0


def test_a_time_to_come_is_no_return() -> None:
    now = timezone.now()

    with pytest.raises(InvalidInput):
        note_return(now + timedelta(seconds=1), origin="a test", actor=ACTOR, now=now)
    account = reconcile(current_store(), actor=ACTOR)
    assert (account.restoration, account.doubts, account.contents.count) == (None, None, 0)


def test_a_payload_that_the_database_does_not_know_is_stopped_and_its_job_waits() -> None:
    pilot = factories.pilot()
    job = factories.job(factories.person("alice"))
    now = timezone.now()
    note_return(now, origin="a test", actor=ACTOR, now=now)

    # The pilot took it after the state that came back.
    answer = beat(pilot, [AttemptRef(job.pk, 1)])

    assert answer.kill == (AttemptRef(job.pk, 1),)
    assert Job.objects.get(pk=job.pk).state == JobState.WAITING
