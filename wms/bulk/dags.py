"""What can be done with many DAGs: each action is a service of `wms.dags`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from django.db.models import Q, QuerySet, Sum

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
from wms.dags.models import Dag, Node
from wms.dags.policy import may_steer
from wms.dags.reading.selectors import unfinished_jobs
from wms.dags.services import dags as services
from wms.dags.services.nodes import rerun_nodes
from wms.dags.states import COUNTED_KINDS, DAG_TERMINAL, DAG_TRANSITIONS, DagState, NodeState

#: The jobs of so many DAGs are counted for a preview.
_LOOKED_INTO = 1000
#: A DAG may have 200,000 nodes: what touches them takes few DAGs at once.
_FEW, _VERY_FEW = 50, 5

_INNER = when(Q(parent_node__isnull=False), "it is inside of another DAG, and goes where that goes")
_FOLLOWED = when(Q(is_followed=True), "it follows the log of another engine: steer it there")


def _with(service: Callable[..., Applied]) -> Callable[[Sequence[int], Order], Mapping[int, str]]:
    def call(ids: Sequence[int], order: Order) -> Mapping[int, str]:
        applied = service(ids, actor=order.actor, reason=order.reason, **order.arguments)
        return dict.fromkeys(applied.changed, "")

    return call


def _rematch(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    given = dict(order.arguments)
    minutes = given.pop("avoid_min", None)
    given["avoid_s"] = None if minutes is None else 60 * minutes
    applied = services.rematch_dags(ids, actor=order.actor, reason=order.reason, **given)
    return dict.fromkeys(applied.changed, "")


def _rerun(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    """Run the failed nodes of each DAG again, and what depends on them."""
    failed = Node.objects.filter(dag_id__in=ids, kind__in=COUNTED_KINDS, state=NodeState.FAILED)
    names: dict[int, list[str]] = {}
    for dag_id, name in failed.order_by("dag_id", "ordinal").values_list("dag_id", "name"):
        names.setdefault(dag_id, []).append(name)
    told = {}
    for dag_id in sorted(names):
        applied = rerun_nodes(dag_id, names[dag_id], actor=order.actor, reason=order.reason)
        told[dag_id] = f"{len(applied.changed)} nodes run again"
    return told


def _rescue(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    return {
        dag_id: "it goes on as DAG "
        f"{services.rescue_dag(dag_id, actor=order.actor, reason=order.reason).pk}"
        for dag_id in ids
    }


def _effects(dags: QuerySet[Dag]) -> list[str]:
    """What is in the DAGs; their jobs are counted where there are not too many DAGs."""
    sums = dags.order_by().aggregate(
        nodes=Sum("node_count"), done=Sum("done_count"), failed=Sum("failed_count"),
        submitted=Sum("submitted_count"),
    )  # fmt: skip
    told = {name: value or 0 for name, value in sums.items()}
    effects = [
        f"They have {told['nodes']:,} nodes: {told['done']:,} done, {told['submitted']:,} "
        f"submitted, {told['failed']:,} failed."
    ]
    ids = list(dags.order_by("pk").values_list("pk", flat=True)[: _LOOKED_INTO + 1])
    if len(ids) <= _LOOKED_INTO:
        jobs = unfinished_jobs(ids).values()
        queued, running = sum(job.queued for job in jobs), sum(job.running for job in jobs)
        effects.append(f"Of their jobs, {queued:,} are queued and {running:,} are with pilots.")
    return effects


def _permitted(user: User, owner_ids: Collection[int]) -> set[int]:
    return {pk for pk in owner_ids if may_steer(user, Dag(owner_id=pk))}


def _sources(*events: str) -> set[str]:
    return {state for event in events for state in DAG_TRANSITIONS[event].sources}


DAGS = Kind(
    name="dags",
    noun="DAG",
    nouns="DAGs",
    model=Dag,
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
            "What runs may finish; nothing more starts until the DAGs are released. Waiting jobs "
            "leave the queues. The DAGs inside of them are held too.",
            _with(services.hold_dags),
            [of_state(_sources("hold"))],
            batch=_FEW,
        ),
        Action(
            "release",
            "Release",
            "The DAGs go on where they were held or halted.",
            _with(services.release_dags),
            [of_state(_sources("release", "resume"))],
            needs_reason=False,
            batch=_FEW,
        ),
        Action(
            "halt",
            "Halt",
            "Nothing more is submitted; queued and running jobs end, and their POST scripts run. "
            "Then each DAG ends with a rescue, unless it is released before.",
            _with(services.halt_dags),
            [of_state(_sources("halt"))],
            batch=_FEW,
        ),
        Action(
            "rematch",
            "Rematch",
            "Takes the DAGs from their sites. Queued jobs leave the queues at once, what is done "
            "stays done, and the DAGs look for other sites. Jobs that run are stopped.",
            _rematch,
            [
                of_state(_sources("rematch")),
                _INNER,
                when(Q(site__isnull=True), "it is at no site"),
            ],
            arguments=(
                Argument(
                    "lets_finish",
                    "Let jobs that run finish where they are",
                    ArgumentType.YES_NO,
                    False,
                ),
                Argument(
                    "avoid_min",
                    "Keep away from the site for so many minutes",
                    ArgumentType.WHOLE,
                    None,
                    "Empty: as long as the policy says.",
                    most=services.MAX_AVOID_S // 60,
                ),
            ),
            batch=_FEW,
        ),
        Action(
            "rerun",
            "Rerun failed nodes",
            "The failed nodes of each DAG run again, with everything that depends on them. DAGs "
            "that have ended are opened again.",
            _rerun,
            [
                when(Q(failed_count=0), "no node of it has failed"),
                _FOLLOWED,
                when(~Q(ending_event=""), "it is ending: its FINAL node runs"),
                when(
                    Q(parent_node__isnull=False, state__in=DAG_TERMINAL),
                    "it is inside of another DAG: rerun the node there",
                ),
            ],
            batch=_VERY_FEW,
        ),
        Action(
            "rescue",
            "Rescue",
            "Each DAG that ended without success goes on as a new one, from its newest rescue.",
            _rescue,
            [
                when(
                    Q(state=DagState.COMPLETED), "it is completed, so that nothing is left to run"
                ),
                of_state(DAG_TERMINAL),
                when(Q(parent_node__isnull=False), "it is inside of another DAG: rescue that"),
                _FOLLOWED,
            ],
            batch=_VERY_FEW,
        ),
        Action(
            "remove",
            "Remove",
            "Ends the DAGs: their jobs are killed, rescues are written, FINAL nodes run once more. "
            "They can be rescued later.",
            _with(services.remove_dags),
            [of_state(_sources("remove"))],
            is_destructive=True,
            batch=_VERY_FEW,
        ),
    ),
)
