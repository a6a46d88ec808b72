"""What steering does to DAGs and their jobs, once somebody is permitted to, or a loop decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from wms.core.actors import Actor
from wms.core.loops import wake
from wms.core.transitions import Applied
from wms.dags import lifecycle
from wms.dags.models import Dag, MatchRecord, Node
from wms.dags.states import NodeState
from wms.jobs import services as jobs
from wms.jobs.models import Job
from wms.jobs.states import QUEUED, TERMINAL, JobState

_ALIVE = frozenset(JobState.values) - TERMINAL


def jobs_of(dag_ids: Collection[int], *, states: Collection[str]) -> list[int]:
    """The jobs of these DAGs that are in one of these states."""
    return list(
        Job.objects.filter(
            topic=lifecycle.JOB_TOPIC, topic_key__in=dag_ids, state__in=states
        ).values_list("pk", flat=True)
    )


@transaction.atomic
def hold(
    dag_ids: Collection[int],
    *,
    actor: Actor,
    reason: str,
    facts: Mapping[int, Mapping[str, Any]] | None = None,
) -> Applied:
    """Hold DAGs, whose rows the caller has locked, and their waiting jobs; what runs goes on."""
    applied = lifecycle.apply_to_dags("hold", dag_ids, actor=actor, reason=reason, facts=facts)
    jobs.hold_jobs(
        jobs_of(applied.changed, states={JobState.WAITING.value}),
        actor=actor,
        reason=f"the DAG is held: {reason}",
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
    """Return DAGs, whose rows the caller has locked with their sites, from them to `idle`.

    Jobs that no pilot has are killed, and so are the others unless they may finish; their nodes
    are ready again, without a retry being counted. What is done stays done. Each event tells the
    site that the DAG came from; `facts` by DAG and `changes` are as for `apply_to_dags`.
    """
    given = facts or {}
    applied = lifecycle.apply_to_dags(
        "rematch",
        [dag.pk for dag in dags if dag.site is not None],
        actor=actor,
        reason=reason,
        facts={
            dag.pk: {
                "site": dag.site.name if dag.site else "",
                "lets_finish": lets_finish,
                "avoid_s": avoid_s,
                **given.get(dag.pk, {}),
            }
            for dag in dags
        },
        rematch_count=F("rematch_count") + 1,
        **lifecycle.UNBOUND,
        **changes,
    )
    lifecycle.end_matches(applied.changed, end=end, reason=reason, avoid_s=avoid_s)
    why = f"the DAG leaves its site: {reason}"
    alive = _submitted(applied.changed).filter(job__state__in=_ALIVE)
    kill = jobs.kill_queued_jobs if lets_finish else jobs.kill_jobs
    killed = kill(list(alive.values_list("job_id", flat=True)), actor=actor, reason=why)
    recalled = _recall(applied.changed, killed.changed, actor=actor, reason=why)
    _count([dag for dag in dags if recalled[dag.pk]], recalled)
    transaction.on_commit(partial(wake, lifecycle.NEGOTIATE_TASK))
    return Applied(
        changed=applied.changed,
        skipped=sorted({dag.pk for dag in dags}.difference(applied.changed)),
    )


def recall_strays(dag: Dag, job_ids: Collection[int], *, actor: Actor) -> int:
    """Recall the nodes whose jobs came back to the TaskQueues of a site that the DAG has left.

    Returns how many; the caller has locked the DAG's row, and counts.
    """
    returned = Job.objects.filter(pk__in=job_ids, state__in=QUEUED)
    site = dag.site.name if dag.site else ""
    strays = [pk for pk, needs in returned.values_list("pk", "needs") if site not in needs["sites"]]
    if not strays:
        return 0
    why = "the DAG has left the job's site"
    killed = jobs.kill_queued_jobs(strays, actor=actor, reason=why)
    return _recall([dag.pk], killed.changed, actor=actor, reason=why)[dag.pk]


def _submitted(dag_ids: Collection[int]) -> Any:
    return Node.objects.filter(dag_id__in=dag_ids, state=NodeState.SUBMITTED)


def _recall(
    dag_ids: Collection[int], job_ids: Collection[int], *, actor: Actor, reason: str
) -> Counter[int]:
    """Make the nodes of killed jobs ready again; how many, by DAG."""
    nodes = dict(_submitted(dag_ids).filter(job_id__in=job_ids).values_list("pk", "dag_id"))
    recalled = lifecycle.apply_to_nodes("recall", list(nodes), actor=actor, reason=reason)
    return Counter(nodes[pk] for pk in recalled.changed)


def _count(dags: Iterable[Dag], recalled: Mapping[int, int]) -> None:
    changed = []
    for dag in dags:
        dag.submitted_count -= recalled[dag.pk]
        changed.append(dag)
    Dag.objects.bulk_update(changed, ["submitted_count"], batch_size=500)
