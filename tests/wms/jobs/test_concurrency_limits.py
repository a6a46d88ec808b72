"""Concurrency limits of jobs: exact at the claim, whatever else is claimed."""

from __future__ import annotations

import pytest
from django.db import transaction

from matching.task_queues.needs import Needs
from matching.task_queues.resources import Resource
from tests.wms.pilots.claiming import in_threads
from wms.accounting.models import ConcurrencyLimit
from wms.core.actors import Actor
from wms.core.models import User
from wms.jobs.concurrency_limits import ConcurrencyLimits, reached_by_waiting_jobs
from wms.jobs.models import Attempt
from wms.jobs.operations import bind_to_pilot, create_workspace, submit_jobs
from wms.jobs.specs import JobSpec
from wms.taskqueues.operations import Claimed, claim

SYSTEM = Actor.system("test")


def submit(owner: User, *limits: str, count: int = 1) -> list[int]:
    spec = JobSpec(name="n", executable="/bin/true", needs=Needs.of("alice", limits=limits))
    workspace = create_workspace(owner, {})
    return submit_jobs([spec] * count, owner=owner, workspace=workspace, actor=SYSTEM)


def claimed() -> Claimed | None:
    found = claim(
        Resource("site-a", 86_400, cores=8, memory_mb=8000),
        refuses=ConcurrencyLimits().refuses,
        refuses_any=False,
    )
    if found is not None:
        bind_to_pilot(found, pilot_id=1, site_name="site-a", host="h", free_cores=1, actor=SYSTEM)
    return found


@pytest.mark.django_db
def test_no_more_jobs_run_than_a_limit_allows(alice: User) -> None:
    ConcurrencyLimit.objects.create(name="db", maximum=5)
    submit(alice, "db:2", count=4)
    [free] = submit(alice)

    drawn = [claimed() for _ in range(4)]

    assert sum(each is not None and bool(each.needs.limits) for each in drawn) == 2
    assert free in {each.job_id for each in drawn if each is not None}
    [(kind, reason)] = reached_by_waiting_jobs()
    assert kind.limit == "db:2"
    assert reason
    Attempt.objects.filter(limits__db=2).order_by("pk")[:1].get()
    Attempt.objects.filter(limits__isnull=False).update(outcome="failed")
    assert claimed() is not None


@pytest.mark.django_db
def test_a_family_of_names_has_its_maximum_each_name_for_itself(alice: User) -> None:
    ConcurrencyLimit.objects.create(name="db.*", maximum=1)
    submit(alice, "db.read", count=2)
    submit(alice, "db.write", count=2)
    submit(alice, "unknown", count=2)

    drawn = [found for _ in range(6) if (found := claimed()) is not None]

    names = sorted(name for each in drawn for name in each.needs.limits)
    assert names == ["db.read", "db.write", "unknown", "unknown"]


@pytest.mark.django_db(transaction=True)
def test_claims_that_race_for_one_limit_never_exceed_it(alice: User) -> None:
    ConcurrencyLimit.objects.create(name="db", maximum=5)
    submit(alice, "db:2", count=10)
    drawn: list[Claimed | None] = []

    def race() -> None:
        with transaction.atomic():
            drawn.append(claimed())

    in_threads(*[race] * 10)

    assert sum(each is not None for each in drawn) == 2
    assert Attempt.objects.filter(limits__db=2, outcome="").count() == 2
