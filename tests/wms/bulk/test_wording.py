"""Wording of the reasons for which bulk operations skip objects or end them as failed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from tests import factories
from tests.wms.bulk.conftest import finish, outcomes
from wms.bulk.models import BulkOperation
from wms.core.actors import Actor
from wms.dags.services.dags import hold_dags
from wms.jobs.models import Job

Make = Callable[..., BulkOperation]


def reasons(operation: BulkOperation) -> set[str]:
    return {reason for _, reason in outcomes(operation).values()}


def test_another_users_object(people: SimpleNamespace, order: Make) -> None:
    operation = order(people.bob, "jobs", [factories.job(people.alice)], "hold")

    assert reasons(finish(operation)) == {
        "bob may not do this: it belongs to another user, and this needs the role shifter"
    }


def test_a_job_of_a_held_dag(people: SimpleNamespace, order: Make) -> None:
    dag = factories.running_dag(people.alice)
    hold_dags([dag.pk], actor=Actor.person(people.alice), reason="wait")
    jobs = Job.objects.filter(topic_key=dag.pk)

    operation = order(people.alice, "jobs", jobs, "release")

    assert reasons(finish(operation)) == {"its DAG is held: release that"}


def test_an_object_that_was_deleted(people: SimpleNamespace, order: Make) -> None:
    site = factories.site("Gone")
    operation = order(people.ada, "sites", [site], "ban")
    type(site).objects.filter(pk=site.pk).delete()

    assert reasons(finish(operation)) == {"there is no such site any more"}
