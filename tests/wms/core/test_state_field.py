"""States of events are stored as letters, by the ORM and by SQL, and read by their names."""

from __future__ import annotations

import pytest
from django.db import connection

from tests import factories
from wms.core.actors import Actor
from wms.core.database import state_field
from wms.core.models import User
from wms.dags.states import DagState, NodeState
from wms.jobs.models import Job, JobEvent
from wms.jobs.operations import kill_jobs
from wms.jobs.states import JobState


def stored(job: Job) -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT from_state, to_state FROM jobs_jobevent WHERE job_id = %s ORDER BY id", [job.pk]
        )
        return list(cursor.fetchall())


def test_every_state_is_read_as_it_was_written() -> None:
    names = {*JobState.values, *NodeState.values, *DagState.values, ""}

    letters = {state_field.stored_state(name) for name in names}

    assert len(letters) == len(names)
    assert {state_field.state_name(each) for each in letters} == names
    assert {state_field.state_name(name) for name in names} == names


@pytest.mark.django_db
def test_events_of_statements_by_hand_are_stored_as_those_of_the_orm(alice: User) -> None:
    job = factories.job(alice)
    kill_jobs([job.pk], actor=Actor.system("test"), reason="test")
    by_hand = stored(job)
    event = JobEvent.objects.get(job=job)

    event.save(update_fields=["from_state", "to_state"])

    assert by_hand == stored(job) == [("w", "k")]
    assert (event.from_state, event.to_state) == ("waiting", "killed")


@pytest.mark.django_db
def test_events_of_before_are_read_by_their_names(alice: User) -> None:
    job = factories.job(alice)
    kill_jobs([job.pk], actor=Actor.system("test"), reason="test")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_jobevent SET from_state = 'received', to_state = 'waiting'"
            " WHERE job_id = %s",
            [job.pk],
        )

    event = JobEvent.objects.get(job=job)

    assert (event.from_state, event.to_state) == ("received", "waiting")
    assert JobEvent.objects.values_list("to_state", flat=True)[0] == "waiting"
