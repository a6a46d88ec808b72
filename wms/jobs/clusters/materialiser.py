"""Materialiser: makes the jobs of clusters a few thousand ahead, and counts those that end.

Also removes clusters after their deadlines, brings holds, removals and changes to live jobs, holds
clusters whose turn fails, completes others, and begins the lease of their outputs. One transaction
per cluster and turn, under the lock of its row: inbox entries are deleted in the transaction that
counts them, and `next_process` moves in the one that stores the jobs, so that each event counts
once and each row becomes one job, whoever is killed when.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from datetime import datetime
from enum import Enum
from typing import Any

import structlog
from django.db import OperationalError, connection, transaction
from django.db.models import Min
from django.utils import timezone

from wms.core.models import InboxEntry
from wms.jobs.clusters import lifecycle
from wms.jobs.clusters.lifecycle import MATERIALISER
from wms.jobs.clusters.live_jobs import follow_changes, follow_state
from wms.jobs.clusters.making import make_next
from wms.jobs.clusters.sql import TAKE_EVENTS
from wms.jobs.clusters.states import CLUSTER_ALIVE, TOPIC, ClusterCause, ClusterState
from wms.jobs.models import Cluster
from wms.jobs.sandboxes import leases

log = structlog.get_logger(__name__)
#: So many clusters are looked at in a cycle, and so many entries of one in a turn.
_BATCH = 1_000
MOST_EVENTS = 5_000
#: After so long a cycle begins with no other cluster: other loops want the worker too.
_CYCLE_S = 10.0
_COUNTERS = {"complete": "done_count", "fail": "failed_count", "kill": "killed_count"}
_SAVED = (
    *_COUNTERS.values(), "faulty_count", "next_process", "pending_changes", "pending_from",
    "look_at", "delay_reason",
)  # fmt: skip


class Turn(Enum):
    """Result of a turn of a cluster."""

    IDLE = "looked at"
    DONE = "went on"
    MORE = "goes on"
    BUSY = "busy"


#: What of a cycle's report tells that it did something.
DEEDS = (Turn.DONE.value, Turn.MORE.value, "removed")


def run_cycle(now: datetime) -> dict[str, Any]:
    """Give a turn to each cluster that something was told of, or that may have room for rows.

    One with more to do comes again behind the others.
    """
    removed = remove_overdue(now)
    queue = deque(_due(now))
    outcomes: Counter[str] = Counter()
    until_s = time.monotonic() + _CYCLE_S
    while queue and time.monotonic() < until_s:
        cluster_id = queue.popleft()
        outcome = _advance_safely(cluster_id)
        outcomes[outcome] += 1
        if outcome == Turn.MORE.value:
            queue.append(cluster_id)
    return {"clusters": outcomes.total(), **outcomes, **({"removed": removed} if removed else {})}


def _due(now: datetime) -> list[int]:
    told = (
        InboxEntry.objects.filter(topic=TOPIC)
        .values("key")
        .annotate(first=Min("pk"))
        .order_by("first")
        .values_list("key", flat=True)
    )
    looked = Cluster.objects.filter(look_at__lte=now).order_by("look_at", "pk")
    return list(dict.fromkeys([*told[:_BATCH], *looked.values_list("pk", flat=True)[:_BATCH]]))


@transaction.atomic
def remove_overdue(now: datetime) -> int:
    """Remove clusters whose deadlines have passed; their number."""
    overdue = Cluster.objects.filter(state__in=sorted(CLUSTER_ALIVE), deadline__lte=now)
    locked = overdue.order_by("pk").select_for_update(skip_locked=True)
    ids = list(locked.values_list("pk", flat=True)[:_BATCH])
    applied = lifecycle.apply(
        "remove",
        ids,
        actor=MATERIALISER,
        reason="its deadline has passed",
        cause=ClusterCause.DEADLINE,
        look_at=now,
    )
    return len(applied.changed)


def _advance_safely(cluster_id: int) -> str:
    """Give a cluster its turn; what goes wrong with it is its own affair and stops no other one."""
    try:
        return advance(cluster_id).value
    except OperationalError as error:
        # The database is away, or this was a deadlock: all stays as it was.
        log.warning("cluster_turn_postponed", cluster=cluster_id, error=str(error))
        return "postponed"
    except Exception as error:
        log.exception("cluster_turn_failed", cluster=cluster_id)
        why = f"the materialiser cannot go on with it: {type(error).__name__}: {error}"
        _hold(cluster_id, why[:1000].replace("\0", ""))
        return "held"


def _hold(cluster_id: int, reason: str) -> None:
    lifecycle.apply(
        "hold",
        [cluster_id],
        actor=MATERIALISER,
        reason=reason,
        cause=ClusterCause.MATERIALISER,
        look_at=None,
    )


def advance(cluster_id: int) -> Turn:
    """Count what was told of one cluster and go on with it; BUSY when somebody else is at it."""
    with transaction.atomic():
        cluster = (
            Cluster.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("owner", "accounting_group", "workspace")
            .filter(pk=cluster_id)
            .first()
        )
        if cluster is None:
            return Turn.BUSY
        before = (cluster.next_process, cluster.ended_count)
        has_more = count_events(cluster)
        has_more = _go_on(cluster) or has_more
        cluster.save(update_fields=_SAVED)
        complete_if_ended(cluster)
        leases.begin_if_ended(cluster, now=timezone.now())
        if has_more and cluster.look_at is None:
            lifecycle.wake_materialiser(cluster.pk)
    if has_more:
        return Turn.MORE
    return Turn.IDLE if before == (cluster.next_process, cluster.ended_count) else Turn.DONE


def _go_on(cluster: Cluster) -> bool:
    """One step with the cluster's jobs; whether there may be another.

    One at a time, because jobs join TaskQueues once in a transaction.
    """
    if follow_state(cluster) or follow_changes(cluster):
        return True
    return make_next(cluster)


def count_events(cluster: Cluster) -> bool:
    """Count the ends that were told of; whether more were told than a turn takes."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE_EVENTS, {"topic": TOPIC, "key": cluster.pk, "most": MOST_EVENTS})
        counts: dict[str, int] = dict(cursor.fetchall())
    for event, name in _COUNTERS.items():
        setattr(cluster, name, getattr(cluster, name) + counts.get(event, 0))
    return sum(counts.values()) >= MOST_EVENTS


def complete_if_ended(cluster: Cluster) -> None:
    """Complete a cluster whose rows are all made and whose jobs have all ended."""
    if cluster.state in CLUSTER_ALIVE and not cluster.waiting_rows and not cluster.live_count:
        lifecycle.apply("complete", [cluster.pk], actor=MATERIALISER, look_at=None)
        cluster.state = ClusterState.COMPLETED
