"""What begins after a time: deferred scripts, nodes' time limits, room that other DAGs free."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import Min

from wms.dags import lifecycle
from wms.dags.clusters import cluster_jobs
from wms.dags.models import NodeTimer, ScriptRun
from wms.dags.rounds import Round
from wms.dags.scripts.asking import due_dags
from wms.dags.states import NodeState
from wms.dags.throttles import dags_waiting_for_room
from wms.jobs import services as jobs
from wms.jobs.models import Attempt
from wms.jobs.states import TERMINAL


def run_cycle(now: datetime) -> dict[str, Any]:
    """Tell the engine of the DAGs for which the time has come."""
    timed = set(NodeTimer.objects.filter(due_at__lte=now).values_list("dag_id", flat=True))
    deferred = set(due_dags(now))
    waiting = set(dags_waiting_for_room())
    lifecycle.tell_engine(*sorted(timed | deferred | waiting))
    return {"timers": len(timed), "deferred": len(deferred), "waiting": len(waiting)}


def next_due(dag_ids: Collection[int], *, after: datetime) -> datetime | None:
    """When the next of these times comes for some DAGs; what is due already waits for room."""
    times = [
        NodeTimer.objects.filter(dag_id__in=dag_ids, due_at__gt=after),
        ScriptRun.objects.filter(dag_id__in=dag_ids, state="waiting", due_at__gt=after),
    ]
    found = [rows.aggregate(first=Min("due_at"))["first"] for rows in times]
    return min((due_at for due_at in found if due_at is not None), default=None)


def fire_timers(round_: Round) -> None:
    """End the jobs of nodes whose time is up; their retries are as after any failure."""
    due = list(
        NodeTimer.objects.filter(dag=round_.dag, due_at__lte=round_.now).select_related("node")
    )
    NodeTimer.objects.filter(pk__in=[timer.pk for timer in due]).delete()
    for timer in due:
        node = timer.node
        is_current = timer.retry_number == node.retry_number
        if node.state != NodeState.SUBMITTED or not is_current or node.job_id is None:
            continue
        cluster = cluster_jobs([node.job_id])
        if timer.kind == NodeTimer.Kind.QUEUE:
            begun = Attempt.objects.filter(job__in=cluster, started_at__isnull=False)
            cluster = cluster.exclude(pk__in=begun.values("job_id"))
            why = f"it did not start within {timer.limit_s} s (TIMEOUT QUEUE)"
        else:
            why = f"it did not end within {timer.limit_s} s (TIMEOUT RUN)"
        alive = cluster.exclude(state__in=TERMINAL).values_list("pk", flat=True)
        jobs.kill_jobs(list(alive), actor=round_.actor, reason=why)
