"""Operations on DAGs for services and loops: hold, take back from a site, recall stray jobs.

A hold holds their waiting jobs as well. A take-back kills jobs or lets running ones finish, makes
their nodes ready again, and has the site avoided for a time. Both apply to inner DAGs, too. Stray
jobs came back to TaskQueues of a site that their DAG has left: they are killed, and their nodes are
ready again. Permission is checked by the callers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from wms.core.actors import Actor
from wms.core.loops import wake_loop
from wms.core.statemachine import Increment
from wms.core.transitions import Applied
from wms.dags import lifecycle
from wms.dags.engine.node_work import write_work
from wms.dags.engine.round import Round, move_in_each
from wms.dags.engine.settling.node_clusters import cluster_jobs
from wms.dags.engine.submitting.nodes_without_jobs import inner_dags
from wms.dags.models import Dag, LeftCluster, MatchRecord, Node, NodeWork
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.states import DagCause, NodeCause, NodeState
from wms.jobs import operations as jobs
from wms.jobs.models import Job
from wms.jobs.states import QUEUED, TERMINAL, JobCause, JobState

_ALIVE = frozenset(JobState.values) - TERMINAL
#: Beginning of the reason of jobs in a held DAG.
HELD_WITH_DAG = "the DAG is held"
#: Why a DAG was taken from its site, by how its stay there ended.
_CAUSES = {
    MatchRecord.End.REMATCH: DagCause.PERSON,
    MatchRecord.End.POLICY: DagCause.POLICY,
    MatchRecord.End.UNFIT: DagCause.SUBMISSION,
}


@transaction.atomic
def hold(
    dag_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    cause: DagCause,
    facts: Mapping[int, Mapping[str, Any]] | None = None,
) -> Applied:
    """Hold DAGs, whose rows the caller has locked, and their waiting jobs; others continue."""
    applied = lifecycle.apply_to_dags(
        "hold", dag_ids, actor=actor, reason=reason, cause=cause, facts=facts
    )
    inner = inner_dags(applied.changed)
    lifecycle.apply_to_dags("hold", inner, actor=actor, reason=reason, cause=DagCause.OUTER_DAG)
    waiting = jobs_of(*applied.changed, *inner).filter(state=JobState.WAITING)
    jobs.hold_jobs(
        list(waiting.values_list("pk", flat=True)),
        actor=actor,
        reason=f"{HELD_WITH_DAG}: {reason}",
        cause=JobCause.DAG_HELD,
        is_announced=False,
    )
    return applied


@transaction.atomic
def take_back(
    dags: Sequence[Dag],
    *,
    end: MatchRecord.End,
    actor: Actor,
    reason: str,
    avoid_s: float,
    lets_finish: bool = False,
    facts: Mapping[int, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Applied:
    """Return DAGs, whose rows the caller has locked together with their sites, to `idle`.

    Jobs without a pilot are killed, and so are the others unless they may finish; their nodes are
    ready again, without a retry being counted. Nodes that are done stay done. Each event names the
    site that the DAG came from; `facts` by DAG and `changes` are as for `apply_to_dags`.
    """
    given = facts or {}
    applied = lifecycle.apply_to_dags(
        "rematch",
        [dag.pk for dag in dags if dag.is_placed],
        actor=actor,
        reason=reason,
        cause=_CAUSES[end],
        facts={
            dag.pk: {
                "site": dag.site.name if dag.site else "",
                "lets_finish": lets_finish,
                "avoid_s": avoid_s,
                **given.get(dag.pk, {}),
            }
            for dag in dags
        },
        rematch_count=Increment(),
        **lifecycle.UNBOUND,
        **changes,
    )
    lifecycle.end_matches(applied.changed, end=end, reason=reason, avoid_s=avoid_s)
    inner = inner_dags(applied.changed)
    lifecycle.apply_to_dags(
        "rematch", inner, actor=actor, reason=reason, cause=DagCause.OUTER_DAG, **lifecycle.UNBOUND
    )
    why = f"the DAG leaves its site: {reason}"
    returned = [dag for dag in dags if dag.pk in set(applied.changed)]
    tree = [*returned, *_locked(inner)]
    _recall_nodes(tree, lets_finish=lets_finish, actor=actor, why=why)
    if lets_finish:
        _note_left(tree, {dag.pk: dag.site_id for dag in returned})
    transaction.on_commit(partial(wake_loop, lifecycle.NEGOTIATE_TASK))
    return Applied(
        changed=applied.changed,
        skipped=sorted({dag.pk for dag in dags}.difference(applied.changed)),
    )


def recall_strays(round_: Round, job_ids: Collection[int]) -> None:
    """Recall nodes whose jobs came back to TaskQueues of a site that the DAG has left.

    Where each job is bound at its claim, none does while the DAG may run: it waits for any of the
    sites that accept the DAG now.
    """
    dag = round_.dag
    if dag.binds_jobs and dag.is_placed:
        return
    returned = Job.objects.filter(pk__in=job_ids, state__in=QUEUED).select_related("description")
    site = dag.site.name if dag.site else ""
    strays = [
        (job.pk, job.cluster_id or job.pk) for job in returned if site not in job.needs["sites"]
    ]
    if not strays:
        return
    clusters = {cluster for _, cluster in strays}
    why = "the DAG has left the job's site"
    alive = cluster_jobs(clusters).filter(state__in=_ALIVE).values_list("pk", flat=True)
    jobs.kill_jobs(list(alive), actor=round_.actor, reason=why, cause=JobCause.DAG_LEFT)
    _recall(_submitted([dag]), clusters, why=why, move=round_.move)


def _recall_nodes(dags: Sequence[Dag], *, lets_finish: bool, actor: Actor, why: str) -> None:
    """Kill the jobs of submitted nodes, or only those without a pilot, and recall the nodes.

    The jobs of a list stay together: while a pilot has one of them, all may finish.
    """
    nodes = _submitted(dags)
    alive = cluster_jobs(nodes.values_list("job_id", flat=True)).filter(state__in=_ALIVE)
    rows = list(alive.values_list("pk", "cluster_id", "state"))
    kept = {c or pk for pk, c, state in rows if lets_finish and state not in QUEUED}
    to_kill = [pk for pk, cluster, _ in rows if (cluster or pk) not in kept]
    kill = jobs.kill_queued_jobs if lets_finish else jobs.kill_jobs
    killed = set(kill(to_kill, actor=actor, reason=why, cause=JobCause.DAG_LEFT).changed)
    clusters = {cluster or pk for pk, cluster, _ in rows if pk in killed}
    _recall(nodes, clusters, why=why, move=partial(move_in_each, dags, actor=actor))


def _note_left(tree: Sequence[Dag], sites: Mapping[int, int | None]) -> None:
    """Store which jobs finish at the sites that these DAGs have left; `sites` by outermost DAG.

    Jobs that were left at an earlier site already are still there.
    """
    outermost = {dag.pk: dag.root_id or dag.pk for dag in tree}
    nodes = _submitted(tree).values_list("pk", "dag_id", "job_id")
    left = [
        LeftCluster(
            pk=job_id, node_id=node, dag_id=outermost[dag_id], site_id=sites[outermost[dag_id]]
        )
        for node, dag_id, job_id in nodes
    ]
    LeftCluster.objects.bulk_create(left, batch_size=1000, ignore_conflicts=True)


def _submitted(dags: Iterable[Dag]) -> QuerySet[Node]:
    ids = [dag.pk for dag in dags]
    return Node.objects.filter(dag_id__in=ids, state=NodeState.SUBMITTED, job__isnull=False)


def _recall(
    nodes: QuerySet[Node], clusters: Collection[int], *, why: str, move: Callable[..., list[int]]
) -> None:
    """Make the nodes of killed clusters ready again; the results of their PRE scripts are kept."""
    pre_codes = dict(nodes.filter(job_id__in=list(clusters)).values_list("pk", "work__pre_code"))
    moved = move(
        "recall", pre_codes, reason=why, cause=NodeCause.DAG_LEFT, ends_attached=True, ready_rank=0
    )
    kept = [NodeWork(node_id=pk, pre_code=pre_codes[pk]) for pk in moved]
    write_work([work for work in kept if work.pre_code is not None], "pre_code")


def _locked(dag_ids: Collection[int]) -> list[Dag]:
    return list(
        Dag.objects.filter(pk__in=dag_ids)
        .select_related("site", "owner", "workspace")
        .order_by("pk")
        .select_for_update(of=("self",))
    )
