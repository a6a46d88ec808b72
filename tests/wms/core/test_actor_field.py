"""Names of actors are stored shortly, and read as they were written."""

from __future__ import annotations

import pytest
from django.db import connection

from tests import factories
from wms.core.actors import Actor
from wms.core.database.actor_field import actor_name, loop_name_in_sql, stored_actor
from wms.core.models import User
from wms.dags.engine.round import ENGINE
from wms.jobs.clusters.lifecycle import MATERIALISER
from wms.jobs.models import Job, LoggedJobEvent

PILOT = Actor.pilot("0b2f6a52-7c0e-4d0a-9d7a-3f1d2c4b5a69")


@pytest.mark.parametrize("actor", [ENGINE, MATERIALISER])
def test_a_loop_that_makes_jobs_is_stored_in_two_characters(actor: Actor) -> None:
    stored = stored_actor(actor.name)

    assert len(stored) == 2
    assert actor_name(stored) == actor.name


@pytest.mark.parametrize("name", ["alice", "system:director", "pilot:x", "", PILOT.name])
def test_any_name_is_read_as_it_was_written(name: str) -> None:
    assert actor_name(stored_actor(name)) == name


@pytest.mark.django_db
@pytest.mark.parametrize("name", [ENGINE.name, "alice", "system:director"])
def test_a_statement_reads_the_names_of_people_and_loops(name: str) -> None:
    with connection.cursor() as cursor:
        stored = stored_actor(name)
        cursor.execute(
            f"SELECT {loop_name_in_sql('given')} FROM (VALUES (%s)) AS x(given)", [stored]
        )
        assert cursor.fetchone() == (name,)


@pytest.mark.django_db
def test_the_log_of_a_job_names_the_engine_that_has_submitted_it(alice: User) -> None:
    dag = factories.running_dag(alice)
    job = Job.objects.filter(topic_key=dag.pk).earliest("pk")

    with connection.cursor() as cursor:
        cursor.execute("SELECT submitted_by FROM jobs_job WHERE id = %s", [job.pk])
        assert cursor.fetchone() == (stored_actor(ENGINE.name),)
    assert LoggedJobEvent.objects.get(job=job).actor == ENGINE.name
