"""A campaign with a forecast and a deadline, other labels, and schedules, for the walk."""

from __future__ import annotations

import io
from datetime import timedelta
from types import SimpleNamespace

from django.utils import timezone

from tests import factories
from wms.campaigns.services import set_deadline
from wms.core.actors import Actor
from wms.core.models import User
from wms.dags.models import Dag, Node
from wms.dags.submission.submit import DagSubmission
from wms.jobs.models import Cluster, TopicUse
from wms.schedules.models import Schedule, ScheduleRun
from wms.schedules.services import ScheduleTerms, create_schedule, pause_schedules

CAMPAIGN = "mc27-higgs"
_LABELS = (f"campaign={CAMPAIGN}", "campaign=data26", "higgs", "calibration", "night")
_NODES, _DONE = 400, 260


def campaign(people: SimpleNamespace, failed: Dag, clusters: tuple[Cluster, ...]) -> None:
    """One of many nodes, more than half of which are done, with what failed beside."""
    now = timezone.now()
    big = factories.dag(people.alice, name="reconstruction.dag", node_count=_NODES)
    nodes = list(Node.objects.filter(dag=big).order_by("ordinal"))
    for number, node in enumerate(nodes[:_DONE]):
        # More in some hours than in others.
        node.state = "done"
        node.state_since = now - timedelta(minutes=5 * number + 25 * (number % 7))
    Node.objects.bulk_update(nodes, ["state", "state_since"])
    Dag.objects.filter(pk=big.pk).update(
        done_count=_DONE, created_at=now - timedelta(days=3), labels=list(_LABELS[:3])
    )
    Dag.objects.filter(pk=failed.pk).update(labels=[_LABELS[0], *_LABELS[3:]])
    Cluster.objects.filter(pk__in=[each.pk for each in clusters]).update(
        labels=[_LABELS[0], "2026"]
    )
    TopicUse.objects.create(
        topic="dag-jobs", topic_key=big.pk, useful_s=4.1e6, failed_s=1.2e5, lost_s=9e4,
        done_count=_DONE, failed_count=11, lost_count=7,
    )  # fmt: skip
    set_deadline(
        CAMPAIGN,
        deadline=now + timedelta(hours=12),
        actor=Actor.person(people.alice),
        reason="the conference",
    )


def schedules(owner: User, dag: Dag) -> Schedule:
    """Schedules in both states; of the first many times have come."""
    now = timezone.now()
    first, *_, last = [_made(owner, number) for number in range(5)]
    for number in range(30):
        outcome = ("submitted", "submitted", "overlap", "missed", "failed")[number % 5]
        ScheduleRun.objects.create(
            schedule=first,
            planned_at=now - number * timedelta(days=7),
            outcome=outcome,
            dag=dag if outcome == "submitted" else None,
            reason="" if outcome == "submitted" else f"DAG {dag.pk} of the time before is running",
        )
    pause_schedules([last.pk], actor=Actor.person(owner), reason="no disk is left")
    return first


def _made(owner: User, number: int) -> Schedule:
    files = {"job.sub": factories.SUBMIT_FILE.encode(), "run.sh": b"#!/bin/sh\n"}
    return create_schedule(
        DagSubmission(
            dag_name="weekly.dag",
            dag_text=factories.dag_text(2),
            files={name: io.BytesIO(content) for name, content in files.items()},
            labels=("campaign=weekly", "higgs"),
        ),
        ScheduleTerms(
            name=f"weekly production {number}", cron=f"{number} 6 * * mon",
            time_zone="Europe/Zurich",
        ),
        owner=owner,
        actor=Actor.person(owner),
    )  # fmt: skip
