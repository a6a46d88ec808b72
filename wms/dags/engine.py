"""The engine: reads what happened to a DAG's jobs and moves its nodes on.

One transaction per DAG and round, under the lock of the DAG's row: the inbox entries are deleted
in the transaction that acts on them, so each event counts exactly once, whoever is killed when.
The work is proportional to the events, not to the size of the DAG.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection, transaction
from django.db.models import F, Min

from wms.core.actors import Actor
from wms.core.loops import wake
from wms.core.models import InboxEntry
from wms.dags import lifecycle, steering
from wms.dags.making import Fault, make_specs
from wms.dags.models import Dag, MatchRecord, Node
from wms.dags.policies import matchmaking_policy
from wms.dags.states import DAG_TERMINAL, DagState, NodeState
from wms.jobs import services as jobs
from wms.jobs.models import JobEvent
from wms.jobs.specs import JobSpec
from wms.pilots.director import DIRECT_TASK

log = structlog.get_logger(__name__)
_ACTOR = Actor.system("dag-engine")
_TOPICS = (lifecycle.JOB_TOPIC, lifecycle.CONTROL_TOPIC)
_BATCH = 1000
#: After so long a cycle begins with no other DAG: it ends before the limit of its task.
_CYCLE_S = 30.0

# For every child of the finished parents: that many parents fewer to wait for. By hand because the
# ORM cannot subtract a count per row; one statement, whatever the number of children.
_COUNT_DOWN = """
WITH finished AS (
    SELECT child_id, count(*) AS parents
    FROM dags_edge
    WHERE parent_id = ANY(%s)
    GROUP BY child_id
)
UPDATE dags_node AS node
SET unfinished_parents = node.unfinished_parents - finished.parents
FROM finished
WHERE node.id = finished.child_id
RETURNING node.id, node.unfinished_parents
"""

# Everything below the failed nodes, however deep: a walk that the ORM cannot express.
_DESCENDANTS = """
WITH RECURSIVE below(id) AS (
    SELECT child_id FROM dags_edge WHERE parent_id = ANY(%s)
    UNION
    SELECT edge.child_id FROM dags_edge AS edge JOIN below ON edge.parent_id = below.id
)
SELECT id FROM below
"""


@dataclass(slots=True)
class _Outcome:
    """What the events of one round say about the DAG's nodes."""

    succeeded: list[int] = field(default_factory=list)
    retried: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def run_cycle(now: datetime) -> dict[str, Any]:
    """Advance the DAGs that have something in their inbox; what is left is for the next cycle."""
    # A DAG that goes on in its next round comes behind those that have been told of before.
    keys = (
        InboxEntry.objects.filter(topic__in=_TOPICS)
        .values("key")
        .annotate(first=Min("pk"))
        .order_by("first")
        .values_list("key", flat=True)
    )
    outcomes: Counter[str] = Counter()
    until_s = time.monotonic() + _CYCLE_S
    for dag_id in keys[:_BATCH]:
        if time.monotonic() > until_s:
            break
        outcomes[_advance_safely(dag_id, now)] += 1
    return {"dags": outcomes.total(), **outcomes}


def _advance_safely(dag_id: int, now: datetime) -> str:
    """Advance one DAG; what goes wrong with it is its own affair and stops no other one."""
    try:
        return "advanced" if advance(dag_id, now=now) else "busy"
    except SoftTimeLimitExceeded:
        raise
    except OperationalError as error:
        # The database is away, or this was a deadlock: the events stay where they are.
        log.warning("dag_advance_postponed", dag=dag_id, error=str(error))
        return "postponed"
    except Exception as error:
        log.exception("dag_advance_failed", dag=dag_id)
        reason = f"the engine cannot go on with this DAG: {type(error).__name__}: {error}"[:1000]
        lifecycle.apply_to_dags("hold", [dag_id], actor=_ACTOR, reason=reason.replace("\0", ""))
        return "held"


def advance(dag_id: int, *, now: datetime) -> bool:
    """Act on the new events of one DAG; False when another process is at it."""
    with transaction.atomic():
        dag = (
            Dag.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("owner", "site", "workspace", "accounting_group")
            .filter(pk=dag_id)
            .first()
        )
        if dag is None:
            return False
        events, is_told = _take_events(dag_id)
        changes = _settle(dag, _outcome(dag, events))
        returned = [event.job_id for event in events if event.event == "reschedule"]
        if returned and dag.state not in DAG_TERMINAL:
            changes["submitted_count"] -= steering.recall_strays(dag, returned, actor=_ACTOR)
        if dag.state == DagState.RUNNING:
            if is_told:
                _start_roots(dag)
            changes["submitted_count"] += _submit_ready(dag)
        elif dag.state == DagState.HELD:
            # What came back to its TaskQueue after the DAG was held.
            jobs.hold_jobs(returned, actor=_ACTOR, reason="the DAG is held")
        _count(dag, changes)
        _conclude(dag, now)
    return True


def _take_events(dag_id: int) -> tuple[list[JobEvent], bool]:
    """The new events of the DAG's jobs, and whether it was told to begin or to go on."""
    entries = list(InboxEntry.objects.filter(topic__in=_TOPICS, key=dag_id).order_by("pk"))
    InboxEntry.objects.filter(pk__in=[entry.pk for entry in entries]).delete()
    ids = [entry.event_id for entry in entries if entry.topic == lifecycle.JOB_TOPIC]
    is_told = any(entry.topic == lifecycle.CONTROL_TOPIC for entry in entries)
    return list(JobEvent.objects.filter(pk__in=ids).order_by("pk")), is_told


def _outcome(dag: Dag, events: Sequence[JobEvent]) -> _Outcome:
    """Sort the nodes whose jobs ended; a node that has moved on to another job is not concerned."""
    ended = {event.job_id: event for event in events if event.event != "reschedule"}
    nodes = Node.objects.filter(dag=dag, state=NodeState.SUBMITTED, job_id__in=ended)
    outcome = _Outcome()
    for node in nodes.only("pk", "job_id", "retry_number", "max_retries"):
        event = ended[node.job_id or 0]
        if event.event == "complete":
            outcome.succeeded.append(node.pk)
        elif node.retry_number < node.max_retries and dag.state not in DAG_TERMINAL:
            outcome.retried[event.reason].append(node.pk)
        else:
            outcome.failed[event.reason].append(node.pk)
    return outcome


def _settle(dag: Dag, outcome: _Outcome) -> dict[str, int]:
    """Move the nodes; return by how much the DAG's counters change."""
    lifecycle.apply_to_nodes("succeed", outcome.succeeded, actor=_ACTOR)
    for reason, ids in outcome.retried.items():
        lifecycle.apply_to_nodes(
            "retry", ids, actor=_ACTOR, reason=reason, retry_number=F("retry_number") + 1
        )
    for reason, ids in outcome.failed.items():
        lifecycle.apply_to_nodes("fail", ids, actor=_ACTOR, reason=reason)
    failed = [pk for ids in outcome.failed.values() for pk in ids]
    retried = [pk for ids in outcome.retried.values() for pk in ids]
    _release_children(outcome.succeeded)
    return {
        "done_count": len(outcome.succeeded),
        "failed_count": len(failed),
        "futile_count": _give_up_descendants(failed),
        "submitted_count": -len(outcome.succeeded) - len(failed) - len(retried),
    }


def _release_children(finished: Collection[int]) -> None:
    if not finished:
        return
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_DOWN, [list(finished)])
        ready = [pk for pk, parents in cursor.fetchall() if parents == 0]
    lifecycle.apply_to_nodes("make ready", ready, actor=_ACTOR)


def _give_up_descendants(failed: Collection[int]) -> int:
    if not failed:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_DESCENDANTS, [list(failed)])
        below = [row[0] for row in cursor.fetchall()]
    given_up = lifecycle.apply_to_nodes(
        "give up", below, actor=_ACTOR, reason="an ancestor of the node has failed"
    )
    return len(given_up.changed)


def _start_roots(dag: Dag) -> None:
    """Make the nodes without parents ready, when the DAG has just been bound."""
    roots = Node.objects.filter(dag=dag, state=NodeState.WAITING, unfinished_parents=0)
    lifecycle.apply_to_nodes("make ready", list(roots.values_list("pk", flat=True)), actor=_ACTOR)


def _submit_ready(dag: Dag) -> int:
    """Make jobs of all ready nodes, in the order of the DAG file; return of how many.

    A node that cannot be rendered holds the DAG; what was submitted before it goes on. One round
    submits one batch, or what can be made in its time, so that it ends however wide the DAG is; the
    rest is for the next.
    """
    nodes = list(
        Node.objects.filter(dag=dag, state=NodeState.READY)
        .select_related("submit_description")
        .order_by("ordinal")[: _BATCH + 1]
    )
    if not nodes:
        return 0
    specs, fault = make_specs(dag, nodes[:_BATCH])
    _submit(dag, nodes[: len(specs)], specs)
    if fault is not None:
        _stop(dag, fault, has_begun=bool(specs))
    elif len(nodes) > len(specs):
        lifecycle.tell_engine(dag.pk)
    return len(specs)


def _stop(dag: Dag, fault: Fault, *, has_begun: bool) -> None:
    """Hold a DAG of which a node cannot be submitted.

    If nothing of it has run yet, it looks for another site instead, as often as the policy lets
    it; or its release lets it do so.
    """
    reason, policy = fault.reason, matchmaking_policy()
    if has_begun or dag.done_count or dag.failed_count or dag.submitted_count:
        lifecycle.apply_to_dags("hold", [dag.pk], actor=_ACTOR, reason=reason)
    elif fault.is_of_site and dag.policy_rematch_count < policy.max_rematches:
        steering.take_back(
            [dag],
            end=MatchRecord.End.UNFIT,
            actor=_ACTOR,
            reason=reason,
            avoid_s=policy.avoid_s,
            policy_rematch_count=F("policy_rematch_count") + 1,
        )
    else:
        lifecycle.apply_to_dags("hold", [dag.pk], actor=_ACTOR, reason=reason, **lifecycle.UNBOUND)
        lifecycle.end_matches([dag.pk], end=MatchRecord.End.HOLD, reason=reason)


def _submit(dag: Dag, nodes: Sequence[Node], specs: Sequence[JobSpec]) -> None:
    ids = jobs.submit_jobs(
        specs,
        owner=dag.owner,
        workspace=dag.workspace,
        actor=_ACTOR,
        topic=lifecycle.JOB_TOPIC,
        topic_key=dag.pk,
    )
    for node, job_id in zip(nodes, ids, strict=True):
        node.job_id = job_id
    Node.objects.bulk_update(nodes, ["job"], batch_size=500)
    facts = {node.pk: {"job": node.job_id} for node in nodes}
    lifecycle.apply_to_nodes("submit", [node.pk for node in nodes], actor=_ACTOR, facts=facts)
    transaction.on_commit(partial(wake, DIRECT_TASK))


def _count(dag: Dag, changes: dict[str, int]) -> None:
    steps = {name: F(name) + step for name, step in changes.items() if step}
    if steps:
        Dag.objects.filter(pk=dag.pk).update(**steps)
    dag.refresh_from_db()


def _conclude(dag: Dag, now: datetime) -> None:
    """End the DAG when every node has ended: everything that could run has run."""
    if dag.state in DAG_TERMINAL:
        return
    if dag.done_count == dag.node_count:
        lifecycle.apply_to_dags("complete", [dag.pk], actor=_ACTOR, ended_at=now)
    elif dag.done_count + dag.failed_count + dag.futile_count == dag.node_count:
        first = Node.objects.filter(dag=dag, state=NodeState.FAILED).order_by("state_since").first()
        reason = f"{_nodes(dag.failed_count)} failed, {_nodes(dag.futile_count)} could not run"
        if first is not None:
            reason += f"; first {first.name}: {first.state_reason}"
        lifecycle.apply_to_dags("fail", [dag.pk], actor=_ACTOR, reason=reason, ended_at=now)


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
