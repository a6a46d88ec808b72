"""Most frequent causes of the latest failures in a campaign, by the groups of failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from wms.core.models import User
from wms.dags.models import Dag
from wms.failures.models import Failure, FailureGroup
from wms.failures.selectors import groups_of_jobs, visible_groups
from wms.jobs.clusters.states import TOPIC
from wms.jobs.models import Cluster, Job
from wms.jobs.states import JobState

#: Failures of DAGs, and failed jobs of clusters, that are looked at: the latest.
MAX_READ = 2_000
#: Causes that are told.
MAX_CAUSES = 10


@dataclass(frozen=True, slots=True)
class CampaignCause:
    """A group of failures, and how many of the latest ones in the campaign are in it."""

    group: FailureGroup
    count: int


def top_causes(
    user: User, dags: QuerySet[Dag], clusters: QuerySet[Cluster], *, since: datetime | None
) -> list[CampaignCause]:
    """The most frequent causes, most first. Five queries at most."""
    counts: Counter[FailureGroup] = Counter()
    failed = Job.objects.filter(
        topic=TOPIC,
        topic_key__in=clusters.order_by().filter(failed_count__gt=0).values("pk"),
        state=JobState.FAILED,
    )
    ids = list(failed.order_by("-pk").values_list("pk", flat=True)[:MAX_READ])
    if ids:
        counts.update(groups_of_jobs(user, ids).values())
    counts.update(_of_dags(user, dags, since))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0].pk))
    return [CampaignCause(*item) for item in ordered[:MAX_CAUSES]]


def _of_dags(user: User, dags: QuerySet[Dag], since: datetime | None) -> Counter[FailureGroup]:
    """Groups of the latest failures of the DAGs' jobs and nodes; found by owner and time."""
    owners = set(dags.order_by().values_list("owner_id", flat=True).distinct())
    if since is None or not owners:
        return Counter()
    latest = Failure.objects.filter(
        owner_id__in=owners, at__gte=since, dag_id__in=dags.order_by().values("pk")
    )
    chosen = latest.order_by("-at")[:MAX_READ]
    counts = Counter(chosen.values_list("group_id", flat=True))
    groups = visible_groups(user).filter(pk__in=chosen.values("group"))
    return Counter({group: counts[group.pk] for group in groups if counts[group.pk]})
