"""Kind cluster and its actions (hold, release, change, rerun, keep outputs, remove, ...).

Declared for pages, API, commands and bulk, with texts, arguments, obstacles, permissions, and the
effects that a bulk preview tells; services of `wms.jobs` do the work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Q, QuerySet, Sum

from wms.actions.actions import Action, InApi, InBulk, InShell, OnPage
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.actions.cluster_outputs import PROLONG_OUTPUTS
from wms.actions.kinds import Kind, actions, of_many, one_alone, one_of_many
from wms.actions.labels import labelling
from wms.actions.obstacles import of_state, when
from wms.core.models import User
from wms.jobs.clusters import services
from wms.jobs.clusters.options import MAX_LIMIT
from wms.jobs.clusters.rerun import rerun_cluster
from wms.jobs.clusters.selectors import visible_clusters
from wms.jobs.clusters.states import CLUSTER_NOTES, CLUSTER_TRANSITIONS
from wms.jobs.models import Cluster
from wms.jobs.policy import may_steer
from wms.jobs.services import MAX_PRIORITY

#: Reruns read all failed jobs of a cluster.
_VERY_FEW = 5

_PRIORITY = Argument(
    "priority",
    "Priority",
    ArgumentType.WHOLE,
    1,
    f"From 0 to {MAX_PRIORITY}; usual is 1.",
    most=MAX_PRIORITY,
    in_api="How much more likely its jobs are drawn than others of their TaskQueues.",
)
_MEMORY = Argument(
    "memory_mb",
    "Memory in MB",
    ArgumentType.WHOLE,
    None,
    "Empty: as it is.",
    in_api="Memory that each job asks for, in MB; by default as it is described.",
)
_NAMES_HELP = "Names with commas. Empty: as it is; a dash: no condition any more."
_PLACES = (
    Argument(
        "sites", "Sites where alone they may run", ArgumentType.NAMES, None, _NAMES_HELP,
        in_api="Where alone its jobs may run.",
    ),
    Argument(
        "banned_sites", "Sites where they may not run", ArgumentType.NAMES, None, _NAMES_HELP,
        in_api="Where they may not run.",
    ),
)  # fmt: skip
_WITH_KILLED = Argument(
    "with_killed",
    "Run those that were killed again, too",
    ArgumentType.YES_NO,
    False,
    in_api="Whether jobs that were killed run again as well.",
)
_LIMITS = (
    Argument(
        "max_idle", "Most that wait", ArgumentType.WHOLE, None, least=1, most=MAX_LIMIT,
        in_api="No further jobs are made while so many wait.",
    ),
    Argument(
        "max_materialize", "Most at once", ArgumentType.WHOLE, None, least=1, most=MAX_LIMIT,
        in_api="No further jobs are made while so many have not ended.",
    ),
)  # fmt: skip


def _rerun(cluster_id: int, order: Order) -> Cluster:
    return rerun_cluster(cluster_id, actor=order.actor, reason=order.reason, **order.arguments)


def _rerun_many(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    return {pk: f"they run again as cluster {_rerun(pk, order).pk}" for pk in ids}


def _effects(clusters: QuerySet[Cluster]) -> list[str]:
    names = ("size", "next_process", "done_count", "failed_count", "killed_count")
    counts = clusters.order_by().aggregate(**{name: Sum(name, default=0) for name in names})
    return [
        f"They have {counts['size']:,} jobs, of which {counts['next_process']:,} were made: "
        f"{counts['done_count']:,} done, {counts['failed_count']:,} failed, "
        f"{counts['killed_count']:,} killed."
    ]


def _permitted(user: User, owner_ids: Collection[int]) -> set[int]:
    return {pk for pk in owner_ids if may_steer(user, Cluster(owner_id=pk))}


CLUSTERS = Kind(
    name="clusters",
    noun="cluster",
    nouns="clusters",
    model=Cluster,
    visible=visible_clusters,
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
            "hold",
            "Hold",
            [of_state(CLUSTER_TRANSITIONS["hold"].sources)],
            one_of_many(services.hold_clusters),
            page=OnPage(
                "What runs may finish. Jobs that wait are held, and no more are made until the "
                "cluster is released.",
                "is held",
            ),
            api=InApi(
                "Let what runs finish and make no more jobs", "Hold it; needs a reason.", "held"
            ),
            shell=InShell("hold a cluster", "{0.changed} held"),
            bulk=InBulk(
                "What runs may finish. Jobs that wait are held, and no more are made until the "
                "clusters are released.",
                of_many(services.hold_clusters),
            ),
        ),
        Action(
            "release",
            "Release",
            [of_state(CLUSTER_TRANSITIONS["release"].sources)],
            one_of_many(services.release_clusters),
            page=OnPage("The jobs that were held with the cluster wait again.", "is released"),
            api=InApi("Let a held cluster go on", "Release it.", "released"),
            shell=InShell("release a cluster", "{0.changed} released"),
            bulk=InBulk(
                "The jobs that were held with the clusters wait again.",
                of_many(services.release_clusters),
            ),
            needs_reason=False,
        ),
        Action(
            "prioritise",
            "Change priority",
            [of_state(CLUSTER_NOTES["change"])],
            one_of_many(services.prioritise_clusters),
            page=OnPage(
                "Its jobs are drawn from their TaskQueues more often or more rarely than others, "
                "those that are yet to be made as well.",
                "has another priority",
            ),
            api=InApi(
                "Give the jobs of a cluster another priority",
                "Change it for jobs that are there and those to come; needs a reason.",
                body="The new priority.",
                body_name="PrioritiseCluster",
            ),
            bulk=InBulk(
                "Jobs of a higher priority are drawn from their TaskQueue more often.",
                of_many(services.prioritise_clusters),
            ),
            arguments=(_PRIORITY,),
        ),
        Action(
            "change",
            "Change sites or memory",
            [of_state(CLUSTER_NOTES["change"])],
            one_of_many(services.change_clusters),
            page=OnPage(
                "What is given holds for all of its jobs, those that are yet to be made as well. "
                "Of jobs that a pilot has it counts if they wait again.",
                "is changed",
            ),
            api=InApi(
                "Change what the jobs of a cluster need",
                "Change what is given, for jobs that are there and those to come; needs a reason. "
                "Of jobs that a pilot has it counts if they wait again.",
                body="What is changed for all of its jobs.",
                body_name="ChangeCluster",
            ),
            arguments=(_MEMORY, *_PLACES),
        ),
        Action(
            "limits",
            "Change limits",
            [of_state(CLUSTER_NOTES["change"])],
            one_alone(services.change_limits),
            page=OnPage(
                "How far ahead its jobs are made. Those that are there stay.", "has other limits"
            ),
            api=InApi(
                "Change how far ahead the jobs of a cluster are made",
                "Change those that are given; needs a reason. Jobs that are there stay.",
                body="Limits to be changed.",
                body_name="ChangeClusterLimits",
            ),
            arguments=_LIMITS,
        ),
        Action(
            "rerun",
            "Rerun failed jobs",
            [when(Q(failed_count=0, killed_count=0), "no job of it has failed")],
            _rerun,
            page=OnPage(
                "The jobs that failed run again as a new cluster, under the same numbers.",
                "runs its failed jobs again",
                arguments=_PLACES,
            ),
            api=InApi(
                "Run the failed jobs of a cluster again",
                "Make a new cluster of them, under the same numbers; needs a reason.",
                body="What is changed for the new cluster.",
                body_name="RerunCluster",
                arguments=(*_PLACES,),
            ),
            bulk=InBulk(
                "The jobs that failed run again as new clusters, under the same numbers.",
                _rerun_many,
                _VERY_FEW,
            ),
            arguments=(_WITH_KILLED, _MEMORY),
        ),
        PROLONG_OUTPUTS,
        labelling("cluster", services.relabel_clusters),
        Action(
            "remove",
            "Remove",
            [of_state(CLUSTER_TRANSITIONS["remove"].sources)],
            one_of_many(services.remove_clusters),
            page=OnPage(
                "The cluster ends for good: its jobs are killed, and of the rows that are left "
                "none are made.",
                "is removed",
            ),
            api=InApi(
                "End a cluster, and kill its jobs",
                "Remove it; needs a reason. Rows that are left become no jobs.",
                "removed",
            ),
            shell=InShell("end a cluster for good", "{0.changed} removed"),
            bulk=InBulk(
                "The clusters end for good: their jobs are killed, and of the rows that are left "
                "none are made.",
                of_many(services.remove_clusters),
            ),
            is_destructive=True,
        ),
    ),
)
