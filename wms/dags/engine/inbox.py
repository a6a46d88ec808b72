"""Inbox of a DAG, read by the engine: entries about jobs, scripts, inner DAGs and placements.

They are deleted as they are read, in the transaction of the round. They become outcomes of nodes;
the ends of plain nodes are settled at once, also of many DAGs together.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from wms.core.database.statements import whole_numbers
from wms.core.models import InboxEntry
from wms.dags import lifecycle
from wms.dags.engine.node_features import features_of
from wms.dags.engine.node_work import work_of, write_work
from wms.dags.engine.round import NodeOutcome, Round, nodes_by_id
from wms.dags.engine.settling.decisions import JOB_REMOVED, after_job, after_post, after_pre
from wms.dags.engine.settling.node_clusters import (
    ClusterEnds,
    NodeJobEvent,
    note_ends,
    note_holds,
    note_updates,
)
from wms.dags.engine.settling.settle import PlainEnds, attempt_of, begin, settle_plain
from wms.dags.engine.sql import READ_ENTRIES, READ_JOB_EVENTS, TAKE_ENTRIES
from wms.dags.models import Dag, Node, ScriptRun
from wms.dags.scripts.run_requests import defer_delay_s, request_deferred_run
from wms.dags.states import DagState, NodeCause, NodeState, ScriptKind
from wms.jobs.models import JobEvent
from wms.placement.selectors import ends_of_batches

#: So many entries are read in one round; the rest is for the next.
MOST_ENTRIES = 5000
#: A DAG with more entries has a round of its own.
MOST_TOGETHER = 100
_KIND = InboxEntry.Kind
_ENDS = frozenset({"complete", "fail", "kill"})


@dataclass(slots=True)
class InboxBatch:
    """The entries of one round by kind; whether the DAG was woken, and told to begin nodes.

    `returned` are jobs that came back to their TaskQueues, once the batch were taken in.
    """

    job_events: list[int] = field(default_factory=list)
    script_runs: list[int] = field(default_factory=list)
    inner_dags: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    is_told: bool = False
    is_woken: bool = False
    has_more: bool = False
    returned: list[int] = field(default_factory=list)


def take_batch(dag_id: int, most: int = MOST_ENTRIES) -> InboxBatch:
    """Entries of the DAG's inbox, deleted as they are read: so many at most."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE_ENTRIES, [list(lifecycle.TOPICS), dag_id, most])
        rows = sorted(cursor.fetchall())
    batch = InboxBatch(has_more=len(rows) == most)
    subjects = {
        _KIND.JOB_EVENT: batch.job_events,
        _KIND.SCRIPT_RUN: batch.script_runs,
        _KIND.DAG: batch.inner_dags,
        _KIND.REQUEST: batch.requests,
    }
    for _, kind, subject_id in rows:
        if kind in subjects:
            subjects[kind].append(subject_id)
        else:
            batch.is_woken = True
            batch.is_told = batch.is_told or kind == _KIND.BEGIN
    return batch


def take_plain_news(dag_ids: Collection[int], *, fresh: Collection[int]) -> dict[int, list[int]]:
    """Plain nodes whose jobs ended well, by DAG, of those of these DAGs that have no other news.

    None for the `fresh` ones that are told to begin: nothing of these has run. The entries of all
    these are deleted; those of the others stay, and so do those of a DAG with many. The caller has
    locked the rows of the DAGs.
    """
    if not dag_ids:
        return {}
    entries: dict[int, list[int]] = defaultdict(list)
    events: dict[int, list[int]] = defaultdict(list)
    others: set[int] = set()
    with connection.cursor() as cursor:
        cursor.execute(
            READ_ENTRIES,
            {
                "dags": whole_numbers(dag_ids),
                "topics": list(lifecycle.TOPICS),
                "most": MOST_TOGETHER + 1,
            },
        )
        for entry_id, dag_id, kind, subject_id in cursor.fetchall():
            entries[dag_id].append(entry_id)
            if kind == _KIND.JOB_EVENT:
                events[dag_id].append(subject_id)
            elif kind != _KIND.BEGIN or dag_id not in fresh:
                others.add(dag_id)
    others |= {pk for pk, own in entries.items() if len(own) > MOST_TOGETHER}
    others |= events.keys() & set(fresh)
    ended = _plain_ends({pk: ids for pk, ids in events.items() if pk not in others})
    told = entries.keys() - events.keys() - others
    plain = ended | {pk: [] for pk in told}
    InboxEntry.objects.filter(pk__in=[each for pk in plain for each in entries[pk]]).delete()
    return dict(sorted(plain.items()))


def _plain_ends(events: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Plain nodes whose jobs ended well, of the DAGs that have no other event among these."""
    asked = [event_id for of_dag in events.values() for event_id in of_dag]
    if not asked:
        return {}
    ended: dict[int, list[int]] = defaultdict(list)
    others: set[int] = set()
    with connection.cursor() as cursor:
        cursor.execute(READ_JOB_EVENTS, {"ids": whole_numbers(asked)})
        for event, _, _, _, _, node_id, _, dag_id in cursor.fetchall():
            if event == "complete" and node_id is not None:
                ended[dag_id].append(node_id)
            else:
                others.add(dag_id)
    return {pk: node_ids for pk, node_ids in ended.items() if pk not in others}


def outcomes_of_batch(round_: Round, batch: InboxBatch) -> list[NodeOutcome]:
    """Settle the ends of plain nodes; return the outcomes of the others in the batch."""
    plain, events = _read_job_events(round_, batch.job_events)
    batch.returned = [event.job_id for event in events if event.event == "reschedule"]
    special = settle_plain(round_, plain)
    return [
        *_outcomes_of_jobs(round_, events),
        *_outcomes_of_scripts(round_, batch.script_runs),
        *_outcomes_of_inner(round_, batch.inner_dags),
        *_outcomes_of_requests(round_, batch.requests),
        *begin(round_, special),
    ]


def _read_job_events(
    round_: Round, event_ids: Sequence[int]
) -> tuple[PlainEnds, list[NodeJobEvent]]:
    """Ends of plain nodes' jobs, and all other events, in their order.

    An event of a job that its node has done with concerns nobody; so below.
    """
    facts_field: Any = JobEvent._meta.get_field("facts")
    plain = PlainEnds()
    others: list[NodeJobEvent] = []
    if not event_ids:
        return plain, others
    with connection.cursor() as cursor:
        cursor.execute(READ_JOB_EVENTS, {"ids": whole_numbers(event_ids)})
        for event, reason, facts, job_id, cluster_id, node_id, has_retries, _ in cursor.fetchall():
            if node_id is None or event not in _ENDS:
                told = facts_field.unpacked(json.loads(facts)) if facts else {}
                others.append(NodeJobEvent(event, reason, told, job_id, cluster_id))
            elif event == "complete":
                plain.done.append(node_id)
            elif has_retries and not round_.is_ending:
                plain.retried[reason].append(node_id)
            else:
                plain.failed[reason].append(node_id)
    return plain, others


def _outcomes_of_jobs(round_: Round, events: Iterable[NodeJobEvent]) -> list[NodeOutcome]:
    """Outcomes of the other nodes whose jobs ended; their holds are counted.

    A provisioner whose job said that it is ready lets the others begin.
    """
    ends: dict[int, list[NodeJobEvent]] = defaultdict(list)
    holds: dict[int, list[NodeJobEvent]] = defaultdict(list)
    updates: dict[int, list[NodeJobEvent]] = defaultdict(list)
    by_event = {"hold": holds, "update": updates} | dict.fromkeys(_ENDS, ends)
    for event in events:
        if event.event in by_event:
            by_event[event.event][event.cluster_id].append(event)
    if holds:
        note_holds(round_, _submitted(round_, holds), holds)
    note_updates(round_, _submitted(round_, updates), updates)
    outcomes = []
    for node in _submitted(round_, ends).exclude(is_plain=True):
        found = note_ends(round_, node, ends[node.job_id or 0])
        if found is not None:
            outcomes.append(_outcome_of_job(round_, node, found))
    return outcomes


def _submitted(round_: Round, clusters: Iterable[int]) -> QuerySet[Node]:
    wanted = list(clusters)
    if not wanted:
        return Node.objects.none()
    submitted = Node.objects.filter(dag=round_.dag, state=NodeState.SUBMITTED, job_id__in=wanted)
    return submitted.select_related("work").order_by("ordinal")


def _outcome_of_job(round_: Round, node: Node, ends: ClusterEnds) -> NodeOutcome:
    attempt = attempt_of(round_, node, features_of(node.features))
    return NodeOutcome(node, after_job(attempt, ends.code), ends.reason, NodeCause.JOB)


def _outcomes_of_scripts(round_: Round, run_ids: Sequence[int]) -> list[NodeOutcome]:
    """Outcomes of the nodes whose scripts ended; a deferred script is run again."""
    if not run_ids:
        return []
    runs = list(ScriptRun.objects.filter(pk__in=run_ids).order_by("ended_at", "pk"))
    nodes = nodes_by_id({run.node_id for run in runs})
    outcomes, pre_ended = [], []
    for run in runs:
        node = nodes[run.node_id]
        if run.kind == ScriptKind.HOLD or not _is_current(run, node):
            continue
        defer_s = defer_delay_s(run, node)
        if defer_s is not None:
            request_deferred_run(round_, run, defer_s)
            continue
        outcomes.append(_outcome_of_script(round_, run, node))
        if run.kind == ScriptKind.PRE:
            work_of(node).pre_code = run.exit_code or 0
            pre_ended.append(work_of(node))
    # A POST script is told of it, and nobody runs PRE again in this attempt.
    write_work(pre_ended, "pre_code")
    return outcomes


def _is_current(run: ScriptRun, node: Node) -> bool:
    waits = {ScriptKind.PRE: NodeState.PRE_RUNNING, ScriptKind.POST: NodeState.POST_RUNNING}
    return node.state == waits[ScriptKind(run.kind)].value and run.retry_number == node.retry_number


def _outcome_of_script(round_: Round, run: ScriptRun, node: Node) -> NodeOutcome:
    attempt = attempt_of(round_, node, features_of(node.features))
    code = run.exit_code or 0
    decide = after_pre if run.kind == ScriptKind.PRE else after_post
    decision = decide(attempt, code)
    why = run.failure or f"exit code {code}"
    reason = f"{run.kind.upper()} script: {why}" if code or run.failure else ""
    has_jobs = run.kind == ScriptKind.POST
    return NodeOutcome(node, decision, reason, NodeCause.SCRIPT, has_jobs=has_jobs)


def _outcomes_of_inner(round_: Round, dag_ids: Sequence[int]) -> list[NodeOutcome]:
    """Outcomes of the nodes whose inner DAGs ended: their exit code is the node's.

    One that was removed is like a job that was, whatever its FINAL node gave.
    """
    outcomes: list[NodeOutcome] = []
    if not dag_ids:
        return outcomes
    ended = Dag.objects.filter(pk__in=dag_ids).select_related("parent_node__work")
    for inner in ended.order_by("pk"):
        node = inner.parent_node
        if node is None or node.state != NodeState.SUBMITTED:
            continue
        if work_of(node).inner_dag_id != inner.pk:
            continue
        code = inner.exit_code if inner.exit_code is not None else 1
        if inner.state == DagState.REMOVED:
            code = JOB_REMOVED
        attempt = attempt_of(round_, node, features_of(node.features))
        reason = f"the inner DAG {inner.pk} ended with {code}: {inner.state_reason}" if code else ""
        outcomes.append(NodeOutcome(node, after_job(attempt, code), reason, NodeCause.INNER_DAG))
    return outcomes


def _outcomes_of_requests(round_: Round, request_ids: Sequence[int]) -> list[NodeOutcome]:
    """Outcomes of the nodes whose placement requests ended."""
    ended = ends_of_batches(request_ids)
    if not ended:
        return []
    nodes = Node.objects.filter(
        dag=round_.dag, state=NodeState.SUBMITTED, work__request__in=list(ended)
    )
    outcomes = []
    for node in nodes.select_related("work").order_by("ordinal"):
        end = ended[node.work.request_id or 0]
        code = JOB_REMOVED if end.is_removed else end.exit_code
        attempt = attempt_of(round_, node, features_of(node.features))
        outcomes.append(NodeOutcome(node, after_job(attempt, code), end.reason, NodeCause.REQUEST))
    return outcomes
