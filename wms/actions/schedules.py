"""Kind schedule and its actions: change, run now, pause, resume, priority, labels, remove.

Declared for pages, API, commands and bulk operations; services of `wms.schedules` do the work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Count, Min, Q, QuerySet

from wms.actions.actions import Action, InApi, InBulk, InShell, OnPage
from wms.actions.arguments import Argument, ArgumentType, Order
from wms.actions.kinds import Kind, actions, of_many, one_alone, one_of_many
from wms.actions.labels import labelling
from wms.actions.obstacles import of_state, when
from wms.core.models import User
from wms.core.transitions import Applied
from wms.dags.priorities import USUAL_PRIORITY
from wms.jobs.services import MAX_PRIORITY
from wms.schedules import services
from wms.schedules.changes import change_schedule, prioritise_schedules, relabel_schedules
from wms.schedules.cron import MAX_TEXT
from wms.schedules.models import Schedule
from wms.schedules.on_demand import run_schedules
from wms.schedules.policy import may_steer
from wms.schedules.selectors import has_unfinished_dag, visible_schedules
from wms.schedules.states import NOTES, TRANSITIONS, ScheduleState

_TERMS = (
    Argument("name", "Name", ArgumentType.TEXT, most_characters=128),
    Argument(
        "cron", "Times", ArgumentType.TEXT, most_characters=MAX_TEXT,
        in_api="Minute, hour, day of the month, month, day of the week, as in 0 6 * * mon.",
    ),
    Argument(
        "time_zone", "Time zone", ArgumentType.TEXT, most_characters=64,
        in_api="Such as Europe/Zurich.",
    ),
    Argument(
        "allows_overlap", "Overlap", ArgumentType.YES_NO,
        in_api="Submit it also while the DAG before has not ended.",
    ),
    Argument(
        "grace_s", "Late at most", ArgumentType.WHOLE, least=60, most=services.MAX_GRACE_S,
        in_api="It is not submitted later than that; such a time is missed.",
    ),
    Argument(
        "kept_runs", "Times kept", ArgumentType.WHOLE, least=1, most=services.MAX_KEPT_RUNS,
        in_api="Records of times that are kept.",
    ),
)  # fmt: skip

_PRIORITY = Argument(
    "priority",
    "Priority",
    ArgumentType.WHOLE,
    USUAL_PRIORITY,
    f"From 0 to {MAX_PRIORITY}; usual is {USUAL_PRIORITY}.",
    most=MAX_PRIORITY,
    in_api="From 0 to 10; the usual one is 1.",
)
_NOT_REMOVED = of_state(NOTES["change"])
_DOES_NOT_OVERLAP = when(
    Q(allows_overlap=False) & Q(has_unfinished_dag()),
    "it does not overlap, and its DAG before has not ended",
)


def _run(schedule_id: int, order: Order) -> Applied:
    return Applied(list(run_schedules([schedule_id], actor=order.actor, reason=order.reason)))


def _run_many(ids: Sequence[int], order: Order) -> Mapping[int, str]:
    dags = run_schedules(ids, actor=order.actor, reason=order.reason)
    return {pk: f"submitted as DAG {dag.pk}" for pk, dag in dags.items()}


def _permitted(user: User, owner_ids: Collection[int]) -> set[int]:
    return {pk for pk in owner_ids if may_steer(user, Schedule(owner_id=pk))}


def _effects(schedules: QuerySet[Schedule]) -> list[str]:
    """Sentence on what would be submitted by itself, and how soon."""
    active = schedules.order_by().filter(state=ScheduleState.ACTIVE)
    found = active.aggregate(n=Count("pk"), first=Min("next_at"))
    if not found["n"]:
        return ["None of them submits anything by itself now."]
    return [
        f"{found['n']:,} of them submit DAGs by themselves; the next time of any is "
        f"{found['first']:%Y-%m-%d %H:%M} UTC."
    ]


SCHEDULES = Kind(
    name="schedules",
    noun="schedule",
    nouns="schedules",
    model=Schedule,
    visible=visible_schedules,
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
            "change",
            "Change",
            [_NOT_REMOVED],
            one_alone(change_schedule),
            api=InApi(
                "Change the times of a schedule",
                "Change those of its terms that are given; needs a reason. DAGs that run go on.",
                "changed",
                body="Terms to be changed.",
                body_name="ChangeSchedule",
            ),
            arguments=_TERMS,
        ),
        Action(
            "run",
            "Run now",
            [of_state(NOTES["run"]), _DOES_NOT_OVERLAP],
            _run,
            page=OnPage(
                "Its DAG is submitted now, in the name of its owner; its times stay as they are. "
                "If it does not overlap, the DAG before must have ended.",
                "has submitted its DAG",
            ),
            api=InApi(
                "Submit the DAG of a schedule now",
                "Submit it once, beside its times, in the name of its owner; needs a reason. A "
                "schedule that does not overlap refuses while the DAG before has not ended.",
                "run",
                makes=True,
            ),
            shell=InShell("submit the DAG of a schedule now", "{0.changed} submitted"),
            bulk=InBulk(
                "The DAG of each is submitted now, in the name of its owner; their times stay as "
                "they are. Those that do not overlap, and whose DAG before has not ended, are "
                "passed over.",
                _run_many,
                1,
            ),
        ),
        Action(
            "pause",
            "Pause",
            [of_state(TRANSITIONS["pause"].sources)],
            one_of_many(services.pause_schedules),
            page=OnPage(
                "Nothing is submitted until it is resumed. DAGs that run go on.", "is paused"
            ),
            api=InApi("Submit nothing for now", "Pause it; needs a reason.", "paused"),
            shell=InShell("let a schedule submit nothing for now", "{0.changed} paused"),
            bulk=InBulk(
                "Nothing is submitted until they are resumed. DAGs that run go on.",
                of_many(services.pause_schedules),
            ),
        ),
        Action(
            "resume",
            "Resume",
            [of_state(TRANSITIONS["resume"].sources)],
            one_of_many(services.resume_schedules),
            page=OnPage(
                "It goes on with its next time. Those meanwhile are left out.", "is resumed"
            ),
            api=InApi(
                "Let a paused schedule go on",
                "Resume it; needs a reason.",
                "resumed",
            ),
            shell=InShell("let a paused schedule go on", "{0.changed} resumed"),
            bulk=InBulk(
                "Each goes on with its next time. Times meanwhile are left out.",
                of_many(services.resume_schedules),
            ),
        ),
        Action(
            "prioritise",
            "Change priority",
            [_NOT_REMOVED],
            one_of_many(prioritise_schedules),
            page=OnPage(
                "The DAGs that it submits from now on have it. Those that are there stay as they "
                "are.",
                "has another priority",
            ),
            api=InApi(
                "Give the DAGs of a schedule another priority",
                "Change it for the DAGs that are submitted from now on; needs a reason.",
                "prioritised",
                body="The new priority.",
                body_name="PrioritiseSchedule",
            ),
            shell=InShell("give the DAGs to come another priority", "{0.changed} prioritised"),
            bulk=InBulk(
                "The DAGs that they submit from now on have it. Those that are there stay as they "
                "are.",
                of_many(prioritise_schedules),
            ),
            arguments=(_PRIORITY,),
        ),
        labelling(
            "schedule",
            relabel_schedules,
            obstacles=[_NOT_REMOVED],
            remark="DAGs that are submitted from now on have the same.",
        ),
        Action(
            "remove",
            "Remove",
            [of_state(TRANSITIONS["remove"].sources)],
            one_of_many(services.remove_schedules),
            page=OnPage("Nothing is submitted any more. DAGs that run go on.", "is removed"),
            api=InApi("End a schedule for good", "Remove it; needs a reason.", "removed"),
            shell=InShell("end a schedule for good", "{0.changed} removed"),
            bulk=InBulk(
                "Nothing is submitted any more, and their files are gone. DAGs that run go on.",
                of_many(services.remove_schedules),
            ),
            is_destructive=True,
        ),
    ),
)
