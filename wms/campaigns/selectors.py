"""Selectors of campaigns: those that a user may see, and one with progress, forecast and deadline.

Whatever is summed are the DAGs and clusters with the campaign's label that the user may see; what
others of the same name have stays theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Q, QuerySet

from wms.accounting.walls import Walls, seen_by
from wms.campaigns.causes import CampaignCause, top_causes
from wms.campaigns.forecast import Forecast, Verdict, forecast, verdict, window_of
from wms.campaigns.label_sums import LabelSum, sums_of
from wms.campaigns.models import CampaignDeadline
from wms.campaigns.progress import Progress, progress_of, recent_ends
from wms.core.errors import NotFound
from wms.core.labels import campaigns_among, label_of_campaign
from wms.core.models import User
from wms.dags.lifecycle import JOB_TOPIC
from wms.dags.models import Dag
from wms.dags.reading.selectors import visible_dags
from wms.jobs.clusters.selectors import visible_clusters
from wms.jobs.clusters.states import TOPIC
from wms.jobs.models import Cluster
from wms.jobs.uses import UseOfJobs, use_of


@dataclass(frozen=True, slots=True)
class CampaignLine:
    """A campaign in a list: the sums of its label, and its deadline."""

    name: str
    sums: LabelSum
    deadline: datetime | None


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as one user sees it."""

    name: str
    sums: LabelSum
    progress: Progress
    forecast: Forecast
    deadline: CampaignDeadline | None
    verdict: Verdict
    use: UseOfJobs
    causes: Sequence[CampaignCause]


def members_of(user: User, name: str) -> tuple[QuerySet[Dag], QuerySet[Cluster]]:
    """Visible DAGs, inner ones too, and clusters of a campaign. Raises NotFound without any."""
    label = label_of_campaign(name)
    dags = visible_dags(user).filter(labels__contains=[label])
    clusters = visible_clusters(user).filter(labels__contains=[label])
    if not dags.exists() and not clusters.exists():
        raise NotFound(f"There is no campaign {name[:64]!r}, or you may not see anything of it.")
    return dags, clusters


def campaigns(user: User, label_sums: Sequence[LabelSum]) -> list[CampaignLine]:
    """The campaigns among the sums of labels that the user sees, in the same order. One query."""
    sums = {name: each for each in label_sums for name in campaigns_among([each.label])}
    deadlines = _deadlines(user, list(sums))
    return [
        CampaignLine(name, each, found.deadline if (found := deadlines.get(name)) else None)
        for name, each in sums.items()
    ]


def find_campaign(user: User, name: str, *, now: datetime) -> Campaign:
    """One campaign with all that is told of it. Raises NotFound."""
    dags, clusters = members_of(user, name)
    label = label_of_campaign(name)
    [sums] = [each for each in sums_of(dags, clusters, prefix=label) if each.label == label]
    progress = progress_of(dags, clusters)
    window = window_of(progress.begun_at, now)
    ends = recent_ends(dags, clusters, window=window, now=now)
    found = forecast(total=progress.total, left=progress.left, ends=ends, window=window, now=now)
    deadline = deadline_of(user, name)
    return Campaign(
        name=name,
        sums=sums,
        progress=progress,
        forecast=found,
        deadline=deadline,
        verdict=verdict(
            deadline.deadline if deadline else None,
            ended_at=progress.ended_at,
            found=found,
            now=now,
        ),
        use=use_of(
            Q(topic=JOB_TOPIC, topic_key__in=dags.order_by().values("pk"))
            | Q(topic=TOPIC, topic_key__in=clusters.order_by().values("pk"))
        ),
        causes=top_causes(user, dags, clusters, since=progress.begun_at),
    )


def deadline_of(user: User, name: str) -> CampaignDeadline | None:
    """The deadline of a campaign that counts for the user; None where nobody has set one."""
    return _deadlines(user, [name]).get(name)


def in_words(row: CampaignDeadline | None) -> str:
    """A deadline as forms and programs write it, in UTC."""
    at = None if row is None else row.deadline
    return "none" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def _deadlines(user: User, names: Sequence[str]) -> dict[str, CampaignDeadline]:
    """The deadlines of campaigns that count for the user: each the latest that was set."""
    seen = seen_by(user, CampaignDeadline.objects.filter(campaign__in=names), _set_within)
    latest = seen.select_related("set_by").order_by("set_at", "pk")
    return {each.campaign: each for each in latest}


def _set_within(walls: Walls) -> Q:
    return walls.of_users("set_by")


def forecast_of_dag(dag: Dag, *, now: datetime) -> Forecast:
    """Forecast of the end of one DAG, by the nodes of it that were done lately. One query."""
    dags, clusters = Dag.objects.filter(pk=dag.pk), Cluster.objects.none()
    window = window_of(dag.matched_at or dag.created_at, now)
    ended = dag.done_count + dag.failed_count + dag.futile_count + dag.skipped_count
    return forecast(
        total=dag.node_count,
        left=dag.node_count - ended,
        ends=recent_ends(dags, clusters, window=window, now=now),
        window=window,
        now=now,
    )
