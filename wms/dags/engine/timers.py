"""Timers of DAGs: the control loop that wakes the engine when they are due, and their effects.

They are time limits of nodes, whose jobs, inner DAGs or placements are ended then; times of gates
(`engine.gates`); deferred scripts; and capacity freed by other DAGs under the same limit. Also the
extension of timers of DAGs that stood still, and the time of the next one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Min, Q, QuerySet

from wms.core.idling import SOON_S
from wms.dags import lifecycle
from wms.dags.engine.node_work import inner_of_nodes, requests_of_nodes
from wms.dags.engine.round import Round
from wms.dags.engine.settling.ending import stop_inner
from wms.dags.engine.settling.node_clusters import cluster_jobs
from wms.dags.engine.submitting.throttles import dags_waiting_for_capacity
from wms.dags.models import Dag, Node, NodeTimer, ScriptRun
from wms.dags.scripts.run_requests import dags_with_due_scripts
from wms.dags.states import DAG_TERMINAL, DagState, NodeState
from wms.jobs import operations as jobs
from wms.jobs.models import Attempt
from wms.jobs.states import TERMINAL, JobCause
from wms.placement import operations as placement

#: So many timers are looked at in one round; the rest is for the next.
_MOST = 500


def run_cycle(now: datetime) -> dict[str, Any]:
    """Tell the engine of the DAGs for which the time has come."""
    timed = set(_due_timers(now).values_list("dag_id", flat=True))
    deferred = set(dags_with_due_scripts(now))
    waiting = set(dags_waiting_for_capacity())
    lifecycle.notify_engine(*sorted(timed | deferred | waiting))
    soon = now + timedelta(seconds=SOON_S)
    return {
        "timers": len(timed),
        "deferred": len(deferred),
        "waiting": len(waiting),
        "soon": _due_timers(soon).exists() or dags_with_due_scripts(soon).exists(),
    }


def _due_timers(now: datetime) -> QuerySet[NodeTimer]:
    """Timers that count now: what waits in the queue of a DAG that stands still is not to blame."""
    is_running = Q(dag__state=DagState.RUNNING)
    always = Q(kind__in=(NodeTimer.Kind.RUN, NodeTimer.Kind.GATE))
    due = NodeTimer.objects.filter(is_running | always, due_at__lte=now)
    return due.exclude(dag__state__in=DAG_TERMINAL)


def put_off_timers(dag_ids: Iterable[int], now: datetime) -> None:
    """Extend the timers of DAGs that stood still by that time: it does not count."""
    timers = NodeTimer.objects.filter(dag_id__in=list(dag_ids), kind=NodeTimer.Kind.QUEUE)
    for dag in Dag.objects.filter(pk__in=timers.values("dag_id")):
        timers.filter(dag=dag).update(due_at=F("due_at") + (now - dag.state_since))


def next_due(dag_ids: Collection[int], *, after: datetime) -> datetime | None:
    """Time of the next timer of these DAGs; what is due already waits for capacity."""
    times = [
        NodeTimer.objects.filter(dag_id__in=dag_ids, due_at__gt=after),
        ScriptRun.objects.filter(dag_id__in=dag_ids, state="waiting", due_at__gt=after),
    ]
    found = [rows.aggregate(first=Min("due_at"))["first"] for rows in times]
    return min((due_at for due_at in found if due_at is not None), default=None)


def fire_timers(round_: Round) -> bool:
    """End the jobs of nodes whose time is up; retries are as after any failure.

    Returns whether more of them are due.
    """
    due = list(
        _due_timers(round_.now)
        .filter(dag=round_.dag)
        .exclude(kind=NodeTimer.Kind.GATE)
        .select_related("node")
        .order_by("due_at", "pk")[:_MOST]
    )
    NodeTimer.objects.filter(pk__in=[timer.pk for timer in due]).delete()
    late: dict[tuple[str, int], list[Node]] = defaultdict(list)
    for timer in due:
        is_current = timer.retry_number == timer.node.retry_number
        if timer.node.state == NodeState.SUBMITTED and is_current:
            late[timer.kind, timer.limit_s].append(timer.node)
    for (kind, limit_s), nodes in sorted(late.items()):
        with_jobs = [node for node in nodes if node.job_id is not None]
        if kind == NodeTimer.Kind.QUEUE:
            reason = f"it did not start within {limit_s} s (TIMEOUT QUEUE)"
            _end_jobs(round_, with_jobs, reason, only_waiting=True)
        else:
            # Inner DAGs and placements begin at once: only how long they run is limited.
            reason = f"it did not end within {limit_s} s (TIMEOUT RUN)"
            _end_jobs(round_, with_jobs, reason)
            _end_others(round_, nodes, reason)
    return len(due) == _MOST


def _end_jobs(
    round_: Round, nodes: Sequence[Node], reason: str, *, only_waiting: bool = False
) -> None:
    jobs_ = cluster_jobs([node.job_id or 0 for node in nodes]).exclude(state__in=TERMINAL)
    if only_waiting:
        begun = Attempt.objects.filter(job__in=jobs_, started_at__isnull=False)
        jobs_ = jobs_.exclude(pk__in=begun.values("job_id"))
    ids = list(jobs_.order_by("pk").values_list("pk", flat=True))
    jobs.kill_jobs(ids, actor=round_.actor, reason=reason, cause=JobCause.TIMEOUT)


def _end_others(round_: Round, nodes: Sequence[Node], reason: str) -> None:
    requests = requests_of_nodes(nodes)
    if requests:
        placement.remove_batches(requests, actor=round_.actor, reason=reason)
    inner = inner_of_nodes(nodes)
    if inner:
        stop_inner(round_, inner, reason)
