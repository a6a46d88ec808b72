"""Kind DAG and its actions: hold, release, halt, rematch, rescue, limits, priority, labels, grow...

Declared for pages, API and bulk, with texts, arguments, obstacles, permissions, and the effects
that a bulk preview tells; services do the work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Q, QuerySet, Sum

from wms.actions.actions import Action, InApi, InBulk, InShell, OnPage
from wms.actions.arguments import Argument, ArgumentType, Order, Prompt
from wms.actions.growth import GROW
from wms.actions.kinds import Kind, actions, of_many, one_alone, one_of_many
from wms.actions.labels import labelling
from wms.actions.obstacles import of_state, when
from wms.actions.remarks import remark_actions
from wms.actions.resubmission import RESUBMIT, SAVE_POINT
from wms.core.models import User
from wms.dags.models import Dag, Node
from wms.dags.policy import may_steer
from wms.dags.priorities import USUAL_PRIORITY
from wms.dags.reading.selectors import unfinished_jobs, visible_dags
from wms.dags.rescue.rescue_files import read_resumption
from wms.dags.services import dags as services
from wms.dags.services.labels_and_priority import prioritise_dags, relabel_dags
from wms.dags.services.nodes import rerun_nodes
from wms.dags.states import (
    COUNTED_KINDS,
    DAG_TERMINAL,
    DAG_TRANSITIONS,
    DagState,
    NodeState,
)
from wms.jobs.services import MAX_PRIORITY
from wms.remarks.states import SubjectKind

#: Limit of DAGs whose jobs are counted for a preview.
_LOOKED_INTO = 1000
#: Batch size of actions that change nodes, since a DAG may have 200,000 of them.
_FEW, _VERY_FEW = 50, 5

_INNER = when(Q(parent_node__isnull=False), "it is inside of another DAG, and goes where that goes")
_INNER_FOLLOWS = when(
    Q(parent_node__isnull=False), "it is inside of another DAG: change that, and it follows"
)
_FOLLOWED = when(Q(is_followed=True), "it follows the log of another engine: steer it there")


def _rerun(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    """Rerun the failed nodes of each DAG and their descendants."""
    failed = Node.objects.filter(dag_id__in=ids, kind__in=COUNTED_KINDS, state=NodeState.FAILED)
    names: dict[int, list[str]] = {}
    for dag_id, name in failed.order_by("dag_id", "ordinal").values_list("dag_id", "name"):
        names.setdefault(dag_id, []).append(name)
    notes = {}
    for dag_id in sorted(names):
        applied = rerun_nodes(dag_id, names[dag_id], actor=order.actor, reason=order.reason)
        notes[dag_id] = f"{len(applied.changed)} nodes run again"
    return notes


def _rescue(dag_id: int, order: Order) -> Dag:
    """Run a DAG again, from what `resume` or `save_point` name, with changed options."""
    given = order.arguments
    return services.rescue_dag(
        dag_id,
        actor=order.actor,
        reason=order.reason,
        resumption=read_resumption(given.get("resume", ""), given.get("save_point", "")),
        options=given.get("options", {}),
    )


def _rescue_many(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    return {dag_id: f"it goes on as DAG {_rescue(dag_id, order).pk}" for dag_id in ids}


def _effects(dags: QuerySet[Dag]) -> list[str]:
    """Sentences on the nodes and jobs of the DAGs; jobs only if there are not too many DAGs."""
    sums = dags.order_by().aggregate(
        nodes=Sum("node_count"), done=Sum("done_count"), failed=Sum("failed_count"),
        submitted=Sum("submitted_count"),
    )  # fmt: skip
    counts = {name: value or 0 for name, value in sums.items()}
    effects = [
        f"They have {counts['nodes']:,} nodes: {counts['done']:,} done, {counts['submitted']:,} "
        f"submitted, {counts['failed']:,} failed."
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


_PRIORITY = Argument(
    "priority",
    "Priority",
    ArgumentType.WHOLE,
    USUAL_PRIORITY,
    f"From 0 to {MAX_PRIORITY}; usual is {USUAL_PRIORITY}.",
    most=MAX_PRIORITY,
    in_api="From 0 to 10; the usual one is 1.",
)
_LETS_FINISH = Argument(
    "lets_finish",
    "Let jobs that run finish where they are",
    ArgumentType.YES_NO,
    False,
    on_page=Prompt("Let running jobs finish where they are"),
    in_api="What runs may finish where it is; otherwise it is stopped.",
)
_AVOID = Argument(
    "avoid_min",
    "Keep away from the site for so many minutes",
    ArgumentType.WHOLE,
    None,
    "Empty: as long as the policy says.",
    most=services.MAX_AVOID_S // 60,
    parameter="avoid_s",
    factor=60,
    on_page=Prompt(
        "Avoid the site for so many minutes",
        "Left empty: {default}, as the policy says. With 0 it may come back at once.",
        short="Avoid the site",
        no_number="Give a whole number of minutes.",
        too_small="A time cannot be negative.",
        too_large=f"At most {services.MAX_AVOID_S // 60} minutes.",
    ),
    in_api="So long the DAG does not come back to the site; by default that of the policy.",
)
_RESUMPTION = (
    Argument(
        "resume",
        "Begin from",
        ArgumentType.TEXT,
        "newest",
        in_api="newest, afresh, or the number of a rescue; later ones are set aside.",
        least=1,
        most_characters=20,
    ),
    SAVE_POINT,
    Argument("options", "Options", ArgumentType.OPTIONS_BY_NAME, {}, in_api="Options that change."),
)


DAGS = Kind(
    name="dags",
    noun="DAG",
    nouns="DAGs",
    model=Dag,
    visible=visible_dags,
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
            [of_state(_sources("hold"))],
            one_of_many(services.hold_dags),
            page=OnPage(
                "What runs may finish; nothing more starts until the DAG is released. Waiting jobs "
                "leave the queues. The DAGs inside of it are held too.",
                "is held",
            ),
            api=InApi(
                "Let what runs finish and start nothing more",
                "Hold it, and the DAGs inside of it; needs a reason.",
                "held",
            ),
            bulk=InBulk(
                "What runs may finish; nothing more starts until the DAGs are released. Waiting "
                "jobs leave the queues. The DAGs inside of them are held too.",
                of_many(services.hold_dags),
                _FEW,
            ),
        ),
        Action(
            "release",
            "Release",
            [of_state(_sources("release", "resume"))],
            one_of_many(services.release_dags),
            page=OnPage(
                "The DAG goes on where it was held or halted.",
                "is released",
                labels={DagState.HALTED.value: "Resume"},
            ),
            api=InApi("Let a held or halted DAG go on", "Release it.", "released"),
            bulk=InBulk(
                "The DAGs go on where they were held or halted.",
                of_many(services.release_dags),
                _FEW,
            ),
            needs_reason=False,
        ),
        Action(
            "halt",
            "Halt",
            [of_state(_sources("halt"))],
            one_of_many(services.halt_dags),
            page=OnPage(
                "Nothing more is submitted; queued and running jobs end, and their POST scripts "
                "run. Then the DAG ends with a rescue, unless it is released before.",
                "is halted",
            ),
            api=InApi(
                "Let what is submitted end, then end the DAG with a rescue",
                "Halt it, and the DAGs inside of it; needs a reason.",
                "halted",
            ),
            bulk=InBulk(
                "Nothing more is submitted; queued and running jobs end, and their POST scripts "
                "run. Then each DAG ends with a rescue, unless it is released before.",
                of_many(services.halt_dags),
                _FEW,
            ),
        ),
        Action(
            "rematch",
            "Rematch",
            [
                of_state(_sources("rematch")),
                _INNER,
                when(Q(site=None) & (Q(binding="site") | Q(matched_at=None)), "it is at no site"),
            ],
            one_of_many(services.rematch_dags),
            page=OnPage(
                "Takes the DAG from its site. Its queued jobs leave the queues at once, what is "
                "done stays done, and it looks for another site.",
                "is taken from its site",
            ),
            api=InApi(
                "Take a DAG from its site and negotiate anew",
                "Rematch it; needs a reason.",
                "rematched",
                body="How a DAG leaves its site.",
            ),
            bulk=InBulk(
                "Takes the DAGs from their sites. Queued jobs leave the queues at once, what is "
                "done stays done, and the DAGs look for other sites. Jobs that run are stopped.",
                of_many(services.rematch_dags),
                _FEW,
            ),
            arguments=(_LETS_FINISH, _AVOID),
        ),
        Action(
            "rerun",
            "Rerun failed nodes",
            [
                when(Q(failed_count=0), "no node of it has failed"),
                _FOLLOWED,
                when(~Q(ending_event=""), "it is ending: its FINAL node runs"),
                when(
                    Q(parent_node__isnull=False, state__in=DAG_TERMINAL),
                    "it is inside of another DAG: rerun the node there",
                ),
            ],
            bulk=InBulk(
                "The failed nodes of each DAG run again, with everything that depends on them. "
                "DAGs that have ended are opened again.",
                _rerun,
                _VERY_FEW,
            ),
        ),
        Action(
            "rescue",
            "Rescue",
            [
                when(
                    Q(state=DagState.COMPLETED), "it is completed, so that nothing is left to run"
                ),
                of_state(DAG_TERMINAL),
                when(Q(parent_node__isnull=False), "it is inside of another DAG: rescue that"),
                _FOLLOWED,
            ],
            _rescue,
            api=InApi(
                "Run a DAG that has ended again, from a rescue, a save point, or afresh",
                "Make a new DAG of the files as they are in the workspace now; needs a reason.",
                body="What a further run begins from, and what differs in it.",
                body_name="RescueDag",
                arguments=_RESUMPTION,
            ),
            bulk=InBulk(
                "Each DAG that ended without success goes on as a new one, from its newest rescue.",
                _rescue_many,
                _VERY_FEW,
            ),
        ),
        Action(
            "change-limits",
            "Limits",
            [when(Q(state__in=DAG_TERMINAL), "it has ended"), _FOLLOWED],
            one_alone(services.change_limits),
            api=InApi(
                "Change limits of a DAG, also while it runs",
                "Change those that are given; needs a reason. What is submitted stays so.",
                body="Limits to be changed; 0 is none, but lets no node of a category be "
                "submitted.",
                path="limits",
                body_name="ChangeLimits",
            ),
            arguments=(
                Argument("options", "Options", ArgumentType.OPTIONS_BY_NAME, {}),
                Argument("categories", "Categories", ArgumentType.NUMBERS_BY_NAME, {}),
            ),
        ),
        GROW,
        RESUBMIT,
        Action(
            "prioritise",
            "Change priority",
            [when(Q(state__in=DAG_TERMINAL), "it has ended"), _INNER_FOLLOWS, _FOLLOWED],
            one_of_many(prioritise_dags),
            page=OnPage(
                "It is negotiated before DAGs of its owner with a lower priority, and its jobs are "
                "drawn from their TaskQueues more often, those that wait and those to come.",
                "has another priority",
            ),
            api=InApi(
                "Give a DAG and its jobs another priority",
                "Change it, for the DAGs inside of it and all jobs that have not ended as well; "
                "needs a reason.",
                "prioritised",
                body="The new priority.",
                body_name="PrioritiseDag",
            ),
            shell=InShell("give a DAG and its jobs another priority", "{0.changed} prioritised"),
            bulk=InBulk(
                "DAGs of a higher priority are negotiated before others of their owners, and their "
                "jobs are drawn from their TaskQueues more often.",
                of_many(prioritise_dags),
                _VERY_FEW,
            ),
            arguments=(_PRIORITY,),
        ),
        labelling(
            "DAG", relabel_dags, obstacles=[_INNER_FOLLOWS], remark="The DAGs inside have the same."
        ),
        Action(
            "remove",
            "Remove",
            [of_state(_sources("remove"))],
            one_of_many(services.remove_dags),
            page=OnPage(
                "Ends the DAG: its jobs are killed, a rescue is written, a FINAL node runs once "
                "more. Removed again, it ends without that. It can be rescued later.",
                "is removed",
            ),
            api=InApi(
                "End a DAG, kill its jobs and write a rescue",
                "Remove it; needs a reason. A FINAL node runs once more, unless this is sent "
                "again.",
                "removed",
            ),
            bulk=InBulk(
                "Ends the DAGs: their jobs are killed, rescues are written, FINAL nodes run once "
                "more. They can be rescued later.",
                of_many(services.remove_dags),
                _VERY_FEW,
            ),
            is_destructive=True,
        ),
        *remark_actions(SubjectKind.DAG, "DAG", "DAGs"),
    ),
)
