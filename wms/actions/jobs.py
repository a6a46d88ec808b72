"""Kind job and its actions (hold, release, kill, reschedule, peek at output, rerun its node, ...).

Declared for pages, API, commands and bulk, with texts, arguments, obstacles, permissions, and the
effects that a bulk preview tells; services do the work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, NullIf
from django.utils import timezone

from wms.actions.actions import Action, InApi, InBulk, InShell, OnPage
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.actions.kinds import Kind, actions, of_many, one_as_seen, one_of_many
from wms.actions.obstacles import of_state, when
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.models import Node
from wms.dags.reading.dag_jobs import DAG_ID, OF_DAGS, dag_of_outer_job
from wms.dags.reading.selectors import nodes_of_jobs
from wms.dags.services.nodes import rerun_nodes
from wms.dags.states import NODE_TERMINAL, DagState
from wms.jobs import services as steering
from wms.jobs.clusters.states import TOPIC, ClusterState
from wms.jobs.models import Attempt, Cluster, Job
from wms.jobs.policy import may_steer
from wms.jobs.selectors import visible_jobs
from wms.jobs.states import NOTES, TERMINAL, TRANSITIONS, WITH_PILOT
from wms.pilots.services import stop_after_job

_FEW = 50
_HELD_DAG = Exists(dag_of_outer_job().filter(state=DagState.HELD))
_ENDED_NODE = Exists(
    Node.objects.filter(
        job_id=Coalesce(NullIf(OuterRef("cluster_id"), 0), OuterRef("pk")),
        state__in=NODE_TERMINAL,
    )
)
_HELD_CLUSTER = Exists(Cluster.objects.filter(pk=OuterRef("topic_key"), state=ClusterState.HELD))
_NO_PILOT = when(
    ~Q(Exists(Attempt.objects.filter(job=OuterRef("pk"), outcome=""))), "no pilot has it now"
)


def _peek(job_id: int, order: Order) -> Attempt:
    return steering.peek_at_job(job_id, actor=order.actor, now=timezone.now(), seen=order.seen)


def _rerun(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    """Rerun the nodes of the jobs, all those of a DAG in one call."""
    nodes = nodes_of_jobs(list(Job.objects.filter(pk__in=ids)))
    by_dag: dict[int, dict[int, Node]] = {}
    for job_id, node in nodes.items():
        by_dag.setdefault(node.dag_id, {})[job_id] = node
    notes: dict[int, str] = {}
    for dag_id in sorted(by_dag):
        names = sorted({node.name for node in by_dag[dag_id].values()})
        rerun_nodes(dag_id, names, actor=order.actor, reason=order.reason)
        notes |= {pk: f"node {node.name} runs again" for pk, node in by_dag[dag_id].items()}
    return notes


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
    visible=visible_jobs,
    permits=may_steer,
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
            "peek",
            "Show newest output",
            [_NO_PILOT],
            _peek,
            page=OnPage(
                "The pilot is asked to send at once what the job has printed up to now.",
                "The pilot will be asked with its next heartbeat.",
            ),
            api=InApi(
                "Have the pilot send now what a job has printed",
                "Ask the pilot with its next heartbeat; stdout and stderr grow soon after.",
                is_later=True,
            ),
            shell=InShell(
                "have its pilot send now what it has printed",
                "the pilot of attempt {0.number} will be asked with its next heartbeat",
            ),
            takes_reason=False,
            needs_reason=False,
        ),
        Action(
            "stop-after",
            "Stop pilot after this job",
            [_NO_PILOT],
            one_as_seen(stop_after_job),
            page=OnPage(
                "The pilot of this job takes no more; it ends after the jobs at hand.",
                "The pilot takes no more jobs.",
                name="stop",
            ),
            api=InApi(
                "Let the pilot of a job take no more",
                "Drain it; needs a reason. It ends after the jobs at hand.",
                is_later=True,
            ),
            shell=InShell(
                "let the pilot of this job take no more", "pilot {0.uuid} takes no more jobs"
            ),
            offered=lambda user: has_role(user, Role.SHIFTER),
        ),
        Action(
            "hold",
            "Hold",
            [of_state(TRANSITIONS["hold"].sources)],
            bulk=InBulk(
                "The jobs leave their queues until they are released; payloads that run are "
                "stopped and begin anew then.",
                of_many(steering.hold_jobs),
            ),
        ),
        Action(
            "release",
            "Release",
            [
                of_state(TRANSITIONS["release"].sources),
                when(OF_DAGS & Q(_HELD_DAG), "its DAG is held: release that"),
                when(Q(topic=TOPIC) & Q(_HELD_CLUSTER), "its cluster is held: release that"),
            ],
            bulk=InBulk(
                "Held jobs wait in their TaskQueues again.", of_many(steering.release_jobs)
            ),
            needs_reason=False,
        ),
        Action(
            "reschedule",
            "Reschedule",
            [of_state(WITH_PILOT)],
            one_of_many(steering.reschedule_jobs),
            page=OnPage(
                "The job is taken from its pilot and waits again. A payload that runs is stopped, "
                "and begins anew elsewhere.",
                "The job waits again.",
            ),
            shell=InShell(
                "take a job from its pilot, and let it wait again", "{0.changed} wait again"
            ),
            bulk=InBulk(
                "The jobs are taken from their pilots and wait again. Payloads that run are "
                "stopped, and begin anew elsewhere.",
                of_many(steering.reschedule_jobs),
            ),
        ),
        Action(
            "prioritise",
            "Change priority",
            [of_state(NOTES["prioritise"])],
            bulk=InBulk(
                "Jobs of a higher priority are drawn from their TaskQueue more often. Of jobs that "
                "a pilot has it counts if they wait again.",
                of_many(steering.prioritise_jobs),
            ),
            arguments=(
                Argument(
                    "priority", "Priority", ArgumentType.WHOLE, 1,
                    f"From 0 to {steering.MAX_PRIORITY}; usual is 1.", most=steering.MAX_PRIORITY,
                ),
            ),
        ),
        Action(
            "rerun",
            "Rerun nodes",
            [
                when(~OF_DAGS, "it belongs to no DAG, and a single job cannot run again"),
                of_state(TERMINAL),
                when(~Q(_ENDED_NODE), "its node has not ended, or has gone on to another job"),
            ],
            bulk=InBulk(
                "The nodes of these jobs run again as new jobs, with everything that depends on "
                "them.",
                _rerun,
                _FEW,
            ),
        ),
        Action(
            "kill",
            "Kill",
            [of_state(TRANSITIONS["kill"].sources)],
            one_as_seen(steering.kill_job),
            page=OnPage(
                "The job ends for good. A payload that runs is stopped: its pilot hears of it with "
                "its next heartbeat.",
                "The job is killed.",
            ),
            api=InApi(
                "End a job for good", "Kill it; needs a reason. A payload that runs is stopped."
            ),
            shell=InShell("end a job for good", "job {0.pk} is {0.state}"),
            bulk=InBulk(
                "The jobs end for good. Payloads that run are stopped: their pilots hear of it "
                "with their next heartbeats.",
                of_many(steering.kill_jobs),
            ),
            is_destructive=True,
        ),
    ),
)  # fmt: skip
