"""Clusters of jobs of a node: ends counted to one exit code, holds, reports of provisioners.

Failures beyond the node's tolerance and too many holds kill the rest of the jobs; a hold runs the
HOLD script; with the last provisioner that is ready the other nodes begin. Also the jobs of given
clusters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import QuerySet

from wms.dags import lifecycle
from wms.dags.engine.node_features import features_of
from wms.dags.engine.node_work import work_of, write_work
from wms.dags.engine.round import Round
from wms.dags.models import Dag, Node, NodeWork
from wms.dags.scripts.run_requests import ScriptRequest, job_end_code, request_runs
from wms.dags.states import NodeKind, ScriptKind
from wms.jobs import operations as jobs
from wms.jobs.models import Job
from wms.jobs.selectors import of_clusters
from wms.jobs.states import TERMINAL, JobCause

#: Attribute of a provisioner's job, and its value once the other nodes may begin.
_STATE, _READY = "provisionerstate", 2


class NodeJobEvent(NamedTuple):
    """Event of a node's job; `cluster_id` is the id of its first job."""

    event: str
    reason: str
    facts: dict[str, Any]
    job_id: int
    cluster_id: int


@dataclass(frozen=True, slots=True)
class ClusterEnds:
    """Exit code of a node's cluster: 0, or that of the first failure beyond its tolerance."""

    code: int
    reason: str = ""


def note_ends(round_: Round, node: Node, ends: Sequence[NodeJobEvent]) -> ClusterEnds | None:
    """Count the ends of a node's jobs; return the cluster's end once all have ended, else None.

    With the first failure beyond the node's tolerance the other jobs are killed, or may end.
    """
    work = work_of(node)
    left = work.jobs_left - len(ends)
    failures = [event for event in ends if event.event != "complete"]
    if failures and work.failure_code is None:
        work.failure_code = job_end_code(failures[0].event, failures[0].facts)
        work.failure_reason = failures[0].reason
    work.jobs_failed += len(failures)
    is_lost = work.jobs_failed > _tolerated(node, work)
    if left > 0:
        if is_lost and _fails_fast(node):
            _kill_rest(round_, node)
        work.jobs_left = left
        write_work([work], "jobs_left", "jobs_failed", "failure_code", "failure_reason")
        return None
    return ClusterEnds(work.failure_code or 0, work.failure_reason) if is_lost else ClusterEnds(0)


def note_holds(
    round_: Round, nodes: Iterable[Node], holds: Mapping[int, Sequence[NodeJobEvent]]
) -> None:
    """Count the holds of the nodes' jobs: run the HOLD scripts, and end jobs held too often."""
    wanted, works = [], []
    for node in nodes:
        work = work_of(node)
        work.hold_count += len(holds[node.job_id or 0])
        works.append(work)
        if features_of(node.features).script(ScriptKind.HOLD) is not None:
            wanted += [ScriptRequest(node, ScriptKind.HOLD) for _ in holds[node.job_id or 0]]
        limit = round_.options.max_job_holds
        if limit and work.hold_count >= limit:
            _kill_rest(round_, node, why=f"its jobs were held {work.hold_count} times")
    write_work(works, "hold_count")
    request_runs(round_, wanted)


def note_updates(
    round_: Round, nodes: QuerySet[Node], updates: Mapping[int, Sequence[NodeJobEvent]]
) -> None:
    """Store which provisioners have reported that they are ready: the other nodes may begin."""
    ready = [
        node
        for node in nodes.filter(kind=NodeKind.PROVISIONER)
        if any(_says_ready(event.facts) for event in updates[node.job_id or 0])
    ]
    if ready:
        note_provisioned(round_.dag, ready)


def note_provisioned(dag: Dag, provisioners: Collection[Node]) -> None:
    """Store that these are ready: with the last of them the DAG's other nodes may begin."""
    works = [work_of(node) for node in provisioners]
    for work in works:
        work.is_provisioned = True
    write_work(works, "is_provisioned")
    lifecycle.notify_engine_to_start(dag.pk)


def _says_ready(facts: Mapping[str, Any]) -> bool:
    # The job's ad has its names as whoever wrote them first, and case makes no difference in them.
    return any(name.lower() == _STATE and value == _READY for name, value in facts.items())


def _tolerated(node: Node, work: NodeWork) -> int:
    rule = features_of(node.features).tolerance
    if rule is None:
        return 0
    return work.job_count * rule.limit // 100 if rule.is_percent else rule.limit


def _fails_fast(node: Node) -> bool:
    rule = features_of(node.features).tolerance
    return rule is None or rule.fails_fast


def _kill_rest(round_: Round, node: Node, *, why: str = "another job of the node failed") -> None:
    alive = cluster_jobs([node.job_id or 0]).exclude(state__in=TERMINAL)
    ids = list(alive.values_list("pk", flat=True))
    jobs.kill_jobs(ids, actor=round_.actor, reason=why, cause=JobCause.NODE)


def cluster_jobs(clusters: Iterable[int]) -> Any:
    """The jobs of these clusters."""
    return Job.objects.filter(of_clusters(list(clusters)))
