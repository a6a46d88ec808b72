"""What can be done with many jobs: each action is a service of `wms.jobs`, or of their DAGs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, NullIf

from wms.bulk.kinds import (
    Action,
    Argument,
    ArgumentType,
    Kind,
    Order,
    actions,
    made_at,
    of_state,
    when,
)
from wms.core.models import User
from wms.core.transitions import Applied
from wms.dags.models import Node
from wms.dags.reading.dag_jobs import DAG_ID, OF_DAGS, dag_of_outer_job
from wms.dags.reading.selectors import nodes_of_jobs
from wms.dags.services.nodes import rerun_nodes
from wms.dags.states import NODE_TERMINAL, DagState
from wms.jobs import services
from wms.jobs.models import Job
from wms.jobs.policy import may_steer
from wms.jobs.states import NOTES, TERMINAL, TRANSITIONS

_FEW = 50
_HELD_DAG = Exists(dag_of_outer_job().filter(state=DagState.HELD))
_ENDED_NODE = Exists(
    Node.objects.filter(
        job_id=Coalesce(NullIf(OuterRef("cluster_id"), 0), OuterRef("pk")),
        state__in=NODE_TERMINAL,
    )
)


def _with(service: Callable[..., Applied]) -> Callable[[Sequence[int], Order], Mapping[int, str]]:
    def call(ids: Sequence[int], order: Order) -> Mapping[int, str]:
        applied = service(ids, actor=order.actor, reason=order.reason, **order.arguments)
        return dict.fromkeys(applied.changed, "")

    return call


def _rerun(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    """Run the nodes of the jobs again, those of a DAG together."""
    nodes = nodes_of_jobs(list(Job.objects.filter(pk__in=ids)))
    by_dag: dict[int, dict[int, Node]] = {}
    for job_id, node in nodes.items():
        by_dag.setdefault(node.dag_id, {})[job_id] = node
    told: dict[int, str] = {}
    for dag_id in sorted(by_dag):
        names = sorted({node.name for node in by_dag[dag_id].values()})
        rerun_nodes(dag_id, names, actor=order.actor, reason=order.reason)
        told |= {pk: f"node {node.name} runs again" for pk, node in by_dag[dag_id].items()}
    return told


def _effects(jobs: QuerySet[Job]) -> list[str]:
    of_dags = jobs.filter(OF_DAGS).order_by()
    counted = of_dags.aggregate(
        dags=Count(DAG_ID, distinct=True),
        nodes=Count(Coalesce(NullIf("cluster_id", 0), F("pk")), distinct=True),
    )
    if not counted["nodes"]:
        return ["They belong to no DAG."]
    return [
        f"They are the jobs of {counted['nodes']:,} nodes in {counted['dags']:,} DAGs. A node goes "
        "on when its jobs have ended; if one is killed, the node has failed."
    ]


def _permitted(user: User, owner_ids: Collection[int]) -> set[int]:
    return {pk for pk in owner_ids if may_steer(user, Job(owner_id=pk))}


JOBS = Kind(
    name="jobs",
    noun="job",
    nouns="jobs",
    model=Job,
    made_before=made_at,
    key="owner_id",
    permitted=_permitted,
    refusal="it belongs to another user, and this needs the role shifter",
    label="name",
    group="owner__username",
    group_label="Owner",
    owner="owner_id",
    effects=_effects,
    actions=actions(
        Action(
            "hold",
            "Hold",
            "The jobs leave their queues until they are released; payloads that run are stopped "
            "and begin anew then.",
            _with(services.hold_jobs),
            [of_state(TRANSITIONS["hold"].sources)],
        ),
        Action(
            "release",
            "Release",
            "Held jobs wait in their TaskQueues again.",
            _with(services.release_jobs),
            [
                of_state(TRANSITIONS["release"].sources),
                when(OF_DAGS & Q(_HELD_DAG), "its DAG is held: release that"),
            ],
            needs_reason=False,
        ),
        Action(
            "prioritise",
            "Change priority",
            "Jobs of a higher priority are drawn from their TaskQueue more often. Of jobs that a "
            "pilot has it counts if they wait again.",
            _with(services.prioritise_jobs),
            [of_state(NOTES["prioritise"])],
            arguments=(
                Argument(
                    "priority", "Priority", ArgumentType.WHOLE, 1,
                    f"From 0 to {services.MAX_PRIORITY}; usual is 1.", most=services.MAX_PRIORITY,
                ),
            ),
        ),
        Action(
            "rerun",
            "Rerun nodes",
            "The nodes of these jobs run again as new jobs, with everything that depends on them.",
            _rerun,
            [
                when(~OF_DAGS, "it belongs to no DAG, and a single job cannot run again"),
                of_state(TERMINAL),
                when(~Q(_ENDED_NODE), "its node has not ended, or has gone on to another job"),
            ],
            batch=_FEW,
        ),
        Action(
            "kill",
            "Kill",
            "The jobs end for good. Payloads that run are stopped: their pilots hear of it with "
            "their next heartbeats.",
            _with(services.kill_jobs),
            [of_state(TRANSITIONS["kill"].sources)],
            is_destructive=True,
        ),
    ),
)  # fmt: skip
