"""Services of clusters and of their jobs: who may, what is in the way, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.wms.jobs.clusters.samples import PLAIN, SYSTEM, cycle, submit
from wms.accounting.models import AccountingGroup, Frontend
from wms.actions.jobs import JOBS
from wms.core.actors import Actor
from wms.core.errors import Conflict, InvalidInput, NotFound, NotPermitted, ReasonRequired
from wms.core.models import AuditEntry, User
from wms.jobs import lifecycle
from wms.jobs import services as steering
from wms.jobs.clusters import selectors, services
from wms.jobs.clusters.rerun import rerun_cluster
from wms.jobs.clusters.submit import submission_warnings
from wms.jobs.models import Attempt, Cluster, ClusterEvent, Job
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue, Site
from wms.taskqueues.models import WaitingJob
from wms.taskqueues.operations import withdraw

MOVES = [services.hold_clusters, services.remove_clusters]


def cluster_of(owner: User, size: int = 3, **options: Any) -> Cluster:
    return submit(owner, f"{PLAIN}queue {size}\n", options=options).cluster


@pytest.mark.parametrize("service", MOVES)
def test_only_the_owner_and_shifters_steer_a_cluster(
    alice: User, charlie: User, sam: User, service: Callable[..., Any]
) -> None:
    cluster = cluster_of(alice)

    with pytest.raises(NotPermitted):
        service([cluster.pk], actor=Actor.person(charlie), reason="x")
    with pytest.raises(ReasonRequired):
        service([cluster.pk], actor=Actor.person(alice), reason=" ")
    with pytest.raises(NotFound):
        service([cluster.pk + 1000], actor=Actor.person(alice), reason="x")

    assert service([cluster.pk], actor=Actor.person(sam), reason="x").changed == [cluster.pk]
    assert AuditEntry.objects.filter(object_kind="cluster", actor="sam").count() == 1


def test_viewers_submit_nothing(alice: User) -> None:
    alice.role = "viewer"
    alice.save()

    with pytest.raises(NotPermitted):
        cluster_of(alice)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"priority": 11}, "priority"),
        ({"memory_mb": -1}, "memory_mb"),
        ({"sites": ["A"], "banned_sites": ["A"]}, "sites"),
        ({"sites": ["x" * 200]}, "sites"),
        ({}, ""),
    ],
)
def test_changes_that_no_job_can_have_are_refused(
    alice: User, changes: dict[str, Any], field: str
) -> None:
    cluster = cluster_of(alice)

    with pytest.raises(InvalidInput) as refused:
        services.change_clusters([cluster.pk], actor=Actor.person(alice), reason="x", **changes)

    assert refused.value.findings[0].field == field
    assert Cluster.objects.get().overrides == {}


@pytest.mark.parametrize(("name", "value"), [("max_idle", 0), ("max_materialize", 10**9)])
def test_limits_have_bounds(alice: User, name: str, value: int) -> None:
    cluster = cluster_of(alice)

    with pytest.raises(InvalidInput) as refused:
        services.change_limits(cluster.pk, actor=Actor.person(alice), reason="x", **{name: value})

    assert [each.field for each in refused.value.findings] == [name]


def test_limits_that_are_not_given_are_no_change(alice: User) -> None:
    cluster = cluster_of(alice)

    with pytest.raises(InvalidInput):
        services.change_limits(cluster.pk, actor=Actor.person(alice), reason="x")

    assert not AuditEntry.objects.filter(action="change cluster").exists()


def test_an_ended_cluster_is_changed_no_more(alice: User) -> None:
    cluster = cluster_of(alice)
    services.remove_clusters([cluster.pk], actor=Actor.person(alice), reason="x")

    with pytest.raises(Conflict):
        services.change_limits(cluster.pk, actor=Actor.person(alice), reason="x", max_idle=5)
    changed = services.prioritise_clusters(
        [cluster.pk], priority=3, actor=Actor.person(alice), reason="x"
    )
    assert changed.skipped == [cluster.pk]


def test_without_failed_jobs_nothing_runs_again(alice: User) -> None:
    cluster = cluster_of(alice)

    with pytest.raises(Conflict):
        rerun_cluster(cluster.pk, actor=Actor.person(alice), reason="x")


def test_a_rerun_of_a_rerun_has_the_same_rows(alice: User) -> None:
    text = "executable = /bin/true\narguments = $(a)\nqueue a from t\n"
    cluster = submit(alice, text, {"t": "\n".join(f"v{n}" for n in range(5000))}).cluster
    actor = Actor.person(alice)
    for lost in ([7, 30, 1999], [7, 1999]):
        cycle(cluster)
        ids = list(Job.objects.filter(cluster_id=cluster.pk, process__in=lost).order_by("pk"))
        withdraw([job.pk for job in ids])
        lifecycle.apply("match", [job.pk for job in ids], actor=SYSTEM, attempt_number=1)
        lifecycle.apply("fail", [job.pk for job in ids], actor=SYSTEM, reason="x")
        cluster = rerun_cluster(cluster.pk, actor=actor, reason="x")
    cycle(cluster)

    jobs = Job.objects.filter(cluster_id=cluster.pk).order_by("process")
    assert [(job.process, job.arguments) for job in jobs] == [(7, ["v7"]), (1999, ["v1999"])]


def test_a_cluster_whose_deadline_has_passed_is_removed(alice: User) -> None:
    cluster = cluster_of(alice, deadline=(timezone.now() + timedelta(hours=1)))
    Cluster.objects.update(deadline=timezone.now())
    cluster = cycle(cycle(cluster))

    assert (cluster.state, cluster.state_cause, cluster.killed_count) == ("removed", "deadline", 3)


def test_a_job_that_is_rescheduled_waits_again_without_losing_an_attempt(alice: User) -> None:
    cluster = cluster_of(alice)
    job = Job.objects.filter(cluster_id=cluster.pk).earliest("pk")
    withdraw([job.pk])
    lifecycle.apply("match", [job.pk], actor=SYSTEM, attempt_number=1)
    attempt = Attempt.objects.create(job=job, number=1, pilot_id=1, site_name="s")

    applied = steering.reschedule_jobs([job.pk], actor=Actor.person(alice), reason="x")

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert applied.changed == [job.pk]
    assert (job.state, job.max_attempts, attempt.outcome) == ("waiting", 6, "killed")
    assert WaitingJob.objects.filter(job_id=job.pk).exists()


def test_a_job_held_with_its_cluster_is_not_released_by_itself(alice: User) -> None:
    cluster = cluster_of(alice)
    services.hold_clusters([cluster.pk], actor=Actor.person(alice), reason="x")
    cycle(cluster)
    release = JOBS.actions["release"]

    held = Job.objects.annotate(why=release.obstacle()).filter(cluster_id=cluster.pk)
    assert all(job.why for job in held)

    services.release_clusters([cluster.pk], actor=Actor.person(alice))
    assert [event.event for event in ClusterEvent.objects.order_by("pk")] == [
        "submit", "hold", "release",
    ]  # fmt: skip


def test_progress_accounts_for_every_row(alice: User) -> None:
    cluster = cluster_of(alice, size=9, max_idle=4, max_materialize=4, eager=False)
    cycle(cluster)
    progress = selectors.progress_of(cluster)

    assert (progress.not_yet_made, progress.live) == (5, {"waiting": 4})
    assert progress.size == progress.not_yet_made + sum(progress.live.values())
    services.remove_clusters([cluster.pk], actor=Actor.person(alice), reason="x")
    progress = selectors.progress_of(cycle(cycle(cluster)))
    assert (progress.never_made, progress.killed, progress.live) == (5, 4, {})


def test_a_requirement_that_no_site_meets_is_accepted_and_told_with_its_line(
    alice: User, make_site: Callable[..., Site]
) -> None:
    make_site()
    made = submit(alice, "executable = /bin/true\nrequest_memory = 9999999\nqueue\n")

    assert [(each.file, each.line) for each in made.warnings] == [("job.sub", 2)]
    assert Cluster.objects.count() == 1
    assert submission_warnings(made.cluster) == made.warnings


def test_in_json_it_is_told_with_its_member(alice: User, make_site: Callable[..., Site]) -> None:
    make_site()
    made = submit(alice, {"executable": "/bin/true", "sites": ["Nowhere"]})

    assert {each.field for each in made.warnings} == {"sites"}


def test_a_group_whose_frontend_has_no_pilots_anywhere_is_told(
    alice: User, make_site: Callable[..., Site]
) -> None:
    make_site()
    frontend = Frontend.objects.create(name="lsst")
    AccountingGroup.objects.create(name="lsst", frontend=frontend).members.add(alice)
    text = "executable = /bin/true\naccounting_group = lsst\nqueue\n"

    assert [each.line for each in submit(alice, text).warnings] == [2]
    FrontendEntry.objects.create(frontend=frontend, queue=Queue.objects.all()[0])
    assert submit(alice, text).warnings == []
