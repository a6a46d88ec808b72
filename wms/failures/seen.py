"""Failures that a user may see from behind walls, and their counts, which no bins have.

Bins count the failures of all frontends. Who sees those of some is told what their own rows add up
to (`wms.accounting.walls`); `seen_failures` is None for who sees all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet
from django.db.models.functions import TruncHour

from wms.accounting.walls import Walls, walls_of
from wms.core.models import User
from wms.dags.models import Dag
from wms.failures.models import Failure, FailureGroup, Kind
from wms.jobs.models import Job
from wms.jobs.policy import jobs_within
from wms.pilots.models import Pilot
from wms.pilots.policy import pilots_within


def failures_within(user: User, walls: Walls) -> Q:
    """Condition for the failures of what walls let the user see."""
    # Looked up one by one: a list of all jobs that one may see would be made in memory.
    jobs = Job.objects.filter(jobs_within(walls), pk=OuterRef("subject_id"))
    dags = Dag.objects.filter(walls.by_group(), pk=OuterRef("dag_id"))
    pilots = Pilot.objects.filter(pilots_within(user, walls), pk=OuterRef("subject_id"))
    return (
        Q(Exists(jobs), kind=Kind.JOB)
        | Q(Exists(dags), kind=Kind.NODE)
        | Q(Exists(pilots), kind=Kind.PILOT)
    )


def groups_within(user: User, walls: Walls) -> Q:
    """Condition for the groups that have a failure of what walls let the user see."""
    seen = Failure.objects.filter(failures_within(user, walls), group=OuterRef("pk"))
    return Q(Exists(seen))


def seen_failures(user: User) -> QuerySet[Failure] | None:
    """The failures that the user may see; None for all of them, which bins count."""
    walls = walls_of(user)
    if walls.is_open:
        return None
    return Failure.objects.filter(failures_within(user, walls)).order_by()


def rows_to_count(user: User, dag_id: int | None) -> QuerySet[Failure] | None:
    """The failures that are counted one by one, those of one DAG if it is named.

    None where bins have the counts: of the failures of all DAGs, for who sees all.
    """
    seen = seen_failures(user)
    if dag_id is None:
        return seen
    return (Failure.objects.order_by() if seen is None else seen).filter(dag_id=dag_id)


def counts_by_group(failures: QuerySet[Failure]) -> dict[int, int]:
    """Number of failures by the ids of their groups. One query."""
    return dict(failures.values_list("group_id").annotate(Count("pk")))


def counts_by_hour(
    failures: QuerySet[Failure], group_ids: Collection[int]
) -> list[tuple[int, datetime, int]]:
    """Number of failures of these groups in each hour (UTC). One query."""
    hour = TruncHour("at", tzinfo=UTC)
    rows = failures.filter(group__in=group_ids).values_list("group_id", hour)
    return list(rows.annotate(Count("pk")))


def as_seen(user: User, groups: Iterable[FailureGroup]) -> list[FailureGroup]:
    """Groups as the user may see them: with the number and times of the failures that are seen.

    The sample is a message of anybody, so the text that all have in common stands there instead.
    One query at most.
    """
    found, failures = list(groups), seen_failures(user)
    if failures is None or not found:
        return found
    rows = failures.filter(group__in=[group.pk for group in found]).values_list("group_id")
    told = {pk: rest for pk, *rest in rows.annotate(Count("pk"), Min("at"), Max("at"))}
    for group in found:
        group.sample = group.text
        if group.pk in told:
            group.total, group.first_seen, group.last_seen = told[group.pk]
    return found
